"""`LinePrinter` prints the lines of processes, each after its name where there are several, and what befalls them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable

from symphony_charts.backend.status import LogLine
from symphony_charts.backend.telling import Told
from symphony_charts.cli import output
from symphony_charts.formats.printable import printable_line, terminal_line

__all__ = ["LinePrinter"]

# Colours of names in merged logs: one each, in turn.
_NAME_COLORS = ("36", "33", "35", "32", "34", "31")


class LinePrinter:
    """Prints lines to stdout and changes to stderr, whole and one at a time, whichever threads bring them.

    With `form` ``json`` each is an object on a line of its own, on stdout. On a terminal a line may colour itself and
    do nothing else to it. `has_names` puts names before lines, padded to the longest of `names`.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        form: str = "table",
        color: str | None = None,
        has_times: bool = False,
        is_live: bool = False,
        has_names: bool = True,
    ) -> None:
        self._form, self._has_times, self._is_live, self._has_names = form, has_times, is_live, has_names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._width = max(map(len, self._numbers), default=0)
        self._has_color = output.use_color(sys.stdout, color)
        self._has_color_beside = output.use_color(sys.stderr, color)
        self._is_terminal = sys.stdout.isatty()
        self._turn = threading.Lock()
        self._prefixes: dict[str, str] = {}

    def print(self, line: LogLine) -> None:
        """Print one line that a process wrote."""
        text = line.text.removesuffix("\n")
        if self._form == "json":
            self._write_object({"time": line.time, "process": line.process, "line": text})
            return
        text = terminal_line(text) if self._is_terminal else text
        with self._turn:
            sys.stdout.write(f"{self._stamp(line.time)}{self._prefix(line.process)}{text}\n")
            if self._is_live:
                sys.stdout.flush()

    def tell(self, told: Told) -> None:
        """Print what has changed of some processes."""
        if self._form == "json":
            self._write_object({"time": time.time(), "processes": list(told.paths), "change": told.text})
            return
        mark = output.paint("!", "bad", self._has_color_beside) if told.is_bad else "*"
        text = output.paint(printable_line(told.text), "bad" if told.is_bad else "dim", self._has_color_beside)
        name = self._painted(told.name, told.paths[0], self._has_color_beside)
        with self._turn:
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
        if not self._has_names:
            return ""
        known = self._prefixes.get(name)
        if known is None:
            known = self._prefixes[name] = f"{self._painted(name, name, self._has_color)} | "
        return known

    def _painted(self, text: str, name: str, has_color: bool) -> str:
        padded = text.ljust(self._width)
        if not has_color:
            return padded
        number = self._numbers.setdefault(name, len(self._numbers))
        return f"\x1b[{_NAME_COLORS[number % len(_NAME_COLORS)]}m{padded}\x1b[0m"
