"""Requests of a cache to its remote: the tip, the content of files, pushes, and the log of the branch.

A refusal is never classified from its text alone: real servers word the same lost race in seven ways. After a push, the
caller reads the tip again. The text only shows if a retry can help.
"""

from __future__ import annotations

import contextlib
import random
import re
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.formats.printable import printable_line, printable_lines
from symphony_charts.system.git.cache import TIP_REF, Cache, bare_repository
from symphony_charts.system.git.objects import ObjectReader, history, merge_base
from symphony_charts.system.git.program import connection_fault, git, reason_of
from symphony_charts.system.subprocess_runner import Completed, progress_notice

# Patterns are compiled when something fails: that takes 10 ms.
# A push that lost a race mentions locks or old values.
_MAY_BE_RACE = r"lock|failed to update|old value|atomic|non-fast-forward|stale|fetch first|expected"
_NO_BRANCH = r"couldn't find remote ref|Remote branch .* not found"
_BASE_REF = "refs/symph/base"
# Source: git's fetch-pack.c (versions 2 and 0 of the protocol) and send-pack.c.
_MISMATCH = r"mismatched algorithms|does not support this repository's (?:object format|hash algorithm)"


class ToolUnreachable(ToolFailed):
    """The remote gave no answer, and may give one later."""


PATIENCE_S = 15.0
"""Time to keep asking a server that does not answer, in seconds."""
# The wait between attempts grows from the first value to one of the others: the second for a local server.
_FIRST_WAIT_S, _LOCAL_WAIT_S, _REMOTE_WAIT_S = 0.02, 1.0, 10.0
# Failures of a connection or a server, which pass; a damaged cache has other words. Sources: git's remote-curl.c,
# fetch-pack.c, pkt-line.c, connect.c; libcurl's strerror.c; OpenSSH's packet.c.
_PASSING = (
    r"returned error: (?:408|429|5\d\d)|RPC failed|early EOF|unexpected disconnect|hung up|expected (?:'|flush)"
    r"|bad line length|(?:Connection|Operation) (?:reset|timed out|closed|aborted)|Broken pipe|kex_exchange"
    r"|Temporary failure|Empty reply|Recv failure|Send failure|transfer closed|curl \d+|GnuTLS recv|unexpected eof"
)
# git's only words when a session of ssh ends without any: a refusal has a reason.
_NO_REASON = "Could not read from remote repository."


class Attempts:
    """Waits between attempts to reach a server; the first failure is reported: silence looks like a hanging command."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        url = cache.url
        is_local = ("://" not in url and ":" not in url) or "//127." in url or "file://" in url
        self._longest_s = _LOCAL_WAIT_S if is_local else _REMOTE_WAIT_S
        self._is_told = False
        self.tries = 0
        self.silent_since: float | None = None

    def is_over(self) -> bool:
        """Return True if the server has been failing for longer than `PATIENCE_S`."""
        now = time.monotonic()
        self.silent_since = self.silent_since or now
        return now - self.silent_since > PATIENCE_S

    def again(self, text: str) -> bool:
        """Report the failure, wait, and return True; return False if no time is left."""
        if self.is_over():
            return False
        self.tell(text)
        time.sleep(self.pause_s())
        return True

    def tell(self, text: str) -> None:
        if not self._is_told:
            self._cache.notice(f"{text}; trying again for {PATIENCE_S:g} s")
        self._is_told = True

    def pause_s(self) -> float:
        """Return a random wait below a doubling bound. Source: AWS, "Exponential Backoff And Jitter" (full jitter)."""
        self.tries += 1
        bound = min(_FIRST_WAIT_S * 2 ** min(self.tries, 20), self._longest_s)
        return random.uniform(0, bound)  # noqa: S311 - spreads writers, guards nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a push. `is_done`: the server accepted it. `was_sent`: it may have, even if git printed an error.

    `is_final`: the server refused, and would again. `text` is the reason, `next` the next step.
    """

    ended: Completed
    is_done: bool = False
    was_sent: bool = False
    is_final: bool = False
    text: str = ""
    next: str = ""

    @property
    def heard(self) -> tuple[str, ...]:
        """The lines that the server itself wrote: hooks and forges write after ``remote:``."""
        lines = printable_lines(self.ended.error_text).split("\n")
        texts = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
        return tuple(filter(None, texts))


