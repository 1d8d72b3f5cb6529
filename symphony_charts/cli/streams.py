"""What stdin, stdout and stderr are to every command, whatever the locale says and whichever of them is closed.

What goes into a pipe or a file is UTF-8, as YAML and JSON are; a terminal is written to in its own encoding.
"""

from __future__ import annotations

import codecs
import os
import select
import sys
from typing import Any

__all__ = ["is_cut_off", "leave_quietly", "prepare_streams"]

_ERRORS = "symph"


def prepare_streams() -> None:
    """Make all three streams usable: no text is refused by their encoding, and a closed one swallows what is written.

    A closed descriptor would otherwise be that of the next file we open, and programs we start would write into it.
    """
    codecs.register_error(_ERRORS, _escaped)
    for descriptor in range(3):
        if not _is_open(descriptor):
            # The lowest free descriptor is taken, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # A test or a notebook may have put something else there.
            reconfigure(encoding=None if stream.isatty() else "utf-8", errors=_ERRORS)


def is_cut_off() -> bool:
    """Whether somebody closed the other end of stdout or stderr, as `head` does when it has seen enough."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def leave_quietly() -> None:
    """Send what is still to be written nowhere: Python flushes both streams once more at exit and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _stream(descriptor: int, mode: str) -> Any:
    return os.fdopen(descriptor, mode, encoding="utf-8", closefd=False)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What an encoding lacks, in ASCII: names that are no UTF-8, and letters that a terminal does not know."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end].replace("\u2026", "...")
    return letters.encode("ascii", "backslashreplace").decode("ascii"), error.end
