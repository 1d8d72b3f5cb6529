"""`diagnose` says why an experiment does not run: for `status`, `describe`, `process` and the end of `run` alike."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery
from symphony_charts.backend.why import Why, why_of
from symphony_charts.cli import output
from symphony_charts.errors import SymphError
from symphony_charts.formats.printable import printable_line

__all__ = ["diagnose", "say"]

_MOST = 200


def diagnose(watcher: Watcher, status: ExperimentStatus) -> Why | None:
    """`why_of`, with the last line of what failed, and with the plan's reason for what no node takes."""
    why = why_of(status)
    if why is None or status.backend != "kube":
        # Here the supervisor has kept the last line.
        return why
    if why.cause == "failed":
        line = _last_line(watcher, status, why.paths[0])
        return replace(why, text=f"{why.text}: {line}") if line and line not in why.text else why
    if why.cause == "pool":
        # Placement takes 100 ms to import.
        from symphony_charts.cli.full_pools import with_plan

        return with_plan(watcher, status, why)
    return why


def say(why: Why | None) -> None:
    """Print a cause and the step to take, for people; nothing where something is just being started."""
    if why is not None and why.cause != "start":
        output.note(f"why:  {why.sentence}" + (f"\nnext: {why.next}" if why.next else ""))


def _last_line(watcher: Watcher, status: ExperimentStatus, path: str) -> str:
    """What an instance wrote last; empty where its log is gone."""
    instance = next(each for each in status.instances if each.path == path)
    is_back = instance.phase != "failed" and instance.restarts > 0
    for previous in (is_back, not is_back):
        try:
            lines = deque(watcher.logs(status.name, LogQuery(instances=(path,), tail=1, previous=previous)), maxlen=1)
        except SymphError:
            # Its pod is gone, or it has no run before this one.
            continue
        if lines:
            return printable_line(lines[0].text.rstrip())[:_MOST]
    return ""
