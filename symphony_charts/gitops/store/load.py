"""Load folders and files of a commit into snapshots, and put a folder back into a larger repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.gitops.snapshot import (
    FOLDER,
    Entry,
    GitObject,
    NotLoadedError,
    Snapshot,
    ancestors,
    parse_tree,
    tree_object,
)
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import read_objects
from symphony_charts.system.git.remote import fetch_files


def load(
    cache: Cache,
    tip: str,
    root: str,
    folders: Iterable[str],
    files: Callable[[Snapshot], Iterable[str]] = lambda _seen: (),
) -> Snapshot:
    """Load the `folders` of commit `tip` and their ancestors, then the `files` computed from those."""
    if not tip:
        return Snapshot(hash_name=cache.hash_name, root=root)
    snapshot = _with_folders(cache, Snapshot(commit=tip, hash_name=cache.hash_name, root=root), ancestors(folders))
    wanted = list(dict.fromkeys(files(snapshot)))
    return _with_files(cache, _with_folders(cache, snapshot, _folders_of(wanted)), wanted)


def load_more(cache: Cache, snapshot: Snapshot, missing: Iterable[NotLoadedError]) -> Snapshot:
    """Return the snapshot with the missing parts. Raises ToolFailed if the cache lacks them."""
    missing = list(missing)
    folders = [path for item in missing for path in item.folders]
    files = [path for item in missing for path in item.files]
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
    folders = {**snapshot.folders, **_trees(cache, snapshot, new)}
    return replace(snapshot, folders=folders)


def _with_files(cache: Cache, snapshot: Snapshot, paths: Iterable[str]) -> Snapshot:
    new = [path for path in paths if path not in snapshot.files]
    entries = {path: entry for path in new if (entry := snapshot.entry(path)) is not None and not entry.is_folder}
    blobs = {path: entry.oid for path, entry in entries.items()}
    fetch_files(cache, blobs.values())
    contents = read_objects(cache.repo, list(blobs.values()))
    files = {path: item[2] for path, item in zip(blobs, contents, strict=True) if item is not None}
    return replace(snapshot, files={**snapshot.files, **files})


def _trees(cache: Cache, snapshot: Snapshot, paths: list[str]) -> dict[str, dict[str, Entry]]:
    items = read_objects(cache.repo, [f"{snapshot.commit}:{below(snapshot.root, path)}" for path in paths])
    trees = {
        path: parse_tree(item[2], cache.hash_name)
        for path, item in zip(paths, items, strict=True)
        if item is not None and item[0] == "tree"
    }
    # The folder in a larger repository, before the first write.
    return {"": {}, **trees} if snapshot.root and "" in paths else trees


def graft(cache: Cache, commit: str, root: str, tree: str) -> list[GitObject]:
    """Return the trees above the folder `root` of `commit` with `tree` in its place, the new root tree last."""
    made: list[GitObject] = []
    path = root
    while path:
        path, _, name = path.rpartition("/")
        (found,) = read_objects(cache.repo, [f"{commit}:{path}"]) if commit else [None]
        entries = parse_tree(found[2], cache.hash_name) if found and found[0] == "tree" else {}
        if name in entries and not entries[name].is_folder:
            raise Conflict(f"{below(path, name)} is no folder in the repository", next="name another: repository.path")
        made.append(tree_object({**entries, name: Entry(mode=FOLDER, oid=tree)}, cache.hash_name))
        tree = made[-1].oid
    return made


def below(root: str, path: str) -> str:
    """Return `path`, relative to the folder `root`, as a path in the whole repository."""
    return f"{root}/{path}".strip("/")
