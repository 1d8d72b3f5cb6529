"""What follows when a process ends."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.local.plan.records import Backoff, Restart
from symphony_charts.local.supervisor.policy import Decision, describe_status, restart_decision
from tests.local.records import planned, process_state


def after(status: int, restart: Restart = "never", *, restarts: int = 0, **more: Any) -> Decision:
    process = process_state(restarts=restarts, in_a_row=restarts)
    return restart_decision(process, planned(restart=restart, **more), status, Backoff())


def test_a_finite_process_that_ends_well_is_done() -> None:
    assert after(0) == Decision(action="done")


def test_a_failure_stops_the_run_by_default() -> None:
    assert after(3) == Decision(action="failed", stops=True)


def test_a_failure_is_kept_to_itself_when_asked() -> None:
    assert after(3, on_exit="keep") == Decision(action="failed", stops=False)


def test_a_failure_is_retried_as_often_as_allowed() -> None:
    actions = [after(1, "on-failure", retries=2, restarts=n).action for n in range(3)]
    assert actions == ["restart", "restart", "failed"]


def test_a_service_that_ends_well_but_may_not_restart_has_failed() -> None:
    assert after(0, is_service=True).action == "failed"


def test_a_service_restarts_whatever_its_status() -> None:
    assert after(0, "always", is_service=True).action == "restart"


def test_pauses_double_up_to_the_cap() -> None:
    assert [Backoff().delay_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("status", "text"), [(3, "exit status 3"), (137, "SIGKILL (137)"), (143, "SIGTERM (143)"), (255, "exit status 255")]
)
def test_a_status_is_described_by_its_signal(status: int, text: str) -> None:
    assert describe_status(status) == text
