"""`Feed` hands the lines of each instance to its tile: by a thread and a named pipe each, which a `cat` reads."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import LogQuery
from symphony_charts.errors import SymphError
from symphony_charts.formats.printable import terminal_line

__all__ = ["Feed"]

# So many lines that are there already are shown.
_TAIL = 500


class Feed:
    """Pipes in `folder`, one for each of the instances `paths` of an experiment.

    Who reads one sees its end when this program is gone, however that ended, so that no tile outlives it.
    """

    def __init__(self, watcher: Watcher, name: str, paths: Sequence[str], folder: Path) -> None:
        self._watcher, self._name = watcher, name
        self.pipes = {path: folder / str(number) for number, path in enumerate(paths)}
        for pipe in self.pipes.values():
            os.mkfifo(pipe, 0o600)

    def start(self) -> None:
        """Begin to hand on what is there and what comes; a line drives the terminal no further than by its colours."""
        for path, pipe in self.pipes.items():
            threading.Thread(target=self._hand_on, args=(path, pipe), daemon=True).start()

    def _hand_on(self, path: str, pipe: Path) -> None:
        query = LogQuery(instances=(path,), tail=_TAIL, follow=True)
        # Left open at the end of the lines: the tile stays. A tile that was closed ends this with BrokenPipeError.
        descriptor = os.open(pipe, os.O_WRONLY)
        with contextlib.suppress(BrokenPipeError):
            try:
                for line in self._watcher.logs(self._name, query):
                    _write(descriptor, terminal_line(line.text.removesuffix("\n")))
            except SymphError as error:
                _write(descriptor, f"symph: {error.what}")
            except Exception as error:
                # Nobody sees what a thread prints as it dies: the terminal is full of tiles.
                _write(descriptor, f"symph: {type(error).__name__}: {error}")


def _write(descriptor: int, text: str) -> None:
    rest = f"{text}\n".encode("utf-8", "replace")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
