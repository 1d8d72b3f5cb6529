"""Run Python files that define an experiment in this process; errors refer to the user's line.

A Python file defines `experiment` (a builder, an Experiment or plain data), or a function `experiment()` or `main()`
that returns one. Without these, the single experiment that it launches is read and not started. The file's folder is
first on `sys.path`.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType

from symphony_charts.errors import SpecError, SymphError, UsageError, first_line
from symphony_charts.system.launching import launcher

_LAUNCHED = "__symph_launched__"
_NAMES = ("experiment", "main")
_RAISED = "the file raised this error"
_MODULE = "__symph_spec__"
_LIBRARIES = frozenset(("site-packages", "dist-packages"))


class _Launched(BaseException):
    """Raised when a program launches its experiment, to stop the program there."""


def refuse_words(path: Path) -> None:
    """Raise UsageError if program arguments were given but `path` is not a program."""
    if launcher().words is not None:
        raise UsageError(f"{path} is not a Python script", next="remove the arguments after --, or name a script")


def run_file(path: Path) -> object:
    """Return the `experiment` of the Python file `path`; calls a function of that name (or `main`).

    With program arguments (`launching`), run it as a program up to its first launch. Its output goes to stderr.
    Raises SpecError with ``file:line`` of the user's code if it fails or defines nothing.
    """
    source = path.read_bytes()
    how = launcher()
    next_step = _RAISED if how.words is not None else f"{_RAISED}; pass arguments of the script after --"
    module = ModuleType(_MODULE if how.words is None else "__main__")
    module.__file__ = str(path.absolute())
    with _imports_beside(path, module), how.around(), redirect_stdout(sys.stderr), _as_program(path, module):
        try:
            with suppress(_Launched):
                exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 - running it is what was asked
            result = _made_by(module, path)
        except SymphError as error:
            raise _with_line(error, path) from error
        except SystemExit as error:
            what = f"the file called exit({error.code!r})"
            raise SpecError.one(what, at=_line_in(path, error), next=next_step) from error
        except Exception as error:  # the user's code may raise anything
            what = f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")
            raise SpecError.one(what, at=_line_in(path, error), next=next_step) from error
    return result


def is_reading() -> bool:
    """Return True while a spec file is being read."""
    return _MODULE in sys.modules


def note_launch(experiment: object) -> bool:
    """Return True while a spec file is being read: `experiment` is then its result, and must not start."""
    module = sys.modules.get(_MODULE)
    if module is None:
        return False
    module.__dict__.setdefault(_LAUNCHED, []).append(experiment)
    if launcher().words is not None:
        raise _Launched
    return True


@contextmanager
def _as_program(path: Path, module: ModuleType) -> Iterator[None]:
    """Set `sys.argv` and, if there are program arguments, `__main__` for the file."""
    words = launcher().words
    argv, main = sys.argv, sys.modules["__main__"]
    sys.argv = [str(path), *(words or ())]
    if words is not None:
        sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.argv, sys.modules["__main__"] = argv, main


def _made_by(module: ModuleType, path: Path) -> object:
    for name in () if _LAUNCHED in module.__dict__ else _NAMES:
        value = getattr(module, name, None)
        if value is None:
            continue
        value = value() if callable(value) and not hasattr(value, "finish") else value
        if value is None:
            raise SpecError.one(f"`{name}()` returned nothing", at=str(path), next="return the experiment")
        return value
    launched = module.__dict__.get(_LAUNCHED, [])
    if len(launched) == 1:
        return launched[0]
    if launched:
        next_step = "define `def experiment():` that returns one of them"
        raise SpecError.one(f"the file launches {len(launched)} experiments", at=str(path), next=next_step)
    next_step = "name the experiment `experiment`, or define `def experiment():` that returns it"
    if module.__name__ != "__main__":
        next_step += "; pass arguments of the script after --; to run a program, name it in a spec: symph init NAME"
    raise SpecError.one("the file defines no experiment", at=str(path), next=next_step)


@contextmanager
def _imports_beside(path: Path, module: ModuleType) -> Iterator[None]:
    """Let a spec file import modules beside it; unload them afterwards, so that the next file imports its own."""
    folder = str(path.absolute().parent)
    before = set(sys.modules)
    sys.path.insert(0, folder)
    sys.modules[_MODULE] = module
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            if name == _MODULE or _is_neighbour(sys.modules[name], folder):
                del sys.modules[name]


def _is_neighbour(module: ModuleType, folder: str) -> bool:
    """Return True if `module` belongs to the spec file's project and is not an installed library below its folder."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "symphony_charts":
        return False
    return Path(file).is_relative_to(folder) and _LIBRARIES.isdisjoint(Path(file).parts)


def _with_line(error: SymphError, path: Path) -> SymphError:
    if isinstance(error, SpecError):
        return SpecError(error.problems, at=_line_in(path, error))
    error.at = error.at or _line_in(path, error)
    return error


def _line_in(path: Path, error: BaseException) -> str:
    """Return ``file:line`` of the last stack frame of `error` in the file itself."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)
