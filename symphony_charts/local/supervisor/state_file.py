"""The state file of a run as its supervisor keeps it, and the requests that it answers."""

from __future__ import annotations

import os
import time
from typing import Any

from symphony_charts.local.runs import Run, write_json
from symphony_charts.local.supervisor.requests import withdraw

__all__ = ["StateFile"]


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
