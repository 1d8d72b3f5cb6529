"""`launching` says how a command was started: what spec files in Python are run as, and who is told of long waits.

Light on purpose: every command line imports this, and most read no such file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

__all__ = ["Launcher", "launcher", "launching"]


class Launcher:
    """How Python files are run: with the import names that `around` lends, and as programs where there are `words`.

    `tell` is called with a line for whoever waits; without it nobody does.
    """

    __slots__ = ("around", "tell", "words")

    # A plain class: importing dataclasses costs more than half of `symph --help`.
    def __init__(
        self,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
        words: tuple[str, ...] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.around = around
        self.tell = tell
        self.words = words


_USUAL = Launcher()
_LAUNCHER: ContextVar[Launcher] = ContextVar("launcher", default=_USUAL)


def launcher() -> Launcher:
    """Return the one that counts here."""
    return _LAUNCHER.get()


@contextmanager
def launching(launcher: Launcher) -> Iterator[None]:
    """Inside, the command was started as `launcher` says."""
    before = _LAUNCHER.set(launcher)
    try:
        yield
    finally:
        _LAUNCHER.reset(before)
