"""Turn exceptions into exit statuses, and prepare stdin, stdout and stderr."""

from __future__ import annotations

import argparse
import codecs
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from symphony_charts.formats.printable import printable_lines

# What goes into a pipe or a file is UTF-8, as YAML and JSON are; a terminal is written to in its own encoding.

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


OUTPUT_LOST = 6
INTERRUPTED = 130
# What a shell reports of a program that died of SIGPIPE, as `git log | head` does.
BROKEN_PIPE = 141


def _nothing() -> None:
    return None


def status_of(
    action: Callable[[], int], is_verbose: Callable[[], bool], given: Callable[[], argparse.Namespace | None] = _nothing
) -> int:
    """Run `action` and return the exit status of the command whose arguments are those `given`.

    An expected error is printed with what failed, where and what to do next; anything else is a bug of ours, whose
    traceback goes to a log file that is named. A reader that closed our output ends the command quietly.
    """
    prepare_streams()
    try:
        try:
            status = action()
        except SystemExit as exit:
            status = _status_of_exit(exit)
        except KeyboardInterrupt:
            _say("interrupted")
            status = INTERRUPTED
        except Exception as error:
            if isinstance(error, BrokenPipeError) and is_cut_off():
                raise
            # Tracebacks and log files take 15 ms to import, which only a failure pays.
            from symphony_charts.cli.error_report import report_error

            status = report_error(error, verbose=is_verbose(), args=given())
        sys.stdout.flush()
    except OSError as error:
        return _status_of_output(error)
    return status


def _status_of_output(error: OSError) -> int:
    """What was said could not be written: somebody has seen enough, or the disk is full."""
    is_pipe = isinstance(error, BrokenPipeError)
    if not is_pipe:
        with suppress(OSError):
            _say(f"error: cannot write the output: {error.strerror or error}")
    leave_quietly()
    return BROKEN_PIPE if is_pipe else OUTPUT_LOST


def _status_of_exit(exit: SystemExit) -> int:
    """argparse leaves with SystemExit after `--help`, and users' verbs may; a text is an error as in Python itself."""
    if exit.code is None or isinstance(exit.code, int):
        return exit.code or 0
    _say(str(exit.code))
    return 1


def _say(text: str) -> None:
    if text:
        sys.stderr.write(f"{printable_lines(text)}\n")
