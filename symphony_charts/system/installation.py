"""How this program was installed, and how the running command was started.

No index of packages is ever trusted to know the name: whoever owns it there would run code in its place.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from urllib.parse import unquote, urlsplit

from symphony_charts.errors import ToolFailed, UsageError

_NAME = "symphony-charts"
FORMS = "git+https://HOST/REPOSITORY@COMMIT, git+ssh://... or https://HOST/FILE.whl#sha256=HASH"
# No blanks, quotes or dollars: it stands in a requirements file, where pip replaces variables.
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_GIT = re.compile(rf"git\+(?:https|ssh)://[\w.~:@/%+-]+@{_COMMIT}(?:#subdirectory=[\w./-]+)?", re.ASCII)
_FILE = re.compile(r"https://[\w.~:@/%+-]+\.(?:whl|tar\.gz|zip)#sha256=[0-9a-f]{64}", re.ASCII)


def check_pinned(where: str) -> str:
    """Return `where` itself if everybody gets the same content there for ever. Raises UsageError."""
    if not (_GIT.fullmatch(where) or _FILE.fullmatch(where)):
        raise UsageError(f"{where!r} does not say for ever what is installed", "--install-from", f"give {FORMS}")
    place = urlsplit(where.removeprefix("git+"))
    if place.password or (place.username and place.scheme == "https"):
        raise UsageError("the address holds a password, which would stand in Git", "--install-from", "take it out")
    return where


def requirement(where: str, extra: str = "") -> str:
    """Return the line of a requirements file that installs from `where`. Source: PEP 508, "direct references"."""
    return f"{_NAME}[{extra}] @ {where}" if extra else f"{_NAME} @ {where}"


def pinned_source(record: Mapping[str, object] | None = None) -> str | None:
    """Return where this installation came from, pinned; None for a folder or file of this machine, or an index.

    `record` is what the installer wrote down of it. Source: PEP 610.
    """
    record = _record() if record is None else record
    url, vcs, archive = str(record.get("url", "")), record.get("vcs_info"), record.get("archive_info")
    if isinstance(vcs, dict):
        folder = record.get("subdirectory")
        where = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}" + (f"#subdirectory={folder}" if folder else "")
    elif isinstance(archive, dict):
        where = f"{url}#sha256={_sha256(archive)}"
    else:
        return None
    try:
        return check_pinned(where)
    except UsageError:
        return None


def command_for_extra(extra: str) -> str:
    """Return the command that adds an optional part of this installation."""
    record = _record()
    url = str(record.get("url", ""))
    info = record.get("dir_info")
    if url.startswith("file://") and isinstance(info, dict):
        option = "--editable " if info.get("editable") else ""
        return f"pip install {option}{shlex.quote(f'{unquote(urlsplit(url).path)}[{extra}]')}"
    where = pinned_source(record) or url
    if where:
        return f"pip install {shlex.quote(requirement(where, extra))}"
    return f"pip install {' '.join(shlex.quote(need) for need in _needs_of(extra))}"


def _record() -> Mapping[str, object]:
    try:
        text = importlib.metadata.distribution(_NAME).read_text("direct_url.json")
        record = json.loads(text) if text else {}
    except (importlib.metadata.PackageNotFoundError, ValueError, OSError):
        return {}
    return record if isinstance(record, dict) else {}


def _sha256(archive: Mapping[str, object]) -> str:
    hashes = archive.get("hashes")
    if isinstance(hashes, dict) and hashes.get("sha256"):
        return str(hashes["sha256"])
    return str(archive.get("hash", "")).removeprefix("sha256=")


def _needs_of(extra: str) -> list[str]:
    try:
        needs = importlib.metadata.requires(_NAME) or []
    except importlib.metadata.PackageNotFoundError:
        needs = []
    mark = re.compile(rf"""extra == ["']{re.escape(extra)}["']""")
    return [need.partition(";")[0].strip() for need in needs if mark.search(need)]


# Light on purpose: every command line imports this, and most read no such file.

# `symph --help` asks on its way, so the files are read here: importlib.metadata takes 25 ms to import. A package's
# ``entry_points.txt`` is as the packaging specification "Entry points" has it: sections of ``name = module:object``.

_ENTRY_POINTS_FILE = "entry_points.txt"
_OURS = "symph."

# The integrations of this package, under the groups that other packages use. Nothing else in the core names them.
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
    """One thing that a package adds: its `name`, its `value` (``module`` or ``module:object``), the `package`."""

    __slots__ = ("name", "package", "value")

    def __init__(self, name: str, value: str, package: str) -> None:
        self.name = name
        self.value = value
        self.package = package

    def load(self) -> object:
        """Return the module or object. Raises ToolFailed where it cannot be imported."""
        module, _, path = self.value.partition(":")
        try:
            found: object = import_module(module)
            for name in filter(None, path.split(".")):
                found = getattr(found, name)
        except Exception as error:  # other people's code may raise anything
            what = f'the plugin "{self.name}" cannot be loaded: {type(error).__name__}: {error}'
            raise ToolFailed(what, self.value, f"mend or uninstall {self.package}") from error
        return found


def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return those of a group, such as ``symph.verbs``, by name, ours first.

    Of two with one name the first on the path counts, and ours last.
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
    """How Python files are run: with the import names that `around` lends, and as programs where there are `words`.

    `tell` is called with a line for whoever waits; without it nobody does.
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


_USUAL = Launcher()
_LAUNCHER: ContextVar[Launcher] = ContextVar("launcher", default=_USUAL)


def launcher() -> Launcher:
    """Return the one that counts here."""
    return _LAUNCHER.get()


@contextmanager
def launching(launcher: Launcher) -> Iterator[None]:
    """Inside, the command was started as `launcher` says."""
    before = _LAUNCHER.set(launcher)
    try:
        yield
    finally:
        _LAUNCHER.reset(before)
