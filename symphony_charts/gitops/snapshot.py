"""A snapshot of a repository: the folders and files of one commit that an operation reads, and the layout."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from symphony_charts.errors import Conflict, Problem, SpecError
from symphony_charts.formats.names import DNS_LABEL

Answer = TypeVar("Answer")

FOLDER, FILE, SYMLINK = "40000", "100644", "120000"
_EMPTY: Mapping[str, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a Git tree: a file's or folder's mode (octal, as Git writes it) and object id (hex)."""

    mode: str
    oid: str

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER


_EMPTY = {}


class NotLoadedError(LookupError):
    """A question read `folders` or `files` of a commit before they were loaded; `ask` loads them and asks again."""

    def __init__(self, *, folders: Iterable[str] = (), files: Iterable[str] = ()) -> None:
        self.folders, self.files = tuple(folders), tuple(files)
        super().__init__(f"{', '.join((*self.folders, *self.files)) or 'the root'} was not loaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The loaded part of the tree of `commit`: entries by folder (``""`` is the root), contents by file path.

    `commit` is empty for a branch that does not exist yet; `hash_name` is the hash of its objects. Paths are relative
    to the folder `root` of the repository. `more` loads missing parts; without it, reading one raises NotLoadedError,
    so that `ask` loads the missing parts of many questions at once. An unloaded path never counts as absent.
    """

    commit: str = ""
    hash_name: str = "sha1"
    root: str = ""
    folders: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    more: Callable[[Snapshot, Iterable[NotLoadedError]], Snapshot] | None = None

    def folder(self, path: str) -> Mapping[str, Entry]:
        """Return the entries of a folder, empty if it is absent. Raises Conflict if a file is there instead."""
        parent, _, name = path.rpartition("/")
        if path:
            entry = self.folder(parent).get(name)
            if entry is None:
                return _EMPTY
            if not entry.is_folder:
                kind = "a symbolic link" if entry.mode == SYMLINK else "no folder"
                raise Conflict(
                    f"{path} is {kind} in the repository", next="remove it: charts and pointers are written there"
                )
        if path not in self.folders:
            if not self.commit:
                return _EMPTY
            return self._with(NotLoadedError(folders=[path])).folders[path]
        return self.folders[path]

    def entry(self, path: str) -> Entry | None:
        parent, _, name = path.rpartition("/")
        return self.folder(parent).get(name)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it is absent. Raises Conflict for a link or a folder."""
        entry = self.entry(path)
        if entry is None:
            return None
        if entry.mode not in (FILE, "100755"):
            raise Conflict(f"{path} is no plain file in the repository", next="remove it, and retry")
        if path not in self.files:
            return self._with(NotLoadedError(files=[path])).files[path]
        return self.files[path]

    def _with(self, lacking: NotLoadedError) -> Snapshot:
        if self.more is None:
            raise lacking
        return self.more(self, [lacking])

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of those `paths` that exist; load all missing ones at once."""
        found: dict[str, bytes] = {}
        lacking: list[NotLoadedError] = []
        for path in paths:
            try:
                content = self.read(path)
            except NotLoadedError as error:
                lacking.append(error)
            else:
                found |= {path: content} if content is not None else {}
        _raise_all(lacking)
        return found

    def below(self, path: str) -> dict[str, bytes]:
        """Return the contents of all files below a folder by relative path; empty if the folder is absent."""
        return self.below_each([path])[0]

    def below_each(self, paths: Iterable[str]) -> tuple[dict[str, bytes], ...]:
        """Return `below` for each of `paths`; all missing files are loaded at once."""
        questions = [partial(Snapshot._below, path=path) for path in paths]
        return ask(replace(self, more=None), questions, self.more or _load_nothing)[1]

    def _below(self, path: str) -> dict[str, bytes]:
        files: list[str] = []
        lacking: list[NotLoadedError] = []
        folders = [path]
        while folders:
            folder = folders.pop()
            try:
                entries = self.folder(folder)
            except NotLoadedError as error:
                lacking.append(error)
                continue
            folders += [f"{folder}/{name}" for name, entry in entries.items() if entry.is_folder]
            files += [f"{folder}/{name}" for name, entry in entries.items() if not entry.is_folder]
        _raise_all(lacking)
        return {file.removeprefix(f"{path}/"): content for file, content in self.read_all(files).items()}


def _load_nothing(snapshot: Snapshot, missing: Iterable[NotLoadedError]) -> Snapshot:
    _raise_all(missing)
    return snapshot


def _raise_all(lacking: Iterable[NotLoadedError]) -> None:
    lacking = list(lacking)
    if lacking:
        folders = dict.fromkeys(path for error in lacking for path in error.folders)
        raise NotLoadedError(folders=folders, files=dict.fromkeys(path for error in lacking for path in error.files))


def ask(
    snapshot: Snapshot,
    questions: Sequence[Callable[[Snapshot], Answer]],
    load: Callable[[Snapshot, Iterable[NotLoadedError]], Snapshot],
) -> tuple[Snapshot, tuple[Answer, ...]]:
    """Return the answers to `questions`, and the snapshot with all parts that they read.

    `load` returns the snapshot with the missing parts, or raises. A question depends only on the snapshot. Questions
    that read unloaded parts are repeated, all of them in one round.
    """
    answers: dict[int, Answer] = {}
    while True:
        missing: list[NotLoadedError] = []
        for number, question in enumerate(questions):
            if number not in answers:
                try:
                    answers[number] = question(snapshot)
                except NotLoadedError as error:
                    missing.append(error)
        if not missing:
            return snapshot, tuple(answers[number] for number in range(len(questions)))
        snapshot = load(snapshot, missing)


def parse_tree(data: bytes, hash_name: str = "sha1") -> dict[str, Entry]:
    """Return the entries of a Git tree object; `hash_name` sets the length of the ids.

    Source: git, Documentation/user-manual "tree object".
    """
    entries: dict[str, Entry] = {}
    start, size = 0, 32 if hash_name == "sha256" else 20
    while start < len(data):
        space = data.index(b" ", start)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = Entry(mode=data[start:space].decode(), oid=data[end + 1 : end + 1 + size].hex())
        start = end + 1 + size
    return entries


# Source: git, Documentation/user-manual.txt, "The Object Database".

# path -> content; None removes the file or folder. Other edits may add files below a removed folder.
Edits: TypeAlias = Mapping[str, "bytes | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """One Git object: its kind, id (hex) and content without Git's header."""

    kind: Literal["blob", "tree", "commit"]
    oid: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A root tree: its id, and all new objects below it, each once."""

    oid: str
    objects: tuple[GitObject, ...]


@dataclass(slots=True)
class _Node:
    is_cleared: bool = False
    files: dict[str, bytes | None] = field(default_factory=dict)
    folders: dict[str, _Node] = field(default_factory=dict)


def object_of(kind: Literal["blob", "tree", "commit"], data: bytes, hash_name: str = "sha1") -> GitObject:
    """Return the object with `data` and its id by `hash_name` (sha1 or sha256)."""
    oid = hashlib.new(hash_name, b"%s %d\0%s" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest()
    return GitObject(kind=kind, oid=oid, data=data)


def hash_of(oid: str) -> str:
    """Return the name of the hash function of an object id."""
    return "sha256" if len(oid) == 64 else "sha1"


def tree_object(entries: Mapping[str, Entry], hash_name: str) -> GitObject:
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
    """Return the root tree of `tip` with `edits` applied; folders that become empty are removed.

    All folders on the paths of the edits must be loaded. Raises Conflict if a file is in the place of a folder.
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
    """Return the commit of `tree`; `author` and `committer` (default: the author) are ``Name <mail>``.

    `time` is in seconds since 1970, UTC. `signature` signs the same commit without the signature.
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
    """Return the id of the folder's new tree, None if it becomes empty."""
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
    """Yield the lines of a tree object: Git sorts by the bytes of the names, with a slash after folder names."""
    named = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    for name, entry in sorted(named, key=lambda item: item[0] + b"/" if item[1].is_folder else item[0]):
        yield b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.oid))


