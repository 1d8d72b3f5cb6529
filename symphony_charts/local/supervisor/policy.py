"""`judge` says what follows from the end of a process: start it again, go on without it, or stop the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from symphony_charts.local.plan.records import OnExit, Restart

__all__ = ["Backoff", "Decision", "decide", "describe_status", "judge"]

# Stands for the status of a process that ended well only because its liveness probe had it ended.
_UNHEALTHY = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Seconds before restart number 0, 1, 2...: `base_s` doubling to `cap_s`, from the start again after a long life.

    Kubernetes waits 10 s doubling to 300 s and forgets after 10 minutes; one machine need not be so patient.
    """

    base_s: float = 1.0
    cap_s: float = 30.0
    forget_s: float = 600.0

    def delay_s(self, restarts: int) -> float:
        """The pause before the next start of a process that was started again `restarts` times already."""
        return min(self.cap_s, self.base_s * float(2 ** min(restarts, 30)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`restart` after `delay_s`, `done` (ended well), `failed` for good, and whether that `stops` the run."""

    action: Literal["restart", "done", "failed"]
    delay_s: float = 0.0
    stops: bool = False


def decide(
    *,
    status: int | None,
    is_service: bool,
    restart: Restart,
    retries: int,
    on_exit: OnExit,
    restarts: int,
    in_a_row: int,
    backoff: Backoff,
) -> Decision:
    """Decide what follows from exit status `status` (None: unknown) of a process that was restarted `restarts` times.

    `in_a_row` of these restarts came without a long life before them; the pause depends on them.

    Finite processes that end with 0 are done. An unknown status is a failure. Failures are retried `retries` times
    under `on-failure` (at least Kubernetes' backoffLimit semantics: the first run is not a retry) and without end under
    `always`. A service that may not restart has failed when it ends, whatever its status.
    """
    if restart == "always" or (on_exit == "restart" and status != 0):
        return Decision(action="restart", delay_s=backoff.delay_s(in_a_row))
    if status == 0 and not is_service:
        return Decision(action="done")
    if restart == "on-failure" and status != 0 and (is_service or restarts < retries):
        return Decision(action="restart", delay_s=backoff.delay_s(in_a_row))
    return Decision(action="failed", stops=on_exit == "stop-all")


def judge(process: Mapping[str, Any], planned: Mapping[str, Any], status: int | None, backoff: Backoff) -> Decision:
    """What follows from the end of `process` (as `state.json` has it) that was `planned` (as `plan.json` has it)."""
    if process.get("is_overdue"):
        # As a Job past its deadline: it has failed, however it ended and whatever retries are left.
        return Decision(action="failed", stops=planned["on_exit"] == "stop-all")
    if process.get("unhealthy") and planned["restart"] != "never":
        # Ended by its liveness probe: that it then left in peace is no success.
        status = _UNHEALTHY if status == 0 else status
    return decide(
        status=status,
        is_service=planned["is_service"],
        restart=planned["restart"],
        retries=planned["retries"],
        on_exit=planned["on_exit"],
        restarts=process["restarts"],
        in_a_row=process.get("in_a_row", 0),
        backoff=backoff,
    )


def describe_status(status: int | None) -> str:
    """Return a status in words: ``exit status 3``, with a signal as in a pod ``SIGKILL (137)``; None is unknown."""
    if status is None:
        return "exit status unknown"
    signals = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE"}
    signals[15] = "SIGTERM"
    name = signals.get(status - 128)
    return f"{name} ({status})" if name else f"exit status {status}"
