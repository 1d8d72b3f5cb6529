"""Requests of a cache to its remote: the tip, the content of files, and pushes.

A refusal is never classified from its text alone: real servers word the same lost race in seven ways. After a push, the
caller reads the tip again. The text only shows if a retry can help.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.formats.printable import printable_line, printable_lines
from symphony_charts.system.git.cache import TIP_REF, Cache
from symphony_charts.system.git.objects import history, merge_base
from symphony_charts.system.git.program import connection_fault, git, reason_of
from symphony_charts.system.subprocess_runner import Completed, progress_notice

_NO_BRANCH = re.compile(r"couldn't find remote ref|Remote branch .* not found")
_HEADS = "refs/symph/heads/"
_BASE_REF = "refs/symph/base"


class ToolUnreachable(ToolFailed):
    """The remote gave no answer, and may give one later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a push. `is_done`: the server accepted it. `was_sent`: it may have, whatever git printed.

    `is_final`: the server refused, and would again. `text` is the reason, `next` the next step; `heard` lists the
    server's own messages, line by line.
    """

    is_done: bool
    was_sent: bool
    is_final: bool
    text: str
    ended: Completed
    next: str = ""
    heard: tuple[str, ...] = ()


def fetch_tip(cache: Cache, *, depth: int | None = 1, timeout_s: float = 60.0) -> str:
    """Fetch the newest commit of the branch with its trees; return the commit's id.

    With `depth` None all commits since the last known tip come too. Returns an empty text for a repository without
    branches. Raises Conflict if the branch existed before, NotFound if only this branch is missing, ToolUnreachable if
    a retry may help, else ToolFailed.
    """
    ended = _fetch_branch(cache, cache.branch, depth, timeout_s)
    is_of_base = bool(ended.status and cache.base and _NO_BRANCH.search(ended.error_text))
    if is_of_base:
        ended = _fetch_branch(cache, cache.base, depth, timeout_s)
    if ended.status:
        if _NO_BRANCH.search(ended.error_text):
            if cache.lease:
                raise _deleted(cache)
            if not _has_branches(cache, timeout_s):
                cache.remember_tip("")
                return ""
            what = f"the repository has no branch {cache.base or cache.branch}"
            raise NotFound(what, cache.url, "symph gitops init makes one; or name another with --branch")
        raise _failed(ended, f"cannot read {cache.url}")
    tip = (cache.repo / "FETCH_HEAD").read_text().split()[0]
    cache.remember_tip(tip, is_of_base=is_of_base)
    return tip


def _deleted(cache: Cache) -> Conflict:
    step = f"restore it from a clone: git push {shlex.quote(cache.url)} {cache.lease}:refs/heads/{cache.branch}"
    return Conflict(
        f"the branch {cache.branch} has been deleted; its last known commit is {cache.lease}",
        cache.url,
        f"{step}; to start with an empty branch, remove {cache.folder}",
    )


def _fetch_branch(cache: Cache, branch: str, depth: int | None, timeout_s: float) -> Completed:
    depths = () if depth is None else (f"--depth={depth}",)
    argv = ["--no-write-commit-graph", *depths, "--filter=blob:none", "origin"]
    return _fetch(cache, timeout_s, *argv, f"+refs/heads/{branch}:{TIP_REF}")


def _fetch(cache: Cache, timeout_s: float, *words: str) -> Completed:
    return _ask(cache, "fetch", "--quiet", "--no-tags", *words, timeout_s=timeout_s)


def _ask(cache: Cache, *argv: str, timeout_s: float, **options: Any) -> Completed:
    """Run git against the remote; return its result, success or not.

    Raises ToolFailed after a timeout, or if the host accepts no connection.
    """
    silence = ""

    def give_up() -> str:
        nonlocal silence
        silence = connection_fault(cache.url)
        return silence

    with progress_notice(cache.url):
        try:
            return git(cache.repo, *argv, timeout_s=timeout_s, check=False, give_up=give_up, **options)
        except ToolFailed as error:
            if error.status is not None:
                late = f"{cache.url} gave git no answer within {timeout_s:.0f} s"
                error.what = f"cannot reach {cache.url}: {silence}" if silence else late
                error.next = "check the address, and that this machine reaches it: git ls-remote"
            raise


def fetch_branch_and_base(cache: Cache, timeout_s: float = 60.0) -> tuple[str, str] | None:
    """Return the newest commits of the branch and of its base branch, with the history that they do not share.

    None if the branch does not exist yet, has no base, or equals or directly follows the newest commit of its base.
    Raises ToolUnreachable and ToolFailed.
    """
    if not cache.base or cache.base == cache.branch:
        return None
    refs = (f"+refs/heads/{cache.branch}:{TIP_REF}", f"+refs/heads/{cache.base}:{_BASE_REF}")
    ended = _fetch(cache, timeout_s, "--filter=blob:none", "--depth=1", "origin", *refs)
    if ended.status and _NO_BRANCH.search(ended.error_text):
        return None
    _check(cache, ended)
    tip, base = git(cache.repo, "rev-parse", TIP_REF, _BASE_REF).text.split()
    cache.remember_tip(tip)
    # The parents of the tip show this without any history.
    if tip == base or f"parent {base}\n" in git(cache.repo, "cat-file", "commit", tip).text.partition("\n\n")[0]:
        return None
    _deepen(cache, refs, lambda: bool(merge_base(cache.repo, tip, base)), timeout_s)
    return tip, base


def fetch_since(cache: Cache, tip: str, base: str, timeout_s: float = 60.0) -> None:
    """Fetch the history of `tip` back to its commit `base` (empty: all of it) if it is truncated before that.

    Fetches nothing for a branch that no longer exists. Raises ToolUnreachable and ToolFailed.
    """
    _deepen(cache, (f"+refs/heads/{cache.branch}:{TIP_REF}",), lambda: base in history(cache.repo, tip), timeout_s)


def _deepen(cache: Cache, refs: Iterable[str], is_enough: Callable[[], bool], timeout_s: float) -> None:
    """Fetch more of the history of `refs` until it `is_enough` or whole, unless a branch no longer exists."""
    for depth in ("--deepen=50", "--unshallow"):
        if (cache.repo / "shallow").exists() and not is_enough():
            ended = _fetch(cache, timeout_s, "--filter=blob:none", depth, "origin", *refs)
            if ended.status and _NO_BRANCH.search(ended.error_text):
                return
            _check(cache, ended)


def fetch_heads(cache: Cache, timeout_s: float = 60.0) -> dict[str, str]:
    """Return the message of the newest commit of every branch, by branch, without fetching files or history.

    Raises ToolUnreachable and ToolFailed.
    """
    argv = ("--prune", "--depth=1", "--filter=tree:0", "origin", f"+refs/heads/*:{_HEADS}*")
    ended = _fetch(cache, timeout_s, *argv)
    if ended.status and not _has_branches(cache, timeout_s):
        return {}  # git treats a shallow fetch of nothing as an error.
    _check(cache, ended)
    text = git(cache.repo, "for-each-ref", "--format=%(refname)%00%(contents)%00", _HEADS).text
    parts = text.split("\0")
    names = [name.strip().removeprefix(_HEADS) for name in parts[:-1:2]]
    return dict(zip(names, parts[1::2], strict=True))


def _check(cache: Cache, ended: Completed) -> None:
    if ended.status:
        raise _failed(ended, f"cannot read {cache.url}")


def fetch_files(cache: Cache, blobs: Iterable[str], timeout_s: float = 60.0) -> None:
    """Fetch the content of files by their ids in one request, without those that are already here."""
    wanted = cache.missing(set(blobs))
    if not wanted:
        return
    argv = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
    argv += ["--filter=blob:none", "--stdin", "origin"]
    text = "".join(f"{oid}\n" for oid in sorted(wanted)).encode()
    ended = _ask(cache, *argv, input=text, timeout_s=timeout_s)
    if ended.status:
        raise _failed(ended, f"cannot read files from {cache.url}")
    cache.note_blobs(wanted)


def push(cache: Cache, commit: str, lease: str, *, timeout_s: float = 60.0) -> Answer:
    """Ask the server to move the branch from `lease` (empty: it does not exist yet) to its descendant `commit`.

    A plain push would also move a branch that was rewound to an older commit of its history. The holder of the cache
    lock records the new tip.
    """
    ref = f"refs/heads/{cache.branch}"
    argv = ["push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{lease}", "origin", f"{commit}:{ref}"]
    try:
        ended = _ask(cache, *argv, timeout_s=timeout_s)
    except ToolFailed as error:
        # Timeout: git was stopped, but the server may still process the push.
        late = Completed(argv=tuple(error.argv), status=-1, stdout=b"", stderr=b"", seconds=error.seconds)
        return Answer(is_done=False, was_sent=True, is_final=False, text=error.what, ended=late)
    if ended.status == 0:
        return Answer(is_done=True, was_sent=True, is_final=False, text="", ended=ended, heard=_server_messages(ended))
    verdict = _verdict(ended.text)
    is_ours = verdict.startswith("[rejected]")
    is_refused = verdict.startswith("[remote rejected]") and not _may_be_race(verdict)
    reason = reason_of(ended)
    return Answer(
        is_done=False,
        was_sent=not is_ours,
        is_final=is_refused or (not verdict and reason.is_final),
        text=verdict or reason.text,
        next=_remediation(ended) if is_refused else reason.next,
        heard=_server_messages(ended),
        ended=ended,
    )


def is_reachable(cache: Cache, timeout_s: float = 60.0) -> bool:
    """Return True if git can read the remote without the cache: then the cache is the problem."""
    ended = git(None, "ls-remote", "--quiet", "--heads", "--", cache.url, timeout_s=timeout_s, check=False)
    return ended.status == 0


def _has_branches(cache: Cache, timeout_s: float) -> bool:
    ended = _ask(cache, "ls-remote", "--quiet", "--heads", "origin", timeout_s=timeout_s)
    _check(cache, ended)
    return bool(ended.text.strip())


def _verdict(porcelain: str) -> str:
    """Return git's verdict on our branch, e.g. ``[remote rejected] (pre-receive hook declined)``; empty without one."""
    for line in porcelain.splitlines():
        flag, *rest = line.split("\t")
        if flag == "!" and len(rest) == 2:
            return printable_line(rest[1].strip())
    return ""


