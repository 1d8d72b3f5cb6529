"""The part of a repository's tree that an operation asks for, in as few calls of git as that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from symphony_charts.adapters.git.cache import Cache
from symphony_charts.adapters.git.reading import read_objects
from symphony_charts.adapters.git.remote import fetch_files
from symphony_charts.gitops.layout import ancestors
from symphony_charts.gitops.snapshot import Entry, Snapshot, parse_tree

__all__ = ["load"]


def load(
    cache: Cache, tip: str, folders: Iterable[str], files: Callable[[Snapshot], Iterable[str]] = lambda _seen: ()
) -> Snapshot:
    """The `folders` of commit `tip` and all above them, then the `files` that are asked for when those are known."""
    if not tip:
        return Snapshot()
    trees = _trees(cache, tip, ancestors(folders))
    wanted = list(dict.fromkeys(files(Snapshot(commit=tip, folders=trees))))
    more = [path for path in ancestors(path.rpartition("/")[0] for path in wanted) if path not in trees]
    trees |= _trees(cache, tip, more)
    seen = Snapshot(commit=tip, folders=trees)
    entries = {path: entry for path in wanted if (entry := seen.entry(path)) is not None and not entry.is_folder}
    blobs = {path: entry.oid for path, entry in entries.items()}
    fetch_files(cache, blobs.values())
    contents = read_objects(cache.repo, list(blobs.values()))
    found = {path: item[2] for path, item in zip(blobs, contents, strict=True) if item is not None}
    return Snapshot(commit=tip, folders=trees, files=found)


def _trees(cache: Cache, tip: str, paths: list[str]) -> dict[str, dict[str, Entry]]:
    items = read_objects(cache.repo, [f"{tip}:{path}" for path in paths])
    return {
        path: parse_tree(item[2])
        for path, item in zip(paths, items, strict=True)
        if item is not None and item[0] == "tree"
    }
