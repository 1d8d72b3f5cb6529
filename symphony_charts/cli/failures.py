"""`status_of` is the border where exceptions become an exit status; `error_report` makes their text on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress

from symphony_charts.cli.streams import is_cut_off, leave_quietly, prepare_streams
from symphony_charts.formats.printable import printable_lines

__all__ = ["INTERRUPTED", "status_of"]

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
