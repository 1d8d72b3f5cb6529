"""A snapshot of a repository: the folders and files of one commit that an operation reads, and the layout."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from symphony_charts.errors import Conflict, Problem, SpecError, ToolFailed
from symphony_charts.formats.names import DNS_LABEL

FOLDER, FILE, SYMLINK = "40000", "100644", "120000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a Git tree: a file's or folder's mode (octal, as Git writes it) and object id (hex)."""

    mode: str
    oid: str

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER

    @property
    def is_file(self) -> bool:
        return self.mode in (FILE, "100755")


class Source(Protocol):
    """The place where the folders and files of a snapshot are."""

    def folders(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Entry]]:
        """Return the entries of those folders that exist."""

    def files(self, entries: Mapping[str, Entry]) -> Mapping[str, bytes]:
        """Return the contents of files by path."""


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """The tree of `commit`, loaded from `source` as it is read.

    `commit` is empty for a branch that does not exist yet. Paths are relative to the folder `root` of the repository.
    `load_folders` and `load_files` get many at once, which is faster than one by one.
    """

    commit: str = ""
    root: str = ""
    source: Source | None = None
    _folders: dict[str, Mapping[str, Entry]] = field(default_factory=dict)
    _files: dict[str, bytes] = field(default_factory=dict)

    def load_folders(self, paths: Iterable[str]) -> None:
        """Load folders and their ancestors, as far as they exist."""
        new = [path for path in ancestors(paths) if path not in self._folders]
        if new and self.source is not None:
            self._folders.update(self.source.folders(new))

    def load_files(self, paths: Iterable[str]) -> None:
        """Load plain files, as far as they exist."""
        new = [path for path in paths if path not in self._files]
        self.load_folders(path.rpartition("/")[0] for path in new)
        entries = {path: entry for path in new if (entry := self.entry(path)) is not None and entry.is_file}
        if entries and self.source is not None:
            self._files.update(self.source.files(entries))

    def folder(self, path: str) -> Mapping[str, Entry]:
        """Return the entries of a folder, empty if it is absent. Raises Conflict if a file is there instead."""
        if path in self._folders:
            return self._folders[path]
        entry = self.entry(path) if path else None
        if self.source is None or (path and entry is None):
            return {}
        if entry is not None and not entry.is_folder:
            kind = "a symbolic link" if entry.mode == SYMLINK else "not a folder"
            what = f"{path} is {kind} in the repository"
            raise Conflict(what, next="remove it: symph writes charts and pointers there")
        self.load_folders([path])
        if path not in self._folders:
            raise _unreadable(path or "its newest commit")
        return self._folders[path]

    def folders_in(self, path: str) -> list[str]:
        """Return the paths of the folders in a folder, sorted."""
        return [f"{path}/{name}" for name, entry in sorted(self.folder(path).items()) if entry.is_folder]

    def entry(self, path: str) -> Entry | None:
        parent, _, name = path.rpartition("/")
        return self.folder(parent).get(name)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it is absent. Raises Conflict for a link or a folder."""
        entry = self.entry(path)
        if entry is None:
            return None
        if not entry.is_file:
            raise Conflict(f"{path} is not a plain file in the repository", next="remove it, and retry")
        self.load_files([path])
        if path not in self._files:
            raise _unreadable(path)
        return self._files[path]

    def read_all(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of those `paths` that exist; load all missing ones at once."""
        paths = list(paths)
        self.load_files(paths)
        return {path: content for path in paths if (content := self.read(path)) is not None}

    def below(self, path: str) -> dict[str, bytes]:
        """Return the contents of all files below a folder by relative path; empty if the folder is absent."""
        return {file.removeprefix(f"{path}/"): content for file, content in self.read_below([path]).items()}

    def read_below(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of all files below `paths`; all missing files are loaded at once."""
        return self.read_all(self.paths_below(paths))

    def paths_below(self, paths: Iterable[str]) -> list[str]:
        """Return all files below those `paths` that are folders."""
        paths = list(paths)
        self.load_folders(path.rpartition("/")[0] for path in paths)
        level = [path for path in paths if (entry := self.entry(path)) is not None and entry.is_folder]
        files: list[str] = []
        while level:
            self.load_folders(level)
            children = [(f"{folder}/{name}", entry) for folder in level for name, entry in self.folder(folder).items()]
            files += [path for path, entry in children if not entry.is_folder]
            level = [path for path, entry in children if entry.is_folder]
        return files

    def edited(self, edits: Edits) -> Snapshot:
        """Return the snapshot after `edits` of files."""
        self.load_folders(path.rpartition("/")[0] for path in edits)
        made = replace(self, _folders={"": {}, **self._folders}, _files=dict(self._files))
        for path, content in sorted(edits.items(), key=lambda item: item[1] is not None):
            made._put(path, None if content is None else file_entry(content))
            made._files[path] = content or b""
        return made

    def _put(self, path: str, entry: Entry | None) -> None:
        parent, _, name = path.rpartition("/")
        if entry is not None and parent and self.entry(parent) is None:
            self._put(parent, Entry(mode=FOLDER, oid=""))
            self._folders[parent] = {}
        others = {key: each for key, each in self.folder(parent).items() if key != name}
        self._folders[parent] = others if entry is None else {**others, name: entry}


def _unreadable(path: str) -> ToolFailed:
    """Return the error for an entry that exists and cannot be read; it must never count as absent."""
    return ToolFailed(f"the copy of the repository on this machine lacks {path}")


def parse_tree(data: bytes, id_bytes: int = 20) -> dict[str, Entry]:
    """Return the entries of a Git tree object. Source: git, Documentation/gitformat-pack.txt."""
    entries: dict[str, Entry] = {}
    start = 0
    while start < len(data):
        space = data.index(b" ", start)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = Entry(mode=data[start:space].decode(), oid=data[end + 1 : end + 1 + id_bytes].hex())
        start = end + 1 + id_bytes
    return entries


# path -> content; None removes the file or folder. Other edits may add files below a removed folder.
Edits: TypeAlias = Mapping[str, "bytes | None"]


def object_id(kind: Literal["blob", "tree"], data: bytes, algorithm: str = "sha1") -> str:
    """Return the id of the object with `data` in a repository whose object format is `algorithm`."""
    header = b"%s %d\0" % (kind.encode(), len(data))
    return hashlib.new(algorithm, header + data, usedforsecurity=False).hexdigest()


def entries_id(entries: Mapping[str, Entry], algorithm: str = "sha1") -> str:
    """Return the id of the tree with `entries`: Git sorts by the bytes of names, with a slash after folder names."""
    named = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    named.sort(key=lambda item: item[0] + b"/" if item[1].is_folder else item[0])
    lines = (b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.oid)) for name, entry in named)
    return object_id("tree", b"".join(lines), algorithm)


def tree_id(files: Mapping[str, bytes], algorithm: str = "sha1") -> str:
    """Return the id of the tree that holds exactly `files` (path -> content)."""
    return entries_id(top_entries(files, algorithm), algorithm)


def top_entries(files: Mapping[str, bytes], algorithm: str = "sha1") -> dict[str, Entry]:
    """Return the entries at the top of the tree that holds exactly `files`."""
    entries: dict[str, Entry] = {}
    folders: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for path, content in files.items():
        top, _, below = path.partition("/")
        if below:
            folders[top][below] = content
        else:
            entries[top] = file_entry(content, algorithm)
    return entries | {name: Entry(mode=FOLDER, oid=tree_id(inside, algorithm)) for name, inside in folders.items()}


def file_entry(content: bytes, algorithm: str = "sha1") -> Entry:
    return Entry(mode=FILE, oid=object_id("blob", content, algorithm))


def check_edits(tip: Snapshot, edits: Edits) -> None:
    """Raise Conflict if an edit would replace a file by a folder, and ValueError for an impossible path."""
    tip.load_folders(path.rpartition("/")[0] for path in edits)
    removed = {path for path, content in edits.items() if content is None}
    for path in edits:
        if "\0" in path or "\n" in path or not {"", ".", "..", ".git"}.isdisjoint(path.lower().split("/")):
            raise ValueError(f"{path!r} is not a path in a repository")
        folders = ancestors([path.rpartition("/")[0]])
        if not removed.isdisjoint(folders):
            continue
        tip.folder(folders[-1])
        if any(isinstance(edits.get(folder), bytes) for folder in folders):
            raise Conflict(f"cannot write {path}: a folder of this path is a file")


# ``charts/<team>/<experiment>/<version>/`` holds a chart and never changes; the pointer
# ``envs/<env>/<team>/<experiment>.symph-app.yaml`` names the version that an environment runs; ``bootstrap/`` holds the
# objects to apply to Argo CD or Flux once.

# The pointer's suffix is unique, because `*` in Argo CD's file generator also matches slashes.
_FOLDER = re.compile(r"[\w.@+-]+", re.ASCII)

POINTER_SUFFIX = ".symph-app.yaml"
ENCRYPTED_SUFFIX = ".secret.yaml"


def versions_path(team: str, name: str) -> str:
    return f"charts/{team}/{name}"


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


def pointer_paths(tip: Snapshot, env: str | None = None) -> list[str]:
    """Return the paths of all pointers of `env`, or of all environments."""
    envs = [f"envs/{env}"] if env else tip.folders_in("envs")
    tip.load_folders(envs)
    teams = [team for folder in envs for team in tip.folders_in(folder)]
    tip.load_folders(teams)
    paths = [f"{team}/{name}" for team in teams for name in sorted(tip.folder(team))]
    return [path for path in paths if pointer_name(path) is not None]


def flux_keeper_path(env: str) -> str:
    """Return the path of the file that keeps an environment's folder; not YAML, so Flux ignores it."""
    return f"envs/{env}/README.md"


def flux_secret_path(env: str, team: str, name: str) -> str:
    """Return the path of an experiment's encrypted Secret, which Flux decrypts."""
    return f"envs/{env}/{team}/{name}{ENCRYPTED_SUFFIX}"


def ancestors(paths: Iterable[str]) -> list[str]:
    """Return the folders `paths` and all their ancestors, the root (``""``) first, each once."""
    folders = {""}
    for path in paths:
        parts = path.split("/")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return sorted(folders)


def below(root: str, path: str) -> str:
    """Return `path`, relative to the folder `root`, as a path in the whole repository."""
    return f"{root}/{path}".strip("/")


def check_folder(path: str) -> str:
    """Return `path` without leading and trailing slashes. Raises SpecError if it cannot be a folder of a repository."""
    path = path.strip("/")
    parts = path.split("/")
    if path and any(part in ("", ".", "..") or part.lower() == ".git" or not _FOLDER.fullmatch(part) for part in parts):
        raise SpecError.one(f'"{path}" is not a valid folder', "repository.path", "for example: deploy/charts")
    return path


def check_names(**names: str) -> None:
    """Raise SpecError unless all are DNS labels; they become names of folders, objects and branches."""
    problems = [
        Problem(what=f'"{value}" is not a valid {what}', path=what, next="use up to 63 of a to z, 0 to 9 and -")
        for what, value in names.items()
        if not DNS_LABEL.fullmatch(value) or len(value) > 63
    ]
    if problems:
        raise SpecError(problems)
