"""The launcher of this process, and the entry points by which other packages extend this one.

Every command line imports this module: keep it light.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from importlib import import_module

from symphony_charts.errors import ToolFailed

# `symph --help` needs the entry points, and importlib.metadata takes 25 ms to import, so this module reads the files.
# Their format is defined by the packaging specification "Entry points": sections of ``name = module:object``.
_ENTRY_POINTS_FILE = "entry_points.txt"
_OURS = "symph."
# The integrations of this package, under the groups that other packages use. No other core module names them.
_BUILT_IN = {
    "symph.kinds": {
        "dijob": "symphony_charts.integrations.dijob.kind:DIJOB",
        "argo": "symphony_charts.integrations.argo.kind:ARGO",
    },
    "symph.importers": {
        "torchx": "symphony_charts.integrations.torchx.verb",
        "dijob": "symphony_charts.integrations.dijob.verb",
        "compose": "symphony_charts.integrations.compose.verb",
        "symphony": "symphony_charts.integrations.symphony.verb",
        "runopts": "symphony_charts.integrations.torchx.runopts_verb",
    },
    "symph.names": {"symphony": "symphony_charts.compat:names"},
    "symph.exporters": {"dijob": "symphony_charts.integrations.dijob.export_verb"},
}


class EntryPoint:
    """An extension by a package: its `name`, its `value` (``module`` or ``module:object``), the `package`."""

    __slots__ = ("name", "package", "value")

    def __init__(self, name: str, value: str, package: str) -> None:
        self.name = name
        self.value = value
        self.package = package

    def load(self) -> object:
        """Return the module or object. Raises ToolFailed if it cannot be imported."""
        module, _, path = self.value.partition(":")
        try:
            found: object = import_module(module)
            for name in filter(None, path.split(".")):
                found = getattr(found, name)
        except Exception as error:  # third-party code may raise anything
            what = f'cannot load the plugin "{self.name}": {type(error).__name__}: {error}'
            raise ToolFailed(what, self.value, f"fix or uninstall {self.package}") from error
        return found


def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group, such as ``symph.verbs``, by name, ours first.

    For duplicate names the first on the path wins; ours has the lowest priority.
    """
    ours = {name: EntryPoint(name, value, "symphony-charts") for name, value in _BUILT_IN.get(group, {}).items()}
    return ours | {entry.name: entry for kind, entry in reversed(_every(tuple(sys.path))) if kind == group}


@cache
def _every(path: tuple[str, ...]) -> tuple[tuple[str, EntryPoint], ...]:
    return tuple(found for folder in dict.fromkeys(path) for package in _packages(folder) for found in _read(package))


def _packages(folder: str) -> list[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def _read(package: str) -> list[tuple[str, EntryPoint]]:
    try:
        with open(os.path.join(package, _ENTRY_POINTS_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - pathlib takes 5 ms
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return []
    if _OURS not in text:
        return []
    found, group = [], ""
    name = os.path.basename(package).partition("-")[0]  # noqa: PTH119 - likewise
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("["):
            group = line.strip("[] ")
        elif equals and group.startswith(_OURS) and not line.startswith(("#", ";")):
            found.append((group, EntryPoint(key.strip(), value.partition("[")[0].strip(), name)))
    return found


class Launcher:
    """The way to run Python files: inside `around`, which provides import names, and as programs if `words` is set.

    `tell` is called with progress lines; the default is no progress lines.
    """

    __slots__ = ("around", "tell", "words")

    # A plain class: importing dataclasses costs more than half of `symph --help`.
    def __init__(
        self,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
        words: tuple[str, ...] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.around = around
        self.tell = tell
        self.words = words


_LAUNCHER: ContextVar[Launcher] = ContextVar("launcher", default=Launcher())  # noqa: B039 - never changed


def launcher() -> Launcher:
    return _LAUNCHER.get()


@contextmanager
def launching(launcher: Launcher) -> Iterator[None]:
    """Use `launcher` inside of the block."""
    before = _LAUNCHER.set(launcher)
    try:
        yield
    finally:
        _LAUNCHER.reset(before)
