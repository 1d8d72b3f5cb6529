"""Reactions to the end of a process."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.local.plan.records import Backoff, Restart
from symphony_charts.local.supervisor.decisions import Decision, describe_status, restart_decision
from tests.local.records import planned, process_state


def after(status: int, restart: Restart = "never", *, restarts: int = 0, **more: Any) -> Decision:
    process = process_state(restarts=restarts, in_a_row=restarts)
    return restart_decision(process, planned(restart=restart, **more), status, Backoff())


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(after(0), Decision(action="done"), id="a finite process ends well"),
        pytest.param(after(3), Decision(action="failed", stops=True), id="a failure stops the run by default"),
        pytest.param(after(3, on_exit="keep"), Decision(action="failed"), id="a failure is kept to itself"),
        pytest.param(after(0, is_service=True), Decision(action="failed", stops=True), id="a service that ends"),
        pytest.param(after(0, "always", is_service=True), Decision(action="restart", delay_s=1.0), id="a service"),
        pytest.param(
            after(1, "on-failure", retries=2, restarts=1), Decision(action="restart", delay_s=2.0), id="last retry"
        ),
        pytest.param(
            after(1, "on-failure", retries=2, restarts=2), Decision(action="failed", stops=True), id="no retry left"
        ),
    ],
)
def test_the_end_of_a_process_leads_to_a_decision(decision: Decision, expected: Decision) -> None:
    assert decision == expected


def test_pauses_double_up_to_the_cap() -> None:
    assert [Backoff().delay_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("status", "text"), [(3, "exit status 3"), (137, "SIGKILL (137)"), (143, "SIGTERM (143)"), (255, "exit status 255")]
)
def test_a_status_is_described_by_its_signal(status: int, text: str) -> None:
    assert describe_status(status) == text
