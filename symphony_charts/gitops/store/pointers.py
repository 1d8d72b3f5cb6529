"""All pointers of a repository are read: what each environment runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from symphony_charts.errors import SpecError
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.gitops.store.store import Store

__all__ = ["Placed", "pointers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file at the path of a pointer: environment, team and experiment by its path, and its content.

    `pointer` is None where `fault` says why it cannot be read; `has_chart` says whether its chart is there.
    """

    env: str
    team: str
    name: str
    pointer: Pointer | None
    fault: str = ""
    has_chart: bool = False


def pointers(store: Store, env: str | None) -> list[Placed]:
    """Return every pointer of `env`, or of all environments; one that cannot be read spoils no other."""
    top = store.read(["envs"], lambda _seen: ())
    envs = [env] if env else sorted(name for name, entry in top.folder("envs").items() if entry.is_folder)
    middle = store.read([f"envs/{each}" for each in envs], lambda _seen: ())
    folders = [
        layout.pointer_folder(each, team)
        for each in envs
        for team, entry in sorted(middle.folder(f"envs/{each}").items())
        if entry.is_folder
    ]

    def files(seen: Snapshot) -> list[str]:
        paths = [f"{folder}/{name}" for folder in folders for name in sorted(seen.folder(folder))]
        return [path for path in paths if layout.pointer_name(path) is not None]

    snapshot = store.read(folders, files)
    placed = [_placed(path, content) for path, content in snapshot.files.items()]
    versions = {layout.versions_path(each.team, each.name) for each in placed}
    versions |= {each.pointer.chart.rpartition("/")[0] for each in placed if each.pointer}
    charts = store.read(sorted(versions), lambda _seen: ())
    return [
        replace(each, has_chart=each.pointer is not None and charts.entry(each.pointer.chart) is not None)
        for each in placed
    ]


def _placed(path: str, content: bytes) -> Placed:
    env, team, name = layout.pointer_name(path) or ("", "", path)
    try:
        return Placed(env=env, team=team, name=name, pointer=parse_pointer(content, path))
    except SpecError as error:
        return Placed(env=env, team=team, name=name, pointer=None, fault=error.what)
