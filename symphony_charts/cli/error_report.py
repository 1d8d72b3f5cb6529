"""`report_error` prints an error, its place and the next step to stderr, and returns the exit status.

An unexpected error comes from a user's script, printed with its traceback; from the machine; or from a bug in symph,
whose traceback goes to a log file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sysconfig
import tempfile
import time
import traceback
from pathlib import Path

from symphony_charts.cli.failures import say
from symphony_charts.cli.options import PLACE_FLAGS
from symphony_charts.errors import SymphError, ToolFailed, ToolMissing, UsageError, first_line
from symphony_charts.system.installation import command_for_extra
from symphony_charts.system.user_folders import elsewhere, is_lack_of_linux, state_dir

# The code that raises an error knows no flags, so each `symph VERB` in its next step gets those that the verb takes.

# A verb, and its arguments up to the next command.
_COMMAND = re.compile(r"\bsymph ([a-z][a-z-]*)(?= |$)((?:(?!\bsymph [a-z]).)*)", re.DOTALL)


def placed(step: str, args: argparse.Namespace) -> str:
    """Return `step` with the place flags of `args` added to each verb that takes them and does not have them yet."""
    # This machine is the default place.
    given = {name: str(value) for name in PLACE_FLAGS if (value := getattr(args, name, None)) not in (None, "", "tmux")}
    if not given or not hasattr(args, "symphony"):
        return step

    def completed(match: re.Match[str]) -> str:
        flags = []
        with contextlib.suppress(KeyError):
            for option in args.symphony.get_subparser(match[1])._actions:
                value = given.get(option.dest)
                is_set = not {*option.option_strings}.isdisjoint(match[2].split())
                if value and option.option_strings and not is_set and value in (option.choices or (value,)):
                    flags += [PLACE_FLAGS[option.dest], shlex.quote(value)]
        return " ".join([f"symph {match[1]}", *flags]) + match[2]

    return _COMMAND.sub(completed, step)


_SCRIPT = 3
_BUG = 70
_PACKAGE = Path(__file__).parents[1]
# Code that these modules call belongs to the user, wherever it is installed.
_RUNNERS = tuple(
    str(_PACKAGE / path) for path in ("spec/python_files.py", "integrations/torchx/components.py", "compat/__main__.py")
)
# Message of pathlib's error for `~` without a home.
_NO_HOME = "Could not determine home directory."
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def report_error(error: Exception, args: argparse.Namespace | None) -> int:
    """Print the error, with its next step completed from `args`; return the exit status."""
    if not isinstance(error, SymphError):
        return _report_unexpected(error, args)
    error.next = placed(error.next, args) if args is not None else error.next
    tell(error)
    if error.__cause__ is not None and error.exit_code == _SCRIPT:
        theirs = their_error(error.__cause__)
        say("\n".join(f"  | {line}" for line in theirs.lines) if theirs else "")
    if isinstance(error, ToolFailed):
        say(_tool_output(error, _is_verbose(args)))
    if os.environ.get("SYMPH_DEBUG"):
        say(_traceback_of(error).rstrip())
    return error.exit_code


def _is_verbose(args: argparse.Namespace | None) -> bool:
    return bool(getattr(args, "verbose", False) or os.environ.get("SYMPH_DEBUG"))


def _report_unexpected(error: Exception, args: argparse.Namespace | None) -> int:
    theirs = their_error(error)
    refused = elsewhere() if is_lack_of_linux(error) else _fault_of_the_machine(error) if theirs is None else None
    if refused is not None:
        refused.__cause__ = error
        return report_error(refused, args)
    say(_script_text(theirs) if theirs else _bug_text(error))
    if _is_verbose(args):
        say(_traceback_of(error).rstrip())
    return _SCRIPT if theirs else _BUG


def tell(error: SymphError) -> None:
    """Print an error with ``error:`` before each problem; further lines of a problem are already indented."""
    if isinstance(error, ToolMissing) and error.extra:
        error.next = f"{error.next}: {command_for_extra(error.extra)}"
    lines = str(error).split("\n")
    say("\n".join(line if line.startswith("  ") else f"error: {line}" for line in lines))


def _tool_output(error: ToolFailed, verbose: bool) -> str:
    """Return the program's output: the last lines of stderr, or everything with `-v`."""
    lines = error.stderr.rstrip().splitlines()
    if not verbose:
        return "\n".join(f"  | {line}" for line in lines[-10:])
    text = [f"  ran: {' '.join(error.argv)}", f"  exit status {error.status} after {error.seconds:.2f} s"]
    text += [f"  | {line}" for line in [*error.stdout.rstrip().splitlines(), *lines]]
    return "\n".join(text)


