"""`wait_until` waits for an experiment to reach a condition; what cannot come any more ends the wait at once."""

from __future__ import annotations

from symphony_charts.backend.protocol import Watcher, find_instances
from symphony_charts.backend.status import FINAL, ExperimentStatus, Phase, overall
from symphony_charts.errors import CheckFailed, NotFound, ToolFailed, UsageError

__all__ = ["CONDITIONS", "wait_until"]

# What `symph wait --for=` takes.
CONDITIONS = ("running", "ready", "succeeded", "failed", "ended", "deleted")
_MOST_NAMES = 3


def wait_until(
    watcher: Watcher, name: str, condition: str, *, process: str = "", timeout_s: float | None = None
) -> ExperimentStatus | None:
    """Return the status once `condition` holds (of `process`, if given); None when the experiment is gone.

    Raises UsageError for an unknown condition, CheckFailed when it cannot hold any more, ToolFailed after `timeout_s`.
    """
    if condition not in CONDITIONS:
        raise UsageError(f'nothing waits for "{condition}"', next=f"one of {', '.join(CONDITIONS)}")
    last: ExperimentStatus | None = None
    try:
        for status in watcher.changes(name, timeout_s):
            if status is None:
                break
            last = status
            phase, ready = _state_of(status, process)
            if _holds(phase, ready, condition):
                return status
            if phase in FINAL and condition != "deleted":
                reasons = _reasons(status, process) or status.note or "no process says why"
                verb = "is" if phase in ("damaged", "lost") else "has"
                what = f'"{process or name}" {verb} {phase} and will not be {condition}: {reasons}'
                raise CheckFailed(what, next=f"symph logs {name}")
        else:
            how = f"{_state_of(last, process)[0]}: {_reasons(last, process)}" if last else "silent"
            what = f'"{process or name}" is not {condition} after {timeout_s or 0:g} s, but {how}'
            raise ToolFailed(what, next=f"wait longer with --timeout, or look: symph describe {name}")
    except NotFound:
        if condition != "deleted":
            raise
    if condition != "deleted":
        raise CheckFailed(f'"{name}" is gone; it will never be {condition}')
    return None


def _state_of(status: ExperimentStatus, process: str) -> tuple[Phase, bool]:
    chosen = (
        find_instances(status, process)
        if process
        else [instance for instance in status.instances if not instance.is_step]
    )
    if process and not chosen:
        raise NotFound(f'experiment "{status.name}" has no process "{process}"')
    ready = bool(chosen) and all(instance.ready or instance.phase == "succeeded" for instance in chosen)
    return overall(chosen) if process else status.phase, ready


def _holds(phase: Phase, ready: bool, condition: str) -> bool:
    if condition == "ready":
        return ready
    if condition == "running":
        return phase in ("running", "succeeded")
    return phase in FINAL if condition == "ended" else phase == condition


def _reasons(status: ExperimentStatus, process: str) -> str:
    chosen = find_instances(status, process) if process else status.instances
    together: dict[str, list[str]] = {}
    for instance in chosen:
        if instance.phase in ("failed", "pending", "queued"):
            together.setdefault(instance.state, []).append(instance.path)
    return "; ".join(f"{_few(paths)} {state}" for state, paths in together.items())


def _few(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMES
    return ", ".join(paths[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
