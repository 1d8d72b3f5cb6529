"""Read folders and files of a commit in a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from symphony_charts.gitops.snapshot import Entry, Snapshot, below, parse_tree
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import read_objects
from symphony_charts.system.git.remote import fetch_files


@dataclass(frozen=True, slots=True)
class _Commit:
    """The source of snapshots of one commit; `lock` holds the cache unless its user does."""

    cache: Cache
    commit: str
    root: str
    lock: Callable[[], AbstractContextManager[None]]

    def folders(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Entry]]:
        with self.lock():
            items = read_objects(self.cache.repo, [f"{self.commit}:{below(self.root, path)}" for path in paths])
        found = {
            path: parse_tree(item[2])
            for path, item in zip(paths, items, strict=True)
            if item is not None and item[0] == "tree"
        }
        # The folder in a larger repository may not exist before the first write.
        return {"": {}, **found} if self.root and "" in paths else found

    def files(self, entries: Mapping[str, Entry]) -> Mapping[str, bytes]:
        blobs = [entry.oid for entry in entries.values()]
        with self.lock():
            fetch_files(self.cache, blobs)
            items = read_objects(self.cache.repo, blobs)
        return {path: item[2] for path, item in zip(entries, items, strict=True) if item is not None}


def snapshot_of(
    cache: Cache, commit: str, root: str, lock: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Snapshot:
    """Return the folder `root` of `commit` (empty: of a branch that does not exist yet)."""
    source = _Commit(cache, commit, root, lock) if commit else None
    return Snapshot(commit=commit, root=root, source=source)
