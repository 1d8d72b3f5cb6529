"""Turn exceptions into exit statuses, and prepare stdin, stdout and stderr."""

from __future__ import annotations

import codecs
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress

from symphony_charts.formats.printable import printable_lines

TYPE_CHECKING = False  # Importing `argparse` and `typing` takes 10 ms, half of `symph --help`.
if TYPE_CHECKING:
    import argparse
    from typing import Any

# Pipes and files get UTF-8, like YAML and JSON; a terminal gets its own encoding.

_ERRORS = "symph"


def prepare_streams() -> None:
    """Make all three streams usable: encode any text, and discard output to a closed stream.

    Otherwise a closed descriptor would become that of the next file, and child processes would write into it.
    """
    codecs.register_error(_ERRORS, _escaped)
    for descriptor in range(3):
        if not _is_open(descriptor):
            # open() takes the lowest free descriptor, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # Tests and notebooks may replace the stream.
            reconfigure(encoding=None if stream.isatty() else "utf-8", errors=_ERRORS)


def is_cut_off() -> bool:
    """Return True if the reader of stdout or stderr has closed the pipe, like `head`."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def leave_quietly() -> None:
    """Redirect stdout and stderr to /dev/null: Python flushes both again at exit and would print an error."""
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
    """Replace characters that the encoding lacks by ASCII: undecodable file names, letters missing in a terminal."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end].replace("\u2026", "...")
    return letters.encode("ascii", "backslashreplace").decode("ascii"), error.end


OUTPUT_LOST = 6
INTERRUPTED = 130
# Exit status that a shell reports for a program killed by SIGPIPE, as in `git log | head`.
BROKEN_PIPE = 141


def status_of(action: Callable[[], int], given: Callable[[], argparse.Namespace | None] = lambda: None) -> int:
    """Run `action` and return the exit status of the command whose arguments `given` returns.

    Print an expected error with its place and the next step; for any other, a bug, write the traceback to a log file
    and print its path. Exit quietly if the reader of the output is gone.
    """
    prepare_streams()
    try:
        try:
            status = action()
        except SystemExit as exit:
            status = _status_of_exit(exit)
        except KeyboardInterrupt:
            say("interrupted")
            status = INTERRUPTED
        except Exception as error:
            if isinstance(error, BrokenPipeError) and is_cut_off():
                raise
            # Tracebacks and log files take 15 ms to import; only a failure needs them.
            from symphony_charts.cli.error_report import report_error

            status = report_error(error, given())
        sys.stdout.flush()
    except OSError as error:
        return _status_of_output(error)
    return status


def _status_of_output(error: OSError) -> int:
    """Handle output that could not be written: the reader is gone, or the disk is full."""
    is_pipe = isinstance(error, BrokenPipeError)
    if not is_pipe:
        with suppress(OSError):
            say(f"error: cannot write the output: {error.strerror or error}")
    leave_quietly()
    return BROKEN_PIPE if is_pipe else OUTPUT_LOST


def _status_of_exit(exit: SystemExit) -> int:
    """Return the status of SystemExit, raised by argparse and user verbs; print a text as Python does."""
    if exit.code is None or isinstance(exit.code, int):
        return exit.code or 0
    say(str(exit.code))
    return 1


def say(text: str) -> None:
    """Print text to stderr without control sequences; nothing if it is empty."""
    if text:
        sys.stderr.write(f"{printable_lines(text)}\n")
