"""The tmux server of a run, with everything mounted that its processes see; it starts while the run is prepared."""

from __future__ import annotations

import contextlib
import os
import threading

from symphony_charts.errors import ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.machine.machine import namespace_prefix
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.cleanup import sweep

__all__ = ["Server"]


class Server:
    """Starts the server of `run` at once; `start_all` then waits for it."""

    def __init__(self, run: Run, plan: LocalPlan) -> None:
        self._run = run
        self._error: Exception | None = None
        self._prefix = [*namespace_prefix(), "/bin/sh", str(run.folder / "enter")] if plan.has_namespace else []
        self._thread = threading.Thread(target=self._start)
        self._thread.start()

    def start_all(self) -> None:
        """Start everything by one call of tmux. Raises ToolFailed with what tmux said, ToolMissing without tmux."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        tmux_client.source_file(self._run.socket, self._run.folder / "up.conf")

    def kill(self) -> None:
        """End it and everything in it, however far it has come."""
        self._thread.join()
        panes: list[tmux_client.Pane] = []
        with contextlib.suppress(ToolFailed):
            # It answers when it has started all it was told to, also what nobody waits for any more.
            panes = tmux_client.list_panes(self._run.socket)
        sessions, server = {pane.pid for pane in panes}, panes[0].server if panes else 0
        sweep(self._run, sessions, has_namespace=bool(self._prefix), server=server)

    def _start(self) -> None:
        # What wrapper.sh forgets again; a process has its own exact environment.
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        try:
            tmux_client.start(self._run.socket, self._prefix, {**env, "TERM": "tmux-256color"})
        except Exception as error:
            self._error = error
