"""Print log lines and state changes of an experiment while a command waits."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from symphony_charts.backend.diagnosis import EventFeed, StatusChange
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogLine, LogQuery
from symphony_charts.cli import output
from symphony_charts.errors import SymphError
from symphony_charts.formats.printable import printable_line, terminal_line

# Colours of names in merged logs, in turn.
_NAME_COLORS = ("36", "33", "35", "32", "34", "31")


class LinePrinter:
    """Print lines to stdout and changes to stderr, one whole line at a time; safe for several threads.

    With `form` ``json`` print each as a JSON object per line on stdout. On a terminal, lines keep their colours but no
    other control sequences. `has_names` puts names before lines, padded to the longest of `names`.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        form: str = "table",
        has_times: bool = False,
        is_live: bool = False,
        has_names: bool = True,
    ) -> None:
        self._form, self._has_times, self._is_live, self._has_names = form, has_times, is_live, has_names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._width = max(map(len, self._numbers), default=0)
        self._has_color = output.use_color(sys.stdout)
        self._has_color_beside = output.use_color(sys.stderr)
        self._is_terminal = sys.stdout.isatty()
        self._turn = threading.Lock()
        self._prefixes: dict[str, str] = {}
        # The unfinished line at the end of the terminal.
        self._unfinished = ""

    @property
    def shows_unfinished(self) -> bool:
        return self._is_terminal and self._is_live and self._form != "json"

    def show_unfinished(self, name: str, text: str) -> None:
        """Show the unfinished line of `name` in place, at the end of the terminal; remove it if `text` is empty."""
        with self._turn:
            line = f"{self._prefix(name)}{self._cut(text)}" if text else ""
            if line != self._unfinished:
                self._clear_unfinished()
                sys.stdout.write(line)
                sys.stdout.flush()
                self._unfinished = line

    def _clear_unfinished(self) -> None:
        """Remove the unfinished line, so that another one can be written in its place."""
        if self._unfinished:
            sys.stdout.write("\r\x1b[K")
            self._unfinished = ""

    def _cut(self, text: str) -> str:
        # A character in the last column would move some terminals to the next line.
        room = shutil.get_terminal_size().columns - 1
        return output.cut(text, max(room - (self._width + 3 if self._has_names else 0), 1))

    def _shown(self, text: str) -> str:
        # A progress bar has the width of another terminal.
        return self._cut(last_state(text)) if "\r" in text.rstrip("\r") else terminal_line(text)

    def print(self, line: LogLine) -> None:
        """Print a line, or the lines of a block."""
        text = line.text.removesuffix("\n")
        if self._form == "json":
            for part in text.split("\n"):
                self._write_object({"time": line.time, "process": line.process, "line": part})
            return
        text = "\n".join(map(self._shown, text.split("\n"))) if self._is_terminal else text
        with self._turn:
            self._clear_unfinished()
            prefix = f"{self._stamp(line.time)}{self._prefix(line.process)}"
            sys.stdout.write(prefix + (text.replace("\n", f"\n{prefix}") if prefix else text) + "\n")
            if self._is_live:
                sys.stdout.flush()

    def tell(self, told: StatusChange) -> None:
        if self._form == "json":
            self._write_object({"time": time.time(), "processes": list(told.paths), "change": told.text})
            return
        mark = output.paint("!", "bad", self._has_color_beside) if told.is_bad else "*"
        text = output.paint(printable_line(told.text), "bad" if told.is_bad else "dim", self._has_color_beside)
        name = self._painted(told.name, told.paths[0], self._has_color_beside)
        with self._turn:
            self._clear_unfinished()
            sys.stdout.flush()
            sys.stderr.write(f"{self._stamp(time.time())}{name} {mark} {text}\n")
            sys.stderr.flush()

    def _write_object(self, record: dict[str, object]) -> None:
        with self._turn:
            sys.stdout.write(f"{output.json_text(record)}\n")
            if self._is_live:
                sys.stdout.flush()

    def _stamp(self, moment: float) -> str:
        if not self._has_times:
            return ""
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment)) + f".{int(moment % 1 * 1000):03d} "

    def _prefix(self, name: str) -> str:
        if self._has_names and name not in self._prefixes:
            self._prefixes[name] = f"{self._painted(name, name, self._has_color)} | "
        return self._prefixes.get(name, "")

    def _painted(self, text: str, name: str, has_color: bool) -> str:
        padded = text.ljust(self._width)
        if not has_color:
            return padded
        number = self._numbers.setdefault(name, len(self._numbers))
        return f"\x1b[{_NAME_COLORS[number % len(_NAME_COLORS)]}m{padded}\x1b[0m"


