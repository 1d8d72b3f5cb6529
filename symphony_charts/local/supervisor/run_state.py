"""A run under watch: what is known of it, and how it is brought to its end."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from typing import Any

from symphony_charts.local.plan.records import Check
from symphony_charts.local.runs import Run, write_json
from symphony_charts.local.supervisor.cleanup import remove_private, sweep
from symphony_charts.local.supervisor.event_loop import Loop
from symphony_charts.local.supervisor.log_clock import LogClock
from symphony_charts.local.supervisor.panes import Panes
from symphony_charts.local.supervisor.probe_runner import Checks
from symphony_charts.local.supervisor.requests import withdraw

__all__ = ["StateFile", "WatchedRun"]


class WatchedRun(ABC):
    """`slots` holds for each process what `state.json` says of it; `dirty` says that it has to be written again.

    `phase` is ``over`` once nothing runs any more, and `reason` what the run is called from then on.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.plan = run, run.plan()
        self.file = StateFile(run)
        self.old = self.file.old
        self.slots: list[dict[str, Any]] = [dict(process) for process in self.old["processes"]]
        self.loop = Loop()
        self.panes = Panes(run, self.slots, self.loop, self._ended)
        self.checks = Checks(run, self.loop, self._changed, self._dead)
        self.phase, self.reason, self.failed = "running", "", self.old.get("failed")
        self.dirty = True
        self.clock = LogClock([run.process_dir(slot) / "log" for slot in range(len(self.slots))])

    def stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace, KILL to everything."""
        if self.phase != "running":
            return
        self.phase, self.reason, self.dirty = "stopping", reason, True
        for slot, process in enumerate(self.slots):
            if slot in self.panes:
                self._end(slot)
            elif process["phase"] in ("waiting", "backoff"):
                process["phase"] = "stopped"
        self._stop_when_empty()

    @abstractmethod
    def _ended(self, slot: int) -> None:
        """The program of a slot has ended."""

    @abstractmethod
    def _changed(self, slot: int, is_ready: bool, why: str) -> None:
        """A process has become ready, or is not, and why."""

    @abstractmethod
    def _dead(self, slot: int, check: Check, why: str) -> None:
        """A check has found that a process must end."""

    def _end(self, slot: int, grace_s: float | None = None) -> None:
        self.checks.leave(slot)
        self.panes.end(slot, self.plan["processes"][slot]["grace_s"] if grace_s is None else grace_s)

    def _stop_when_empty(self) -> None:
        if not self.panes:
            self.phase = "over"

    def _finish(self) -> None:
        """Nothing of the run may be left: what still is gets killed, and what survives that is named."""
        server, has_namespace = int(self.old.get("tmux", 0)), self.plan["has_namespace"]
        left = sweep(self.run, self.panes.sessions, has_namespace=has_namespace, server=server)
        self.clock.note()
        self.phase = self.reason
        self._save(survivors=left)
        remove_private(self.run.folder, len(self.slots))

    def _save(self, survivors: list[int] | None = None) -> None:
        if self.dirty or survivors is not None:
            self.dirty = False
            # A run that is over has not ended yet: its logs are still being written.
            phase = "stopping" if self.phase == "over" else self.phase
            news = {"phase": phase, "reason": self.reason, "failed": self.failed, "processes": self.slots}
            self.file.save(news, survivors)


class StateFile:
    """What was read at first is `old`; `save` writes it with the news laid over it."""

    def __init__(self, run: Run) -> None:
        self._run, self.old = run, run.state()
        self._granted: list[int] = []

    def grant(self, slot: int) -> None:
        """Take back the request of this slot once what came of it is written."""
        self._granted.append(slot)

    def save(self, news: dict[str, Any], survivors: list[int] | None = None) -> None:
        """Write the file; with `survivors` for the last time."""
        supervisor, ended = (os.getpid(), None) if survivors is None else (0, time.time())
        last = {"supervisor": supervisor, "ended": ended, "survivors": survivors or []}
        write_json(self._run.folder / "state.json", {**self.old, **news, **last})
        while self._granted:
            # Only now: whoever takes over finds either what was asked for or what came of it.
            withdraw(self._run, self._granted.pop())
