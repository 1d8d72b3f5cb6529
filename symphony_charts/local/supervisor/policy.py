"""Decide what follows from the end of a process: restart it, continue without it, or stop the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from symphony_charts.local.plan.records import Backoff, PlannedProcess
from symphony_charts.local.run_state import ProcessState

__all__ = ["Decision", "describe_status", "restart_decision"]

# The status of a process that exited with 0 after its liveness probe had ended it.
_UNHEALTHY = 137
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    6: "SIGABRT",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`restart` after `delay_s`, `done` (ended well), `failed` for good, and whether that `stops` the run."""

    action: Literal["restart", "done", "failed"]
    delay_s: float = 0.0
    stops: bool = False


def restart_decision(process: ProcessState, planned: PlannedProcess, status: int | None, backoff: Backoff) -> Decision:
    """Decide what follows from the end of a process with `status` (None: unknown, which is a failure).

    Finite processes that end with 0 are done. Failures are retried `retries` times under `on-failure` (as with a Job's
    backoffLimit the first run is no retry) and without end under `always`. A service that may not restart has failed
    when it ends, whatever its status.
    """
    stops = planned.on_exit == "stop-all"
    if process.is_overdue:
        # As a Job past its deadline: it has failed, however it ended and whatever retries are left.
        return Decision(action="failed", stops=stops)
    if process.unhealthy and planned.restart != "never" and status == 0:
        # It is no success if the liveness probe ended the process.
        status = _UNHEALTHY
    if planned.restart == "always" or (planned.on_exit == "restart" and status != 0):
        return Decision(action="restart", delay_s=backoff.delay_s(process.in_a_row))
    if status == 0 and not planned.is_service:
        return Decision(action="done")
    has_retries = planned.is_service or process.restarts < planned.retries
    if planned.restart == "on-failure" and status != 0 and has_retries:
        return Decision(action="restart", delay_s=backoff.delay_s(process.in_a_row))
    return Decision(action="failed", stops=stops)


def describe_status(status: int | None) -> str:
    """Return a status in words: ``exit status 3``, with a signal as in a pod ``SIGKILL (137)``; None is unknown."""
    if status is None:
        return "exit status unknown"
    name = _SIGNALS.get(status - 128)
    return f"{name} ({status})" if name else f"exit status {status}"
