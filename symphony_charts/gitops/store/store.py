"""Write operations as one commit on a branch, exactly once, despite concurrent changes of the branch.

Objects are written without a work tree and pushed with a lease on the tip that was read, so that the server's
compare-and-swap of the branch decides between writers. If the server refuses, because the branch advanced or was
rewound, the tip is read again and every operation is evaluated again. Nothing is rebased, and nothing that was reverted
comes back.

A process holds the cache lock until its own commit is pushed, and pushes no other commit. A publish that is interrupted
while it waits is therefore never pushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, SpecError, SymphError, ToolFailed
from symphony_charts.gitops.base import Change, Operation, message_of
from symphony_charts.gitops.snapshot import Edits, Entry, Snapshot, below, check_edits, file_entry, parse_tree
from symphony_charts.settings.project import Repository
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import find_commit, import_tree, write_commit
from symphony_charts.system.git.program import identity
from symphony_charts.system.git.remote import (
    Answer,
    Attempts,
    ToolUnreachable,
    fetch_files,
    fetch_since,
    fetch_tip,
    is_reachable,
    push,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Author and committer of a commit (default: the author), as ``Name <mail>``.

    It `is_signed` as git is configured.
    """

    name: str
    committer: str = ""
    is_signed: bool = False


def author_of(repository: Repository) -> Author:
    """Return the author for `repository`: git's identity, overridden by the author of the settings.

    Raises SpecError if git has no identity.
    """
    found = identity(repository.author)
    return Author(name=found.author, committer=found.committer, is_signed=found.is_signed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """The result of operations: the commit with their changes, and the change of each operation, in order.

    `commit` is None if there was nothing to do. `moved` counts how often the tip moved meanwhile.
    `was_lost`: the server took the commit although its answer was lost. `heard` holds the server's messages on success,
    line by line.
    """

    commit: str | None
    changes: tuple[Change, ...]
    moved: int = 0
    seconds: float = 0.0
    was_lost: bool = False
    heard: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """The state of repeated attempts: the sent commits, the server's last state, and the deadline.

    `sent` holds all commits that the server may have received, `arrived` the one that it has.
    """

    deadline: float
    time: int
    attempts: Attempts
    moved: int = 0
    sent: set[str] = field(default_factory=set)
    base: str = ""
    is_anew: bool = False
    arrived: str = ""


def all_edits(changes: Iterable[Change]) -> dict[str, bytes | None]:
    """Return all edits; two operations of one commit must not edit the same path."""
    edits: dict[str, bytes | None] = {}
    for change in changes:
        twice = next((path for path in change.edits if path in edits and edits[path] != change.edits[path]), None)
        if twice is not None:
            raise Conflict(f"two operations change {twice}", next="run them one after the other")
        edits.update(change.edits)
    return edits


@dataclass(frozen=True, slots=True)
class _Commit:
    """The source of snapshots of one commit; `lock` holds the cache unless its user does."""

    cache: Cache
    commit: str
    root: str
    lock: Callable[[], AbstractContextManager[None]]

    def folders(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Entry]]:
        with self.lock():
            items = self.cache.read([f"{self.commit}:{below(self.root, path)}" for path in paths])
        found = {
            path: parse_tree(item[2], len(item[1]) // 2)
            for path, item in zip(paths, items, strict=True)
            if item is not None and item[0] == "tree"
        }
        # The folder in a larger repository may not exist before the first write.
        return {"": {}, **found} if self.root and "" in paths else found

    def files(self, entries: Mapping[str, Entry]) -> Mapping[str, bytes]:
        blobs = [entry.oid for entry in entries.values()]
        with self.lock():
            fetch_files(self.cache, blobs)
            try:
                items = self.cache.read(blobs)
            except ToolFailed:
                # Noted files were lost from the cache, and git's own request for them failed.
                self.cache.forget_blobs()
                fetch_files(self.cache, blobs)
                items = self.cache.read(blobs)
        return {path: item[2] for path, item in zip(entries, items, strict=True) if item is not None}


def snapshot_of(
    cache: Cache,
    commit: str,
    root: str,
    lock: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Snapshot:
    """Return the folder `root` of `commit` (empty: of a branch that does not exist yet)."""
    source = _Commit(cache, commit, root, lock) if commit else None
    return Snapshot(commit=commit, root=root, source=source)


def _changes_of(operations: Sequence[Operation], tip: Snapshot) -> tuple[Change, ...]:
    """Return the changes of the operations at `tip`, of which everything that they read is loaded at once."""
    tip.load(
        (folder for operation in operations for folder in operation.folders()),
        lambda seen: [path for operation in operations for path in operation.files(seen)],
    )
    return tuple(operation.change(tip) for operation in operations)


class Store:
    """One branch of one repository, accessed through a local cache."""

    def __init__(
        self,
        url: str,
        branch: str,
        *,
        base: str = "",
        root: Path,
        author: Author,
        guard: Callable[[Mapping[str, bytes]], None] = lambda _files: None,
        trailers: Sequence[tuple[str, str]] = (),
        timeout_s: float = 120.0,
        folder: str = "",
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Open the branch `branch` of the repository `url`.

        `guard` gets every file before it is written anywhere, and raises to refuse it. `folder` is the folder of the
        repository that holds everything; empty for its top. `notice` gets a message when an unresponsive or failing
        server is retried. A new branch starts at the branch `base`.
        """
        self.cache = Cache(root, url, branch, base, notice)
        self.author = author
        self._guard = guard
        self._trailers = tuple(trailers)
        self._timeout_s = timeout_s
        self.folder = folder

    def apply(self, operations: Sequence[Operation], *, now: int) -> PushResult:
        """Apply all `operations` in one commit at the time `now` (seconds since 1970), or none of them.

        Raises the operations' errors about the newest tip, and ToolFailed if the server keeps refusing.
        """
        started = time.monotonic()
        run = Run(deadline=started + self._timeout_s, time=now, attempts=Attempts(self.cache))
        with self.cache.locked(self._timeout_s):
            self.cache.prepare()
            result = self._until_done(operations, run)
        return replace(result, seconds=time.monotonic() - started)

    def preview(self, operations: Sequence[Operation], tree: str = "") -> tuple[Snapshot, tuple[Change, ...]]:
        """Return the newest tip, or `tree` of the cache, and the changes of the operations there; write nothing."""
        tip = self._snapshot(tree) if tree else self.tip()
        return tip, _changes_of(operations, tip)

    def tip(self) -> Snapshot:
        """Return the newest tip, whose folders and files are loaded when they are read."""
        with self.cache.locked(self._timeout_s):
            commit = self._newest()
        return self._snapshot(commit)

    def _snapshot(self, commit: str) -> Snapshot:
        return snapshot_of(self.cache, commit, self.folder, lambda: self.cache.locked(self._timeout_s))

    def _newest(self) -> str:
        self.cache.prepare()
        return self._reread(Run(deadline=time.monotonic() + self._timeout_s, time=0, attempts=Attempts(self.cache)))

    def _until_done(self, operations: Sequence[Operation], run: Run) -> PushResult:
        # The last known tip is usually current. If not, the server refuses the push, which costs no more than asking
        # first. A new branch that starts at another branch has no such check.
        tip, is_fresh = (cached, False) if (cached := self.cache.lease) else (self._reread(run), True)
        while True:
            try:
                snapshot, changes = self._evaluate(operations, tip)
            except SymphError as error:
                if is_fresh and not self._can_begin_again(error, run):
                    raise
                tip, is_fresh = self._reread(run), True
                continue
            edits = all_edits(changes)
            if not edits:
                if is_fresh:
                    return PushResult(commit=None, changes=changes, moved=run.moved)
                tip, is_fresh = self._reread(run), True
                continue
            commit = self._write(snapshot, edits, changes, run)
            answer = push(self.cache, commit, self.cache.lease, timeout_s=self._left(run))
            done = PushResult(commit=commit, changes=changes, moved=run.moved, heard=answer.heard)
            if answer.is_done:
                self.cache.remember_tip(commit)
                return done
            landed = self._after_refusal(answer, commit, tip, run)
            if landed is None:
                return replace(done, commit=run.arrived, was_lost=True, moved=run.moved)
            run.moved += is_fresh and landed != tip
            tip, is_fresh = landed, True

    def _after_refusal(self, answer: Answer, commit: str, tip: str, run: Run) -> str | None:
        """Return the tip for the next attempt; None if the commit arrived after all. Raises if no attempt is left."""
        if answer.was_sent:
            run.base = run.base or tip
            run.sent.add(commit)
        new_tip = self._reread(run)
        if arrived := self._arrived(new_tip, run):
            run.arrived = arrived
            return None
        if new_tip == tip:
            self._raise_if_final(answer, run)
        else:
            run.attempts.silent_since = None
        self._wait(run, answer.text)
        return new_tip

    def _arrived(self, tip: str, run: Run) -> str | None:
        """Return the newest sent commit that is part of `tip`.

        Searches all commits since the first attempt, even if the history was truncated or the cache was recreated.
        """
        if run.sent and tip:
            fetch_since(self.cache, tip, run.base, self._left(run))
        return find_commit(self.cache.repo, tip, run.sent)

    def _raise_if_final(self, answer: Answer, run: Run) -> None:
        """Raise if the server refused permanently, or has been failing for too long."""
        if answer.is_final or run.attempts.is_over():
            raise answer.ended.failure(
                f"{self.cache.url} refused the commit: {answer.text}", f"branch {self.cache.branch}", answer.next
            )
        run.attempts.tell(answer.text)

    def _evaluate(self, operations: Sequence[Operation], tip: str) -> tuple[Snapshot, tuple[Change, ...]]:
        snapshot = snapshot_of(self.cache, tip, self.folder)
        return snapshot, _changes_of(operations, snapshot)

    def _can_begin_again(self, error: SymphError, run: Run) -> bool:
        """Return True after recreating an unreadable cache, once; an operation's error is final."""
        if isinstance(error, (Conflict, NotFound, SpecError)) or run.is_anew:
            return False
        run.is_anew = True
        self.cache.drop()
        self.cache.prepare()
        return True

    def _write(self, snapshot: Snapshot, edits: Edits, changes: Sequence[Change], run: Run) -> str:
        self._guard({path: content for path, content in edits.items() if content is not None})
        check_edits(snapshot, edits)
        if self.folder:
            # Raises Conflict if a file is in the place of the folder.
            snapshot_of(self.cache, snapshot.commit, "").folder(self.folder)
        files = {below(self.folder, path): content for path, content in edits.items()}
        algorithm = self.cache.algorithm
        blobs = {file_entry(content, algorithm).oid for content in edits.values() if content is not None}
        tree = import_tree(self.cache.repo, snapshot.commit, files, algorithm)
        self.cache.note_blobs(blobs)
        parents = [snapshot.commit] if snapshot.commit else []
        return self.write_commit(tree, parents, message_of(changes, self._trailers), run.time)

    def write_commit(self, tree: str, parents: Sequence[str], message: str, now: int) -> str:
        """Write a commit of a tree in the cache and return its id. Needs the lock of the cache."""
        author, committer = self.author.name, self.author.committer or self.author.name
        return write_commit(
            self.cache.repo,
            tree,
            parents,
            message,
            author=author,
            committer=committer,
            now=now,
            is_signed=self.author.is_signed,
        )

    def _reread(self, run: Run) -> str:
        """Return the tip; if the server answers others, and not this cache, recreate the cache.

        The newest commit suffices, unless one of our commits may be in the history since the last tip.
        """
        depth = None if self.cache.tip and run.sent else 1
        try:
            return fetch_tip(self.cache, depth=depth, timeout_s=self._left(run))
        except ToolUnreachable:
            if not is_reachable(self.cache, self._left(run)):
                raise
            self.cache.drop()
            self.cache.prepare()
            return fetch_tip(self.cache, timeout_s=self._left(run))

    def _wait(self, run: Run, text: str) -> None:
        pause = run.attempts.pause_s()
        if time.monotonic() + pause > run.deadline:
            raise ToolFailed(
                f"{self.cache.url} did not accept the commit within {self._timeout_s:g} s ({run.attempts.tries} tries)",
                f"the last answer was: {text}",
                "nothing was published; retry when fewer commits arrive on the branch",
            )
        time.sleep(pause)

    def _left(self, run: Run) -> float:
        return max(1.0, min(60.0, run.deadline - time.monotonic()))
