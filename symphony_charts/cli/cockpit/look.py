"""`Looker` asks a backend twice a second how an experiment is, for a screen that shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery, Usage
from symphony_charts.errors import SymphError

__all__ = ["Looker", "Picture", "Wish"]

_TAIL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the screen shows: an experiment, one of its instances (a path), and which of its lines (all: empty)."""

    name: str
    path: str = ""
    regex: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What was found for a wish: `status` is None where it could not be found, and `fault` says why."""

    wish: Wish
    names: tuple[str, ...] = ()
    status: ExperimentStatus | None = None
    usage: Mapping[str, Usage]
    last: Mapping[str, str]
    lines: tuple[str, ...] = ()
    now: float
    fault: str = ""


class Looker:
    """A thread that gives `show` a picture of what is wished for, every `interval_s` and whenever the wish changes."""

    def __init__(self, watcher: Watcher, wish: Wish, show: Callable[[Picture], None], interval_s: float) -> None:
        self._watcher, self._show, self._interval_s = watcher, show, interval_s
        self._wish = wish
        self._is_over, self._is_new = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def wish(self, wish: Wish) -> None:
        """Look at something else from now on."""
        self._wish = wish
        self._is_new.set()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._is_new.set()

    def _look(self) -> None:
        while not self._is_over.is_set():
            self._is_new.clear()
            self._show(self._picture(self._wish))
            self._is_new.wait(self._interval_s)

    def _picture(self, wish: Wish) -> Picture:
        watcher, now = self._watcher, time.time()
        try:
            status = watcher.describe(wish.name, events=False)
            paths = [instance.path for instance in status.instances]
            path = wish.path if wish.path in paths else next(iter(paths), "")
            query = LogQuery(instances=(path,), tail=_TAIL, regex=wish.regex)
            return Picture(
                wish=wish,
                names=tuple(sorted({*watcher.names(), wish.name})),
                status=status,
                usage=watcher.usage(wish.name),
                last=watcher.last_lines(wish.name),
                lines=tuple(line.text.removesuffix("\n") for line in watcher.logs(wish.name, query)) if path else (),
                now=now,
            )
        except SymphError as error:
            return Picture(wish=wish, usage={}, last={}, now=now, fault=str(error.what))