class TheirError:
    """An error in a user's script: message `what`, `place`, and `lines`, its traceback without symph's frames."""

    def __init__(self, error: BaseException, frames: traceback.StackSummary) -> None:
        self.what = f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")
        last = next((frame for frame in reversed(frames) if not _is_library(frame.filename)), None)
        self.place = f"{last.filename}:{last.lineno}" if last else ""
        if isinstance(error, SyntaxError):
            self.place = f"{error.filename}:{error.lineno}"
        whole = ["Traceback (most recent call last):\n", *frames.format()] if frames else []
        whole += traceback.format_exception_only(type(error), error)
        self.lines = "".join(whole).rstrip().splitlines()


def their_error(error: BaseException) -> TheirError | None:
    """Return `error`, or its cause, as an error of a user's script; None if it comes from symph.

    It comes from a script if no symph frame follows the script's last one, libraries aside.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = [number for number, frame in enumerate(frames) if _is_ours(frame.filename)]
    after = frames[ours[-1] + 1 :] if ours else frames
    is_run = bool(ours) and frames[ours[-1]].filename in _RUNNERS
    # A part of the script ran, not counting the import machinery that starts it.
    has_run = is_run and not isinstance(error, OSError) and not all(_is_machinery(frame.filename) for frame in after)
    if has_run or any(not _is_library(frame.filename) for frame in after) or _is_their_syntax(error):
        kept = [frame for frame in frames if not _is_ours(frame.filename) and not _is_machinery(frame.filename)]
        return TheirError(error, traceback.StackSummary.from_list(kept))
    return their_error(error.__cause__) if error.__cause__ is not None else None


def _is_their_syntax(error: BaseException) -> bool:
    file = error.filename if isinstance(error, SyntaxError) else None
    return bool(file and not _is_ours(file) and not _is_library(file))


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _is_library(file: str) -> bool:
    # Compiled modules name sources that do not exist: "yaml/_yaml.pyx".
    return file.startswith(("<frozen", *_LIBRARIES)) or file.endswith(".pyx")


def _is_machinery(file: str) -> bool:
    return file.startswith("<frozen") or Path(file).name == "runpy.py" or "importlib" in Path(file).parts


def _script_text(error: TheirError) -> str:
    lines = [f"error: {error.what}", f"  at:   {error.place}", "  next: the script itself raised this"]
    return "\n".join([*lines, *(f"  | {line}" for line in error.lines)])


def _fault_of_the_machine(error: Exception) -> SymphError | None:
    """Return an error for a refusal of the operating system that no other code handles; None for any other error.

    An unusable path or a full disk is a fault of the machine, whichever code meets it.
    """
    if isinstance(error, RuntimeError) and str(error) == _NO_HOME:
        return UsageError("a path begins with ~, and no home folder is known for it", "", "write the whole path")
    if not isinstance(error, OSError) or error.errno is None:
        return None
    try:
        Path.cwd()
    except OSError:
        return ToolFailed("the current folder is not there any more", "", "go to another: cd")
    step = "SYMPH_STATE_DIR, SYMPH_RUNTIME_DIR and TMPDIR say where symph keeps files of its own"
    return ToolFailed(f"this machine refuses: {error.strerror}", os.fsdecode(str(error.filename or "")), step)


def _bug_text(error: Exception) -> str:
    title = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    step = "this is a bug in symph; please report it with that file"
    return f"error: {title}\n  at:   {_write_log(error)}\n  next: {step}"


def _traceback_of(error: Exception) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _write_log(error: Exception) -> str:
    """Write the traceback to a new file that only its owner can read; return the path."""
    prefix = f"symph-{time.strftime('%Y%m%d-%H%M%S')}-"
    try:
        folder = state_dir() / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(".log", prefix, folder)
    except OSError:
        # A home without write permission must not hide the bug.
        descriptor, path = tempfile.mkstemp(".log", prefix)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_traceback_of(error))
    return path