def _server_messages(ended: Completed) -> tuple[str, ...]:
    """Return the lines that the server itself wrote: hooks and forges write after ``remote:``."""
    lines = [line.strip() for line in printable_lines(ended.error_text).split("\n") if line.startswith("remote:")]
    return tuple(text for line in lines if (text := line.removeprefix("remote:").strip()))


# Messages of forges: "Commits must have verified signatures", "Commit must be signed", "unsigned commit".
_WANTS_SIGNATURE = re.compile(r"\b(un)?signed\b|\bsignatures?\b", re.IGNORECASE)


def _remediation(ended: Completed) -> str:
    if _WANTS_SIGNATURE.search(ended.error_text):
        return "sign the commit: --sign KEY, or git config commit.gpgsign true with a user.signingkey"
    if "currently checked out" in ended.error_text + ended.text:
        return "give a bare repository (git clone --bare makes one), or another branch: --branch NAME"
    return "if the branch is protected, push a branch for review: --branch NAME"


def _may_be_race(verdict: str) -> bool:
    """Return True if another push may be the cause: a lost compare-and-swap mentions locks or old values."""
    return bool(
        re.search(r"lock|failed to update|old value|atomic|non-fast-forward|stale|fetch first|expected", verdict)
    )


def _failed(ended: Completed, what: str) -> ToolFailed:
    reason = reason_of(ended)
    kind = ToolFailed if reason.is_final else ToolUnreachable
    return kind(
        f"{what}: {reason.text}",
        next=reason.next,
        argv=ended.argv,
        status=ended.status,
        stdout=ended.text,
        stderr=ended.error_text,
        seconds=ended.seconds,
    )
