"""Verbs that others add: programs called ``symph-NAME`` on PATH, and entry points of the group ``symph.verbs``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

from symphony_charts.cli.verbs import Verb
from symphony_charts.system.launching import EntryPoint, entry_points

_PREFIX = "symph-"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class Plugin(Verb):
    """A verb that a package adds, or a program (`entry` is None)."""

    __slots__ = ("entry",)

    def __init__(self, name: str, where: str, entry: EntryPoint | None = None) -> None:
        super().__init__(name, (), where, "plugins")
        self.entry = entry


def find_plugin(name: str) -> Plugin | None:
    """The verb of that name that a package adds; programs are none, since nobody knows their arguments."""
    entry = entry_points("symph.verbs").get(name)
    return Plugin(name, _of(entry), entry) if entry else None


def find_program(name: str) -> str | None:
    """The program that answers a verb of that name; the first on PATH, as a shell would have it."""
    if not _NAME.fullmatch(name):
        return None
    paths = [os.path.join(folder, _PREFIX + name) for folder in os.get_exec_path() if os.path.isabs(folder)]  # noqa: PTH117, PTH118 - pathlib takes 5 ms
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)  # noqa: PTH113 - likewise


def become(program: str, words: list[str]) -> NoReturn:
    """Let the program take the place of this process, with these arguments."""
    sys.stdout.flush()
    os.execv(program, [program, *words])  # noqa: S606 - there is no shell; the terminal and the status are the program's


def plugins() -> list[Plugin]:
    """All of them, as help lists them: those of packages, then programs."""
    added = {name: Plugin(name, _of(entry), entry) for name, entry in entry_points("symph.verbs").items()}
    programs: dict[str, Plugin] = {}
    for folder in os.get_exec_path():
        for name in _programs_in(folder):
            path = find_program(name)
            if path:
                programs.setdefault(name, Plugin(name, f"{path} (a program)"))
    return [
        *(added[name] for name in sorted(added)),
        *(programs[name] for name in sorted(programs) if name not in added),
    ]


def _of(entry: EntryPoint) -> str:
    return f"{entry.value} of {entry.package}"


def _programs_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - likewise
    except OSError:
        return []
    return [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]


class _AtFirstImport:
    """Lends the names when `symphony` is first imported: they take 300 ms, which most spec files do not need.

    A MetaPathFinder, but by its interface alone: the module of that class takes 8 ms to import.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - part of the interface
        target: ModuleType | None = None,  # noqa: ARG002 - part of the interface
    ) -> ModuleSpec | None:
        """Return the spec of the module in the integration of that name."""
        if fullname.partition(".")[0] != "symphony":
            return None
        sys.meta_path.remove(self)
        names: Any = entry_points("symph.names")["symphony"].load()
        self._stack.enter_context(names())
        return find_spec(fullname)


@contextmanager
def symphonys_names() -> Iterator[None]:
    """Inside, `import symphony` gives this package's names, whatever else is installed under that one."""
    with ExitStack() as stack:
        finder = _AtFirstImport(stack)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