def fetch_tip(cache: Cache, *, depth: int | None = 1, timeout_s: float = 60.0) -> str:
    """Fetch the newest commit of the branch with its trees; return the commit's id.

    With `depth` None all commits since the last known tip come too. Returns an empty text for a repository without
    branches. Raises Conflict if the branch existed before, NotFound if only this branch is missing, ToolUnreachable if
    a retry may help, else ToolFailed.
    """
    ended = _fetch_branch(cache, cache.branch, depth, timeout_s)
    is_of_base = bool(ended.status and cache.base and re.search(_NO_BRANCH, ended.error_text))
    if is_of_base:
        ended = _fetch_branch(cache, cache.base, depth, timeout_s)
    if ended.status:
        if re.search(_NO_BRANCH, ended.error_text):
            if cache.lease:
                what = f"the branch {cache.branch} has been deleted; its last known commit is {cache.lease}"
                step = f"git push {shlex.quote(cache.url)} {cache.lease}:refs/heads/{cache.branch}"
                more = f"to start with an empty branch, remove {cache.folder}"
                raise Conflict(what, cache.url, f"restore it from a clone: {step}; {more}")
            heads = list_heads(cache, timeout_s)
            _check(heads, cache.url)
            if not heads.text.strip():
                cache.remember_tip("")
                return ""
            what = f"the repository has no branch {cache.base or cache.branch}"
            raise NotFound(what, cache.url, "create it: symph gitops init, or name another branch: --branch NAME")
        _check(ended, cache.url)
    tip = (cache.repo / "FETCH_HEAD").read_text().split()[0]
    cache.remember_tip(tip, is_of_base=is_of_base)
    return tip


def _fetch_branch(cache: Cache, branch: str, depth: int | None, timeout_s: float) -> Completed:
    depths = () if depth is None else (f"--depth={depth}",)
    argv = ["--no-write-commit-graph", *depths, "--filter=blob:none", "origin"]
    return _fetch(cache, timeout_s, *argv, f"+refs/heads/{branch}:{TIP_REF}")


def _fetch(cache: Cache, timeout_s: float, *words: str) -> Completed:
    return read(cache, cache.repo, "fetch", "--quiet", "--no-tags", *words, timeout_s=timeout_s)


def read(cache: Cache, repo: Path | None, *argv: str, timeout_s: float, **options: Any) -> Completed:
    """Run git in `repo` to read from the remote; ask again while a connection or the server fails.

    Returns its result, success or not. Raises ToolFailed after a timeout, or if the host accepts no connection.
    """
    attempts, is_remade = Attempts(cache), False
    while True:
        ended = _ask(cache, repo, *argv, timeout_s=timeout_s, **options)
        if not ended.status:
            return ended
        text = ended.error_text
        if repo == cache.repo and not is_remade and _has_other_format(cache, text):
            is_remade = True
            continue
        reason = reason_of(ended)
        # Protocol version 0 also hangs up if a branch is missing.
        is_answer = reason.is_final or re.search(_NO_BRANCH, text)
        may_pass = not is_answer and (re.search(_PASSING, text) or reason.text == _NO_REASON)
        if not may_pass or not attempts.again(f"cannot read {cache.url}: {reason.text}"):
            return ended


def _has_other_format(cache: Cache, text: str) -> bool:
    """Return True, with an empty cache of the other object format, if git's `text` reports that the remote has it."""
    if not re.search(_MISMATCH, text):
        return False
    other = "sha256" if cache.algorithm == "sha1" else "sha1"
    cache.drop()
    cache.prepare(other)
    return True