def last_state(text: str) -> str:
    """Return what a line that carriage returns rewrite shows last, without colours."""
    return printable_line(text.rstrip("\r").rpartition("\r")[2])


# Seconds between two looks at unfinished lines.
_UNFINISHED_S = 0.2
# Seconds to wait for lines, so that they are printed before the change that they caused.
_LINES_S = 0.1


class Follower:
    """Threads that print until the experiment has reached a final state or is gone.

    `query` selects the lines; without it only state changes are printed. If `run` is given, a new run of the same name
    is an end, too. `last` is the last known status, None once the experiment is gone.
    """

    def __init__(
        self, watcher: Watcher, name: str, printer: LinePrinter, query: LogQuery | None = None, run: str = ""
    ) -> None:
        self._watcher, self._name, self._run = watcher, name, run
        self._printer, self._query = printer, query
        self.last: ExperimentStatus | None = None
        self._teller = EventFeed()
        self._error: Exception | None = None
        self._is_gone = False
        self._turn = threading.Lock()
        self._is_over = threading.Event()
        targets = (self._print_lines, self._tell_changes, self._tell_waits, self._show_unfinished)
        self._threads = [threading.Thread(target=self._guarded, args=(target,), daemon=True) for target in targets]
        self._lines, self._changes, *_ = self._threads

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait(self) -> ExperimentStatus | None:
        """Return the final status after everything is printed. Raises the error that stopped the following."""
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
                # The lines of an experiment that is gone cannot be read; that is no error.
                self._error = self._error or error
            self._is_over.set()

    def _print_lines(self) -> None:
        for line in self._watcher.logs(self._name, replace(self._query, in_blocks=True)) if self._query else ():
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
        self._is_over.set()

    def _tell_waits(self) -> None:
        """Report long waits again: a continued wait causes no event."""
        while not self._is_over.wait(1.0):
            if self.last is not None and self._teller.is_somebody_waiting:
                self._tell(self.last)

    def _show_unfinished(self) -> None:
        """Show the progress bar or prompt that changed last, in place."""
        before: dict[str, str] = {}
        shown = ""
        while self._query and self._printer.shows_unfinished and not self._is_over.wait(_UNFINISHED_S):
            try:
                now = dict(self._watcher.unfinished_lines(self._name))
            except SymphError:
                # It is gone, which the other threads report.
                break
            if self._query.instances:
                now = {path: text for path, text in now.items() if path in self._query.instances}
            # A line that is still being written is neither: it has no carriage return, and grows.
            ready = {path: last_state(text) for path, text in now.items() if "\r" in text or before.get(path) == text}
            changed = [path for path in ready if now[path] != before.get(path)]
            shown = next(iter(changed), shown if shown in ready else next(iter(ready), ""))
            self._printer.show_unfinished(shown, ready.get(shown, ""))
            before = now
        self._printer.show_unfinished("", "")

    def _tell(self, status: ExperimentStatus) -> None:
        with self._turn:
            said = self._teller.tell(status, time.time())
        if status.is_final:
            self._lines.join()
        elif self._query and any(told.follows_lines for told in said):
            time.sleep(_LINES_S)
        wanted = self._query.instances if self._query else ()
        for told in said:
            if not wanted or set(told.paths) & set(wanted):
                self._printer.tell(told)
