"""Write operations as one commit on a branch, exactly once, despite concurrent changes of the branch.

Objects are written without a work tree and pushed with a lease on the tip that was read, so that the server decides
between writers. If it refuses, because the branch advanced or was rewound, the tip is read and every operation
evaluated again: nothing that was reverted comes back. A process holds the lock of the cache until its own commit is
pushed, and pushes no other commit, so a publish that is interrupted while it waits is never pushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, SpecError, SymphError, ToolFailed
from symphony_charts.gitops.base import Change, Operation, message_of
from symphony_charts.gitops.snapshot import Edits, Entry, Snapshot, below, check_edits, file_entry, parse_tree
from symphony_charts.gitops.store.review import merged_tree
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.objects import history, write_commit, write_edits
from symphony_charts.system.git.program import Author
from symphony_charts.system.git.remote import (
    Answer,
    Attempts,
    ToolUnreachable,
    fetch_branch_and_base,
    fetch_files,
    fetch_since,
    fetch_tip,
    list_heads,
    push,
)

_LOCK_TIMEOUT_S = 120.0


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
    """The state of repeated attempts of `operations`: the sent commits, the server's last state, and the deadline.

    `time` is that of the commits, 0 for a preview. `sent` holds all commits that the server may have received,
    `arrived` the one that it has.
    """

    deadline: float
    attempts: Attempts
    operations: Sequence[Operation] = ()
    time: int = 0
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
    """The source of snapshots of one commit, which takes the lock of the cache to read."""

    cache: Cache
    commit: str
    root: str

    def folders(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Entry]]:
        with self.cache.locked(_LOCK_TIMEOUT_S):
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
        with self.cache.locked(_LOCK_TIMEOUT_S):
            fetch_files(self.cache, blobs)
            try:
                items = self.cache.read(blobs)
            except ToolFailed:
                # Noted files were lost from the cache, and git's own request for them failed.
                self.cache.forget_blobs()
                fetch_files(self.cache, blobs)
                items = self.cache.read(blobs)
        return {path: item[2] for path, item in zip(entries, items, strict=True) if item is not None}


def _changes_of(operations: Sequence[Operation], tip: Snapshot) -> tuple[Change, ...]:
    """Return the changes of the operations at `tip`, whose files that they read are loaded at once."""
    tip.load_files([path for operation in operations for path in operation.files(tip)])
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
        timeout_s: float = _LOCK_TIMEOUT_S,
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
        with self.cache.locked(self._timeout_s):
            self.cache.prepare()
            result = self._until_done(self._new_run(operations, now))
        return replace(result, seconds=time.monotonic() - started)

    def _new_run(self, operations: Sequence[Operation], now: int = 0) -> Run:
        deadline = time.monotonic() + self._timeout_s
        return Run(deadline=deadline, attempts=Attempts(self.cache), operations=operations, time=now)

    def preview(self, operations: Sequence[Operation]) -> tuple[Snapshot, tuple[Change, ...]]:
        """Return the newest tip and the changes of the operations there; write nothing."""
        with self.cache.locked(self._timeout_s):
            tip = self.tip(operations)
            return tip, _changes_of(operations, tip)

    def tip(self, operations: Sequence[Operation] = ()) -> Snapshot:
        """Return the newest tip, whose folders and files are loaded when they are read.

        For `operations` it is what they would change: a stale branch with the commits that it lacks.
        """
        with self.cache.locked(self._timeout_s):
            self.cache.prepare()
            return self.snapshot(self._reread(self._new_run(operations)))

    def snapshot(self, commit: str, folder: str | None = None) -> Snapshot:
        """Return the `folder` (default: of this store) of `commit` (empty: of a branch that does not exist yet)."""
        root = self.folder if folder is None else folder
        return Snapshot(commit=commit, root=root, source=_Commit(self.cache, commit, root) if commit else None)

    def _until_done(self, run: Run) -> PushResult:
        # The last known tip is usually current. If not, the server refuses the push, which costs no more than asking
        # first. A branch with a base has no such check.
        is_fresh = not self.cache.lease or bool(self.cache.base)
        tip = self._reread(run) if is_fresh else self.cache.lease
        while True:
            try:
                snapshot = self.snapshot(tip)
                changes = _changes_of(run.operations, snapshot)
            except SymphError as error:
                if is_fresh and not self._can_begin_again(error, run):
                    raise
                tip, is_fresh = self._reread(run), True
                continue
            edits = all_edits(changes)
            if not edits and not is_fresh:
                tip, is_fresh = self._reread(run), True
                continue
            if not edits and tip == (self.cache.tip or ""):
                return PushResult(commit=None, changes=changes, moved=run.moved)
            # Without edits it is the merge of a stale branch.
            commit = self._write(snapshot, edits, changes, run) if edits else tip
            answer = push(self.cache, commit, self.cache.lease, timeout_s=self._left(run))
            done = PushResult(commit=commit, changes=changes, moved=run.moved, heard=answer.heard)
            if answer.is_done:
                self.cache.remember_tip(commit)
                return done
            landed = self._after_refusal(answer, commit, tip, run)
            if run.arrived:
                return replace(done, commit=run.arrived, was_lost=True)
            run.moved += is_fresh and landed != tip
            tip, is_fresh = landed, True

    def _after_refusal(self, answer: Answer, commit: str, tip: str, run: Run) -> str:
        """Return the new tip, and set `run.arrived` if the commit is there. Raises if no attempt is left."""
        if answer.was_sent:
            run.base = run.base or self.cache.lease
            run.sent.add(commit)
        new_tip = self._reread(run)
        if run.sent and new_tip:
            # Search all commits since the first attempt, even if the history was truncated or the cache recreated.
            fetch_since(self.cache, new_tip, run.base, self._left(run))
            run.arrived = next((commit for commit in history(self.cache.repo, new_tip) if commit in run.sent), "")
        if run.arrived:
            return new_tip
        if new_tip != tip:
            run.attempts.silent_since = None
        elif answer.is_final or run.attempts.is_over():
            what = f"{self.cache.url} refused the commit: {answer.text}"
            raise answer.ended.failure(what, f"branch {self.cache.branch}", answer.next)
        else:
            run.attempts.tell(answer.text)
        pause = run.attempts.pause_s()
        if time.monotonic() + pause > run.deadline:
            tries = f"within {self._timeout_s:g} s ({run.attempts.tries} tries)"
            what, step = f"{self.cache.url} did not accept the commit {tries}", "retry when the branch is less busy"
            raise ToolFailed(what, f"the last answer was: {answer.text}", f"nothing was published; {step}")
        time.sleep(pause)
        return new_tip

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
            self.snapshot(snapshot.commit, "").folder(self.folder)
        files = {below(self.folder, path): content for path, content in edits.items()}
        algorithm, message = self.cache.algorithm, message_of(changes, self._trailers)
        commit = write_edits(self.cache.repo, snapshot.commit, files, message, self.author, run.time, algorithm)
        self.cache.note_blobs({file_entry(content, algorithm).oid for content in edits.values() if content is not None})
        return commit

    def _reread(self, run: Run) -> str:
        """Return the tip; if the server answers others, and not this cache, recreate the cache.

        The newest commit suffices, unless one of our commits may be in the history since the last tip.
        """
        depth = None if self.cache.tip and run.sent else 1
        try:
            return self._merged(run) or fetch_tip(self.cache, depth=depth, timeout_s=self._left(run))
        except ToolUnreachable:
            if list_heads(self.cache, self._left(run)).status:
                raise
            self.cache.drop()
            self.cache.prepare()
            return fetch_tip(self.cache, timeout_s=self._left(run))

    def _merged(self, run: Run) -> str:
        """Return the tip of a branch with a base, merged with that if it is stale; empty for any other branch."""
        sides = fetch_branch_and_base(self.cache, self._left(run)) if run.operations else None
        if sides is None:
            return ""
        tree = merged_tree(self.cache, *sides, run.operations, self.folder)
        if not tree:
            return sides[0]
        text = f"{self.cache.branch} lacks commits of {self.cache.base}"
        if not run.time:
            self.cache.notice(f"{text}: they would be merged into it first; this is the result after that")
            return tree
        self.cache.notice(f"{text}: merged into it, and everything is decided again")
        message = f"merge {self.cache.base} into {self.cache.branch}\n\nSymph-Op: merge\n"
        return write_commit(self.cache.repo, tree, sides, message, self.author, run.time)

    def _left(self, run: Run) -> float:
        return max(1.0, min(60.0, run.deadline - time.monotonic()))