# ``charts/<team>/<experiment>/<version>/`` holds a chart and never changes; the pointer
# ``envs/<env>/<team>/<experiment>.symph-app.yaml`` names the version that an environment runs; ``bootstrap/`` holds the
# objects to apply to Argo CD or Flux once.

# The pointer's suffix is unique, because `*` in Argo CD's file generator also matches slashes.
_FOLDER = re.compile(r"[\w.@+-]+", re.ASCII)

POINTER_SUFFIX = ".symph-app.yaml"


def versions_path(team: str, name: str) -> str:
    return f"charts/{team}/{name}"


def chart_path(team: str, name: str, version: str) -> str:
    return f"charts/{team}/{name}/{version}"


def pointer_folder(env: str, team: str) -> str:
    return f"envs/{env}/{team}"


def pointer_path(env: str, team: str, name: str) -> str:
    return f"envs/{env}/{team}/{name}{POINTER_SUFFIX}"


def pointer_name(path: str) -> tuple[str, str, str] | None:
    """Return environment, team and experiment of a pointer's path; None for any other path."""
    parts = path.split("/")
    if len(parts) != 4 or parts[0] != "envs" or not parts[3].endswith(POINTER_SUFFIX):
        return None
    return parts[1], parts[2], parts[3].removesuffix(POINTER_SUFFIX)


def flux_path(env: str, team: str, name: str) -> str:
    return f"flux/{env}/{team}/{name}.yaml"


def flux_keeper_path(env: str) -> str:
    """Return the path of the file that keeps an environment's folder of HelmReleases; not YAML, so Flux ignores it."""
    return f"flux/{env}/README.md"


def flux_secret_path(env: str, team: str, name: str) -> str:
    """Return the path of an experiment's encrypted Secret, which Flux decrypts."""
    return f"flux/{env}/{team}/{name}.secret.yaml"


def ancestors(paths: Iterable[str]) -> list[str]:
    """Return the folders `paths` and all their ancestors, the root (``""``) first, each once."""
    folders = {""}
    for path in paths:
        parts = path.split("/")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return sorted(folders)


def check_folder(path: str) -> str:
    """Return `path` without leading and trailing slashes. Raises SpecError if it cannot be a folder of a repository."""
    path = path.strip("/")
    parts = path.split("/")
    if path and any(part in ("", ".", "..") or part.lower() == ".git" or not _FOLDER.fullmatch(part) for part in parts):
        raise SpecError.one(f'"{path}" is no folder of a repository', "repository.path", "for example deploy/charts")
    return path


def check_names(**names: str) -> None:
    """Raise SpecError unless all are DNS labels; they become names of folders, objects and branches."""
    problems = [
        Problem(what=f'"{value}" is no {what}', path=what, next="use lower-case letters, digits and -, at most 63")
        for what, value in names.items()
        if not DNS_LABEL.fullmatch(value) or len(value) > 63
    ]
    if problems:
        raise SpecError(problems)