def _ask(cache: Cache, repo: Path | None, *argv: str, timeout_s: float, **options: Any) -> Completed:
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
            return git(repo, *argv, timeout_s=timeout_s, check=False, give_up=give_up, **options)
        except ToolFailed as error:
            if error.status is not None:
                late = f"{cache.url} did not answer git within {timeout_s:.0f} s"
                error.what = f"cannot reach {cache.url}: {silence}" if silence else late
                error.next = "check the address and the network: git ls-remote ADDRESS"
            raise


def fetch_branch_and_base(cache: Cache, timeout_s: float = 60.0) -> tuple[str, str] | None:
    """Return the newest commits of the branch and of its base branch, with the history that they do not share.

    None if the branch does not exist yet or has no base. The second is empty if the branch equals or directly follows
    its base. Raises ToolUnreachable and ToolFailed.
    """
    if not cache.base or cache.base == cache.branch:
        return None
    refs = (f"+refs/heads/{cache.branch}:{TIP_REF}", f"+refs/heads/{cache.base}:{_BASE_REF}")
    ended = _fetch(cache, timeout_s, "--filter=blob:none", "--depth=1", "origin", *refs)
    if ended.status and re.search(_NO_BRANCH, ended.error_text):
        return None
    _check(ended, cache.url)
    tip, base = git(cache.repo, "rev-parse", TIP_REF, _BASE_REF).text.split()
    cache.remember_tip(tip)
    # The parents of the tip show this without any history.
    if tip == base or f"parent {base}\n" in git(cache.repo, "cat-file", "commit", tip).text.partition("\n\n")[0]:
        return tip, ""
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
            if ended.status and re.search(_NO_BRANCH, ended.error_text):
                return
            _check(ended, cache.url)


def fetch_files(cache: Cache, blobs: Iterable[str], timeout_s: float = 60.0) -> None:
    """Fetch the content of files by their ids in one request, without those that are already here."""
    wanted = cache.missing(set(blobs))
    if not wanted:
        return
    argv = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
    argv += ["--filter=blob:none", "--stdin", "origin"]
    text = "".join(f"{oid}\n" for oid in sorted(wanted)).encode()
    ended = read(cache, cache.repo, *argv, input=text, timeout_s=timeout_s)
    _check(ended, f"files from {cache.url}")
    cache.note_blobs(wanted)


def push(cache: Cache, commit: str, lease: str, *, timeout_s: float = 60.0) -> Answer:
    """Ask the server to move the branch from `lease` (empty: it does not exist yet) to its descendant `commit`.

    A plain push would also move a branch that was rewound to an older commit of its history. The holder of the cache
    lock records the new tip.
    """
    ref = f"refs/heads/{cache.branch}"
    argv = ["push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{lease}", "origin", f"{commit}:{ref}"]
    try:
        ended = _ask(cache, cache.repo, *argv, timeout_s=timeout_s)
    except ToolFailed as error:
        # Timeout: git was stopped, but the server may still process the push.
        late = Completed(argv=tuple(error.argv), status=-1, stdout=b"", stderr=b"", seconds=error.seconds)
        return Answer(was_sent=True, text=error.what, ended=late)
    if ended.status == 0:
        return Answer(is_done=True, was_sent=True, ended=ended)
    if _has_other_format(cache, ended.error_text):
        # An empty repository shows its format only here.
        return Answer(text=f"the repository names objects by {cache.algorithm}", ended=ended)
    verdict = _verdict(ended.text)
    is_refused = verdict.startswith("[remote rejected]") and not re.search(_MAY_BE_RACE, verdict)
    reason = reason_of(ended)
    return Answer(
        ended=ended,
        was_sent=not verdict.startswith("[rejected]"),
        is_final=is_refused or (not verdict and reason.is_final),
        text=verdict or reason.text,
        next=_remediation(ended) if is_refused else reason.next,
    )


