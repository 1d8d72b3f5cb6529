"""The part of a repository's tree that questions to it read, in as few calls of git as that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from symphony_charts.errors import ToolFailed
from symphony_charts.gitops.layout import ancestors
from symphony_charts.gitops.operations.snapshot import Entry, NotLoadedError, Snapshot, parse_tree
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.object_reader import read_objects
from symphony_charts.system.git.remote import fetch_files

__all__ = ["load", "load_more"]


def load(
    cache: Cache, tip: str, folders: Iterable[str], files: Callable[[Snapshot], Iterable[str]] = lambda _seen: ()
) -> Snapshot:
    """The `folders` of commit `tip` and all above them, then the `files` that are asked for when those are known."""
    if not tip:
        return Snapshot()
    snapshot = _with_folders(cache, Snapshot(commit=tip), ancestors(folders))
    wanted = list(dict.fromkeys(files(snapshot)))
    return _with_files(cache, _with_folders(cache, snapshot, _folders_of(wanted)), wanted)


def load_more(cache: Cache, snapshot: Snapshot, missing: Iterable[NotLoadedError]) -> Snapshot:
    """The snapshot with what a question missed in it. Raises ToolFailed where the repository lacks what it names."""
    folders = [item.path for item in missing if item.is_folder]
    files = [item.path for item in missing if not item.is_folder]
    more = _with_folders(cache, snapshot, [*ancestors(folders), *_folders_of(files)])
    more = _with_files(cache, more, files)
    absent = [path for path in folders if path not in more.folders] + [path for path in files if path not in more.files]
    if absent:
        raise ToolFailed(f"the copy of {cache.url} on this machine lacks {absent[0]}", str(cache.repo))
    return more


def _folders_of(files: Iterable[str]) -> list[str]:
    return ancestors(path.rpartition("/")[0] for path in files)


def _with_folders(cache: Cache, snapshot: Snapshot, paths: Iterable[str]) -> Snapshot:
    new = [path for path in dict.fromkeys(paths) if path not in snapshot.folders]
    folders = {**snapshot.folders, **_trees(cache, snapshot.commit, new)}
    return Snapshot(commit=snapshot.commit, folders=folders, files=snapshot.files)


def _with_files(cache: Cache, snapshot: Snapshot, paths: Iterable[str]) -> Snapshot:
    new = [path for path in paths if path not in snapshot.files]
    entries = {path: entry for path in new if (entry := snapshot.entry(path)) is not None and not entry.is_folder}
    blobs = {path: entry.oid for path, entry in entries.items()}
    fetch_files(cache, blobs.values())
    contents = read_objects(cache.repo, list(blobs.values()))
    found = {path: item[2] for path, item in zip(blobs, contents, strict=True) if item is not None}
    return Snapshot(commit=snapshot.commit, folders=snapshot.folders, files={**snapshot.files, **found})


def _trees(cache: Cache, tip: str, paths: list[str]) -> dict[str, dict[str, Entry]]:
    items = read_objects(cache.repo, [f"{tip}:{path}" for path in paths])
    return {
        path: parse_tree(item[2])
        for path, item in zip(paths, items, strict=True)
        if item is not None and item[0] == "tree"
    }
