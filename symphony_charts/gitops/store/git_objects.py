"""Edits become Git objects: blobs, the trees above them, and a commit, with the ids that Git gives them.

Source: git, Documentation/user-manual.txt, "The Object Database".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from symphony_charts.errors import Conflict
from symphony_charts.gitops.operations.snapshot import FILE, FOLDER, Entry, Snapshot

__all__ = [
    "Edits",
    "GitObject",
    "Tree",
    "build_tree",
    "commit_object",
    "file_entry",
    "hash_of",
    "object_of",
    "top_entries",
    "tree_id",
    "tree_object",
]

# path -> content; None takes the file or folder away. A folder that is taken away may be filled again by other edits.
Edits: TypeAlias = Mapping[str, "bytes | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """One object: its kind, its id (hex) and its content without Git's header."""

    kind: Literal["blob", "tree", "commit"]
    oid: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A root tree: its id, and all objects that edits added below it, each once."""

    oid: str
    objects: tuple[GitObject, ...]


@dataclass(slots=True)
class _Node:
    """The edits below one folder."""

    is_cleared: bool = False
    files: dict[str, bytes | None] = field(default_factory=dict)
    folders: dict[str, _Node] = field(default_factory=dict)


def object_of(kind: Literal["blob", "tree", "commit"], data: bytes, hash_name: str = "sha1") -> GitObject:
    """Return the object with `data`, named by `hash_name` (sha1, or sha256)."""
    oid = hashlib.new(hash_name, b"%s %d\0%s" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest()
    return GitObject(kind=kind, oid=oid, data=data)


def hash_of(oid: str) -> str:
    """Return the name of the hash that made an object's id."""
    return "sha256" if len(oid) == 64 else "sha1"


def tree_object(entries: Mapping[str, Entry], hash_name: str) -> GitObject:
    """Return the tree that holds exactly `entries`."""
    return object_of("tree", b"".join(_lines(entries)), hash_name)


def tree_id(files: Mapping[str, bytes], hash_name: str = "sha1") -> str:
    """Return the id of the tree that holds exactly `files` (path -> content)."""
    return build_tree(Snapshot(hash_name=hash_name), files).oid


def top_entries(files: Mapping[str, bytes], hash_name: str) -> dict[str, Entry]:
    """Return the entries at the top of the tree that holds exactly `files`."""
    entries: dict[str, Entry] = {}
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        top, _, below = path.partition("/")
        if below:
            folders.setdefault(top, {})[below] = content
        else:
            entries[top] = file_entry(content, hash_name)
    return entries | {name: Entry(mode=FOLDER, oid=tree_id(inside, hash_name)) for name, inside in folders.items()}


def file_entry(content: bytes, hash_name: str) -> Entry:
    return Entry(mode=FILE, oid=object_of("blob", content, hash_name).oid)


def build_tree(tip: Snapshot, edits: Edits) -> Tree:
    """Return the root tree of `tip` with `edits` applied; folders that become empty vanish.

    Every folder that edits pass through must be loaded. Raises Conflict where a file stands in the way.
    """
    objects: dict[str, GitObject] = {}
    root = _build(tip, "", _nested(edits), objects)
    if root is None:
        empty = object_of("tree", b"", tip.hash_name)
        objects[empty.oid] = empty
        root = empty.oid
    return Tree(oid=root, objects=tuple(objects.values()))


def commit_object(
    *,
    tree: str,
    parents: Iterable[str],
    author: str,
    committer: str = "",
    time: int,
    message: str,
    signature: str = "",
    hash_name: str = "sha1",
) -> GitObject:
    """Return the commit of `tree`; `author` and `committer` (the same unless said) are ``Name <mail>``.

    `time` counts seconds since 1970, in UTC.

    `signature` covers the same commit without it.
    """
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {author} {time} +0000", f"committer {committer or author} {time} +0000"]
    if signature:
        header = "gpgsig-sha256" if hash_name == "sha256" else "gpgsig"
        lines.append(f"{header} " + signature.rstrip("\n").replace("\n", "\n "))
    return object_of("commit", ("\n".join(lines) + "\n\n" + message.rstrip("\n") + "\n").encode(), hash_name)


def _nested(edits: Edits) -> _Node:
    root = _Node()
    for path, content in edits.items():
        *folders, name = path.split("/")
        if not all(_is_name(part) for part in (*folders, name)):
            raise ValueError(f"{path!r} is no path in a repository")
        node = root
        for part in folders:
            node = node.folders.setdefault(part, _Node())
        node.files[name] = content
    return root


def _is_name(part: str) -> bool:
    return bool(part) and part not in (".", "..") and part.lower() != ".git" and "\0" not in part


def _build(tip: Snapshot, path: str, node: _Node, objects: dict[str, GitObject]) -> str | None:
    """Return the id of the folder's new tree, None when nothing is left of it."""
    entries = {} if node.is_cleared else dict(tip.folder(path))
    for name, content in node.files.items():
        entries.pop(name, None) if content is None else entries.__setitem__(
            name, _blob(content, objects, tip.hash_name)
        )
    for name, child in node.folders.items():
        child_path = f"{path}/{name}" if path else name
        if isinstance(node.files.get(name), bytes):
            raise Conflict(f"{child_path} would be a file and a folder")
        child.is_cleared = node.is_cleared or name in node.files
        oid = _build(tip, child_path, child, objects)
        entries.pop(name, None) if oid is None else entries.__setitem__(name, Entry(mode=FOLDER, oid=oid))
    if not entries:
        return None
    tree = tree_object(entries, tip.hash_name)
    objects[tree.oid] = tree
    return tree.oid


def _blob(content: bytes, objects: dict[str, GitObject], hash_name: str) -> Entry:
    blob = object_of("blob", content, hash_name)
    objects[blob.oid] = blob
    return Entry(mode=FILE, oid=blob.oid)


def _lines(entries: Mapping[str, Entry]) -> Iterator[bytes]:
    """Git sorts by the bytes of the names, those of folders with a slash behind them."""
    named = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    for name, entry in sorted(named, key=lambda item: item[0] + b"/" if item[1].is_folder else item[0]):
        yield b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.oid))
