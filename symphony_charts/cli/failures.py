"""The border where exceptions become text on stderr and an exit status; nothing else in the package does that."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from symphony_charts.cli.streams import is_cut_off, leave_quietly, prepare_streams

__all__ = ["INTERRUPTED", "status_of", "tell"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.errors import SymphError, ToolFailed

SCRIPT = 3
OUTPUT_LOST = 6
BUG = 70
INTERRUPTED = 130
# What pathlib says of `~` without a home.
_NO_HOME = "Could not determine home directory."
# What a shell reports of a program that died of SIGPIPE, as `git log | head` does.
BROKEN_PIPE = 141


def status_of(action: Callable[[], int], is_verbose: Callable[[], bool]) -> int:
    """Run `action` and return the exit status of the command.

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
            status = _status_of_error(error, is_verbose())
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


def _status_of_error(error: Exception, verbose: bool) -> int:
    from symphony_charts.errors import SymphError, ToolFailed

    if not isinstance(error, SymphError):
        return _report_unexpected(error, verbose)
    _say(_blocks(error))
    if error.__cause__ is not None and error.exit_code == SCRIPT:
        _say_script(error.__cause__)
    if isinstance(error, ToolFailed):
        _say(_tool_output(error, verbose))
    if verbose:
        _say_traceback(error)
    return error.exit_code


def _of_the_machine(error: Exception) -> SymphError | None:
    """What the operating system refused and no code of ours foresaw; None for any other error.

    A path that cannot be used and a disk that is full are faults of the machine, wherever they are met.
    """
    from symphony_charts.errors import ToolFailed, UsageError

    if isinstance(error, RuntimeError) and str(error) == _NO_HOME:
        return UsageError("a path begins with ~, and no home folder is known for it", "", "write the whole path")
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.filename is None and not _has_folder():
        return ToolFailed("the current folder is not there any more", "", "go to another: cd")
    step = "SYMPH_STATE_DIR, SYMPH_RUNTIME_DIR and TMPDIR say where symph keeps files of its own"
    return ToolFailed(f"this machine refuses: {error.strerror}", os.fsdecode(str(error.filename or "")), step)


def _has_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def tell(error: SymphError) -> None:
    """Print an error after which the command goes on."""
    _say(_blocks(error))


def _blocks(error: SymphError) -> str:
    """The error's text with ``error:`` before each fault; further lines of a fault are indented already."""
    extra = getattr(error, "extra", "")
    if extra:
        from symphony_charts.system.installation import command_for_extra

        error.next = f"{error.next}: {command_for_extra(extra)}"
    lines = str(error).split("\n")
    return "\n".join(line if line.startswith("  ") else f"error: {line}" for line in lines)


def _tool_output(error: ToolFailed, verbose: bool) -> str:
    """What the program said: the last lines of stderr, or everything with `-v`."""
    heard = error.stderr.rstrip().splitlines()
    if not verbose:
        return "\n".join(f"  | {line}" for line in heard[-10:])
    text = [f"  ran: {' '.join(error.argv)}", f"  exit status {error.status} after {error.seconds:.2f} s"]
    text += [f"  | {line}" for line in [*error.stdout.rstrip().splitlines(), *heard]]
    return "\n".join(text)


def _report_unexpected(error: Exception, verbose: bool) -> int:
    """An error that nobody foresaw: of a script that we were given to run, or of ours."""
    from symphony_charts.cli.scripts import their_error

    theirs = their_error(error)
    if theirs is None:
        refused = _of_the_machine(error)
        if refused is None:
            return _report_bug(error, verbose)
        refused.__cause__ = error
        return _status_of_error(refused, verbose)
    _say(f"error: {theirs.what}")
    _say(f"  at:   {theirs.place}\n  next: the script itself raised this")
    _say("\n".join(f"  | {line}" for line in theirs.lines))
    if verbose:
        _say_traceback(error)
    return SCRIPT


def _say_script(cause: BaseException) -> None:
    """Where an error began in somebody's script, its own traceback."""
    from symphony_charts.cli.scripts import their_error

    theirs = their_error(cause)
    if theirs is not None:
        _say("\n".join(f"  | {line}" for line in theirs.lines))


def _report_bug(error: Exception, verbose: bool) -> int:
    _say(f"error: {type(error).__name__}: {error}" if str(error) else f"error: {type(error).__name__}")
    _say(f"  at:   {_write_log(error)}")
    _say("  next: this is a bug in symph; please report it with that file")
    if verbose:
        _say_traceback(error)
    return BUG


def _write_log(error: Exception) -> str:
    """The path of a new file, readable by its owner alone, that holds the traceback."""
    import tempfile
    import time
    import traceback

    from symphony_charts.system.user_folders import state_dir

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    prefix = f"symph-{time.strftime('%Y%m%d-%H%M%S')}-"
    try:
        folder = state_dir() / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(".log", prefix, folder)
    except OSError:
        # A home that cannot be written must not hide the bug.
        descriptor, path = tempfile.mkstemp(".log", prefix)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _say_traceback(error: Exception) -> None:
    import traceback

    _say("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())


def _say(text: str) -> None:
    if text:
        sys.stderr.write(f"{text}\n")