def list_heads(cache: Cache, timeout_s: float = 60.0) -> Completed:
    """List the branches without the cache: if that works and a fetch does not, the cache is the problem."""
    return read(cache, None, "ls-remote", "--quiet", "--heads", "--", cache.url, timeout_s=timeout_s)


def _verdict(porcelain: str) -> str:
    """Return git's verdict on our branch, e.g. ``[remote rejected] (pre-receive hook declined)``; empty without one."""
    for line in porcelain.splitlines():
        flag, *rest = line.split("\t")
        if flag == "!" and len(rest) == 2:
            return printable_line(rest[1].strip())
    return ""


# Messages of forges: "Commits must have verified signatures", "Commit must be signed", "unsigned commit".
_WANTS_SIGNATURE = r"(?i)\b(un)?signed\b|\bsignatures?\b"


def _remediation(ended: Completed) -> str:
    if re.search(_WANTS_SIGNATURE, ended.error_text):
        return "sign your commits: git config commit.gpgsign true; git config user.signingkey KEY"
    if "currently checked out" in ended.error_text + ended.text:
        return "give a bare repository (git clone --bare makes one), or another branch: --branch NAME"
    return "if the branch is protected, push a branch for review: --branch NAME"


def _check(ended: Completed, what: str) -> None:
    if ended.status:
        reason = reason_of(ended)
        kind = ToolFailed if reason.is_final else ToolUnreachable
        raise ended.failure(f"cannot read {what}: {reason.text}", next=reason.next, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit: id, author as ``Name <mail>``, time in seconds UTC, and message."""

    oid: str
    author: str
    time: int
    message: str


class Log:
    """The log of a branch, in a repository of commits without trees and files."""

    def __init__(self, cache: Cache, folder: str = "") -> None:
        """Read the log of the branch in `cache`; all paths are below `folder` in the repository."""
        self._cache, self.folder = cache, folder
        self._repo = cache.folder / "log.git"

    def find(self, text: str, timeout_s: float = 120.0) -> list[Commit]:
        """Return the commits whose message contains `text`, newest first. Raises ToolFailed if they cannot be read."""
        with self._cache.locked(timeout_s):
            self._fetch(timeout_s)
            fields = "%H%x00%an <%ae>%x00%ct%x00%B%x01"
            argv = ["log", "--fixed-strings", f"--grep={text}", f"--format={fields}", TIP_REF, "--"]
            records = git(self._repo, *argv, timeout_s=timeout_s).text.split("\x01")
        parts = [record.strip("\n").split("\0") for record in records if record.strip("\n")]
        return [Commit(oid=part[0], author=part[1], time=int(part[2]), message=part[3]) for part in parts]

    def read(self, names: Sequence[str], timeout_s: float = 120.0) -> list[bytes | None]:
        """Return files of old commits, named ``COMMIT:PATH``; None for a missing one."""
        attempts = Attempts(self._cache)
        with self._cache.locked(timeout_s):
            while True:
                try:
                    with contextlib.closing(ObjectReader(self._repo, timeout_s)) as reader:
                        return [None if item is None else item[2] for item in reader.read(names)]
                except ToolFailed as error:
                    # Git fetches the files by itself, and hides why it failed.
                    if not attempts.again(error.what):
                        raise

    def _fetch(self, timeout_s: float) -> None:
        algorithm = self._cache.algorithm
        config = self._repo / "config"
        is_there = (self._repo / "HEAD").is_file() and config.is_file()
        if not is_there or f"objectFormat = {algorithm}" not in config.read_text():
            bare_repository(self._repo, self._cache.url, self._cache.branch, algorithm)
        refspec = f"+refs/heads/{self._cache.branch}:{TIP_REF}"
        argv = ["fetch", "--quiet", "--no-tags", "--no-write-commit-graph", "--filter=tree:0", "origin", refspec]
        ended = read(self._cache, self._repo, *argv, timeout_s=timeout_s)
        _check(ended, f"the history of {self._cache.url}")
