"""Verbs from plugins: programs called ``symph-NAME`` on PATH, and entry points of the group ``symph.verbs``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from symphony_charts.cli.verbs import Verb, find_verb
from symphony_charts.system.launching import EntryPoint, entry_points

TYPE_CHECKING = False  # Importing `typing` takes 3 ms.
if TYPE_CHECKING:
    from typing import NoReturn

_PREFIX = "symph-"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class Plugin(Verb):
    """A verb of a package, or a program (`entry` is None)."""

    __slots__ = ("entry",)

    def __init__(self, name: str, where: str, entry: EntryPoint | None = None) -> None:
        super().__init__(name, (), where, "plugins")
        self.entry = entry


def find_plugin(name: str) -> Plugin | None:
    """Return the verb of that name that a package adds; programs are excluded because their arguments are unknown."""
    entry = entry_points("symph.verbs").get(name)
    return Plugin(name, _of(entry), entry) if entry else None


def find_program(name: str) -> str | None:
    """Return the program ``symph-NAME``; the first on PATH, as in a shell."""
    if not _NAME.fullmatch(name):
        return None
    paths = [os.path.join(folder, _PREFIX + name) for folder in os.get_exec_path() if os.path.isabs(folder)]  # noqa: PTH117, PTH118 - pathlib takes 5 ms
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)  # noqa: PTH113 - likewise


def become(program: str, words: list[str]) -> NoReturn:
    sys.stdout.flush()
    os.execv(program, [program, *words])  # noqa: S606 - no shell; the program gets the terminal and determines the status


def with_plugins(verbs: tuple[Verb, ...]) -> tuple[Verb, ...]:
    """Return the verbs, and behind them the plugins with other names: packages, then programs."""
    added = [Plugin(name, _of(entry), entry) for name, entry in sorted(entry_points("symph.verbs").items())]
    programs = {name: find_program(name) for folder in os.get_exec_path() for name in _programs_in(folder)}
    added += [Plugin(name, f"{path} (a program)") for name, path in sorted(programs.items()) if path]
    shown: dict[str, Plugin] = {}
    for plugin in added:
        if find_verb(plugin.name, verbs) is None:
            shown.setdefault(plugin.name, plugin)
    return (*verbs, *shown.values())


def _of(entry: EntryPoint) -> str:
    return f"{entry.value} of {entry.package}"


def _programs_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - likewise
    except OSError:
        return []
    return [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]


class _AtFirstImport:
    """Provide the `symphony` names at their first import: they take 300 ms, and most spec files do not need them.

    A MetaPathFinder without its base class, whose module takes 8 ms to import.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the interface
        target: ModuleType | None = None,  # noqa: ARG002 - part of the interface
    ) -> ModuleSpec | None:
        """Install the names on the first import of `symphony`, and return the module's spec."""
        if fullname.partition(".")[0] != "symphony":
            return None
        sys.meta_path.remove(self)
        names = entry_points("symph.names")["symphony"].load()
        self._stack.enter_context(names())  # type: ignore[operator]  # a function of this package
        return find_spec(fullname)


@contextmanager
def symphonys_names() -> Iterator[None]:
    """Let `import symphony` import this package's names inside the context, even if another `symphony` is installed."""
    with ExitStack() as stack:
        finder = _AtFirstImport(stack)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
