"""A snapshot is what an operation sees of a repository: some folders and files of one commit's tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from symphony_charts.errors import Conflict

__all__ = ["FILE", "FOLDER", "SYMLINK", "Entry", "NotLoadedError", "Snapshot", "ask", "parse_tree"]

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
    """The loaded part of the tree of `commit`: entries by folder (``""`` is the root), contents by path of file.

    `commit` is empty for a branch that does not exist yet; its objects are named by `hash_name`. Paths count from the
    folder `root` of the repository. What is there and not loaded is loaded by `more`; without it NotLoadedError is
    raised, for `ask` to load what many questions lack at once. It is never taken for absent.
    """

    commit: str = ""
    hash_name: str = "sha1"
    root: str = ""
    folders: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    more: Callable[[Snapshot, Iterable[NotLoadedError]], Snapshot] | None = None

    def folder(self, path: str) -> Mapping[str, Entry]:
        """Return the entries of a folder, none if it is absent. Raises Conflict if a file is there instead."""
        parent, _, name = path.rpartition("/")
        if path:
            entry = self.folder(parent).get(name)
            if entry is None:
                return _EMPTY
            if not entry.is_folder:
                kind = "a symbolic link" if entry.mode == SYMLINK else "no folder"
                raise Conflict(f"{path} is {kind} in the repository", next="remove it: charts and pointers stand there")
        if path not in self.folders:
            if not self.commit:
                return _EMPTY
            return self._with(NotLoadedError(folders=[path])).folders[path]
        return self.folders[path]

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file or folder, None where it is absent."""
        parent, _, name = path.rpartition("/")
        return self.folder(parent).get(name)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None where it is absent. Raises Conflict for a link or a folder."""
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
        """Return the contents of the files among `paths` that are there; all that lack are loaded at once."""
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
        """Return the contents of all files below a folder, by their paths in it; none if it is absent."""
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
    """Return the answers to `questions`, and the snapshot with all that they read.

    `load` returns the snapshot with what is missing, or raises. A question depends on nothing but the snapshot, so one
    that read what was not loaded is asked again, all such questions in one round.
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
    """Return the entries of a Git tree object, whose ids are as long as those of `hash_name`.

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
