"""`Follower` prints what an experiment does while somebody waits for its end: its lines, and its changes of state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery
from symphony_charts.backend.telling import Teller
from symphony_charts.cli.log_lines import LinePrinter

__all__ = ["Follower"]

# How long lines of a process may take from its log to here, in seconds: they stand before what they brought about.
_LINES_S = 0.1


class Follower:
    """Threads that print until the experiment has reached a final state or is gone.

    `query` says which lines; without one there are changes of state alone. A new run of the same name is as much an end
    where `run` says which one is meant. `last` is how it was when it was looked at last, None once it is gone.
    """

    def __init__(
        self, watcher: Watcher, name: str, printer: LinePrinter, query: LogQuery | None = None, run: str = ""
    ) -> None:
        self._watcher, self._name, self._run = watcher, name, run
        self._printer, self._query = printer, query
        self.last: ExperimentStatus | None = None
        self._teller = Teller()
        self._error: Exception | None = None
        self._is_gone = False
        self._turn = threading.Lock()
        self._is_over, self._is_somebody_waiting = threading.Event(), threading.Event()
        targets = (self._print_lines, self._tell_changes, self._tell_waits)
        self._threads = [threading.Thread(target=self._guarded, args=(target,), daemon=True) for target in targets]
        self._lines, self._changes, _ = self._threads

    def start(self) -> None:
        """Begin to print."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> ExperimentStatus | None:
        """How the experiment ended, once all of it has been printed. Raises what kept it from being followed."""
        self._is_over.wait()
        if self._error is not None:
            raise self._error
        self._changes.join()
        return self.last

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:
            if not self._is_gone:
                # Of what is gone nobody can read the lines any more, which is no news then.
                self._error = self._error or error
            self._stop()

    def _stop(self) -> None:
        self._is_over.set()
        self._is_somebody_waiting.set()

    def _print_lines(self) -> None:
        if self._query is None:
            return
        for line in self._watcher.logs(self._name, self._query):
            self._printer.print(line)

    def _tell_changes(self) -> None:
        for status in self._watcher.changes(self._name):
            if status is not None and self._run not in ("", status.run):
                break
            self.last = status
            if status is None:
                self._is_gone = True
                break
            self._tell(status)
            if status.is_final:
                break
        self._stop()

    def _tell_waits(self) -> None:
        """Look again at waits, of which nothing tells how long they last."""
        while self._is_somebody_waiting.wait() and not self._is_over.wait(1.0):
            if self.last is not None:
                self._tell(self.last)

    def _tell(self, status: ExperimentStatus) -> None:
        with self._turn:
            said = self._teller.tell(status, time.time())
            if self._teller.is_somebody_waiting:
                self._is_somebody_waiting.set()
            elif not self._is_over.is_set():
                self._is_somebody_waiting.clear()
        if status.is_final:
            self._lines.join()
        elif self._query and any(told.follows_lines for told in said):
            time.sleep(_LINES_S)
        wanted = self._query.instances if self._query else ()
        for told in said:
            if not wanted or set(told.paths) & set(wanted):
                self._printer.tell(told)
