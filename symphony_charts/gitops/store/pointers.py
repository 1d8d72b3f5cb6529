"""All pointers of a repository are read: what each environment runs."""

from __future__ import annotations

from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.gitops.store.store import Store

__all__ = ["pointers"]


def pointers(store: Store, env: str | None) -> list[tuple[Pointer, bool]]:
    """Every pointer, and whether the chart that it names is there."""
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
    parsed = [parse_pointer(content, path) for path, content in snapshot.files.items()]
    versions = sorted({layout.versions_path(pointer.team, pointer.name) for pointer in parsed})
    versions += sorted({pointer.chart.rpartition("/")[0] for pointer in parsed} - set(versions))
    charts = store.read(versions, lambda _seen: ())
    return [(pointer, charts.entry(pointer.chart) is not None) for pointer in parsed]
