"""Whose an error is: ours, or that of a script which people gave us to run, and then its traceback as they know it."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from symphony_charts.spec.files.python import first_line

__all__ = ["TheirError", "their_error"]

_PACKAGE = Path(__file__).parents[1]
# What these call is somebody else's code, wherever it is installed.
_RUNNERS = tuple(
    str(_PACKAGE / path) for path in ("spec/files/python.py", "importers/torchx/components.py", "compat/__main__.py")
)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class TheirError:
    """An error of somebody's script: `what` and the `place` in it, and `lines`, its traceback without our frames."""

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
    """`error`, or what it was made of, as that of a script; None where it is ours.

    It is theirs if no code of ours ran after the last of theirs, libraries aside.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = [number for number, frame in enumerate(frames) if _is_ours(frame.filename)]
    after = frames[ours[-1] + 1 :] if ours else frames
    is_run = bool(ours) and frames[ours[-1]].filename in _RUNNERS
    is_theirs = any(not _is_library(frame.filename) for frame in after) or (is_run and _has_run(after, error))
    if is_theirs or _is_their_syntax(error):
        kept = [frame for frame in frames if not _is_ours(frame.filename) and not _is_machinery(frame.filename)]
        return TheirError(error, traceback.StackSummary.from_list(kept))
    return their_error(error.__cause__) if error.__cause__ is not None else None


def _has_run(after: list[traceback.FrameSummary], error: BaseException) -> bool:
    """Whether anything of the script ran, of which the machinery that starts it is no part."""
    return not isinstance(error, OSError) and any(not _is_machinery(frame.filename) for frame in after)


def _is_their_syntax(error: BaseException) -> bool:
    if not isinstance(error, SyntaxError) or not error.filename:
        return False
    return not _is_ours(error.filename) and not _is_library(error.filename)


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _is_library(file: str) -> bool:
    return file.startswith(("<frozen", *_LIBRARIES))


def _is_machinery(file: str) -> bool:
    return file.startswith("<frozen") or Path(file).name == "runpy.py" or "importlib" in Path(file).parts
