"""A bare repository per remote branch, and the log of its commits.

It is a partial clone with trees but few files, persists between commands, and may be deleted at any time. One process
at a time uses it; a killed process leaves it usable.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.files import write_file
from symphony_charts.system.git.objects import read_objects
from symphony_charts.system.git.program import check_branch, check_url, git, git_version, reason_of
from symphony_charts.system.user_folders import HAS_FILE_LOCKS

if sys.platform != "win32":
    import fcntl

TIP_REF = "refs/symph/tip"

# Each publish leaves packs behind. Above this number a new cache is cheaper than a cleanup.
_MAX_PACKS = 200


class Cache:
    """The folder of the cache: `repo` is the bare repository, `folder` holds it, its lock and cached facts about it."""

    def __init__(self, root: Path, url: str, branch: str, base: str = "") -> None:
        """Use the cache of the branch below `root`, which holds all caches; a new branch starts at the branch `base`.

        Without a base a missing branch is an error. Raises SpecError for an invalid address or branch.
        """
        self.url = str(Path(url).absolute()) if url and "://" not in url and Path(url).is_dir() else check_url(url)
        self.branch = check_branch(branch)
        self.base = check_branch(base) if base else ""
        key = hashlib.sha256(f"{self.url}\0{branch}".encode()).hexdigest()[:20]
        # Without file locks each process has its own cache.
        self.folder = root / (key if HAS_FILE_LOCKS else f"{key}-{os.getpid()}")
        self.repo = self.folder / "repo.git"

    @contextlib.contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Hold the cache for this process; the lock vanishes with the process. Raises ToolFailed on timeout."""
        handle = self._open_lock()
        try:
            _wait_for(handle, timeout_s, self.folder)
            yield
        finally:
            os.close(handle)

    def _open_lock(self) -> int:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            what = f"cannot write the cache of the repository: {error.strerror}"
            raise ToolFailed(what, str(self.folder), "set SYMPH_STATE_DIR to a folder that can be written") from error

    def prepare(self) -> None:
        """Make the repository if it is missing or has grown too much; needs the lock.

        Raises ToolFailed if it cannot be made, and ToolMissing if git is missing or too old.
        """
        if self.repo.is_dir() and self._is_overgrown():
            self.drop()
        if (self.folder / "made").is_file() and (self.repo / "config").is_file():
            return
        # Check git's version only when a cache is created: the check takes 5 ms.
        git_version()
        self.drop()
        try:
            bare_repository(self.repo, self.url, self.branch)
            write_file(self.folder / "made", self.url.encode() + b"\n", mode=0o600)
        except OSError as error:
            raise ToolFailed(f"cannot make the cache: {error.strerror}", str(self.folder)) from error

    def drop(self) -> None:
        """Empty the cache; needs the lock."""
        for name in ("made", "tip", "blobs"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.repo, ignore_errors=True)

    @property
    def tip(self) -> str | None:
        """The commit that was the tip at the last fetch."""
        return next(iter(self._read("tip").split()), None)

    @property
    def lease(self) -> str:
        """The commit of the branch at the last fetch; empty for a missing branch that starts at its base."""
        words = self._read("tip").split()
        return words[0] if len(words) == 1 else ""

    def remember_tip(self, commit: str, *, is_of_base: bool = False) -> None:
        """Record the tip, with `is_of_base` the tip of the base branch; empty if there is none."""
        write_file(self.folder / "tip", f"{commit}{' base' if is_of_base else ''}\n".encode(), mode=0o600)

    def missing(self, blobs: set[str]) -> set[str]:
        """Return the `blobs` that may be missing here."""
        return blobs - set(self._read("blobs").split())

    def note_blobs(self, blobs: set[str]) -> None:
        # A lost record only costs another request.
        with contextlib.suppress(OSError), (self.folder / "blobs").open("a") as file:
            file.write("".join(f"{oid}\n" for oid in sorted(blobs)))

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            # A damaged record counts as missing: its content is requested again.
            return ""

    def _is_overgrown(self) -> bool:
        try:
            return len(os.listdir(self.repo / "objects" / "pack")) > 2 * _MAX_PACKS  # noqa: PTH208 - names only
        except OSError:
            return False


def bare_repository(folder: Path, url: str, branch: str) -> None:
    """Make an empty repository for one branch of the remote `url`, which git fetches missing objects from."""
    shutil.rmtree(folder, ignore_errors=True)
    git(None, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--", str(folder), timeout_s=30)
    (folder / "config").write_text(_config(url, branch))
    (folder / "objects" / "pack").mkdir(exist_ok=True)


def _wait_for(handle: int, timeout_s: float, folder: Path) -> None:
    deadline = time.monotonic() + timeout_s
    while HAS_FILE_LOCKS:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                what = f"another symph has held the cache of the repository for {timeout_s:g} s"
                raise ToolFailed(what, str(folder), "wait for it, or look for it with ps") from None
            time.sleep(random.uniform(0.002, 0.03))  # noqa: S311 - spreads waits, not security
        else:
            return


def _config(url: str, branch: str) -> str:
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    return f"""\
[core]
\trepositoryformatversion = 1
\tbare = true
\tcompression = 1
[extensions]
\tpartialClone = origin
[remote "origin"]
\turl = "{quoted}"
\tfetch = +refs/heads/{branch}:{TIP_REF}
\tpromisor = true
\tpartialCloneFilter = blob:none
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit: id, author as ``Name <mail>``, time as ISO 8601 in UTC, and message."""

    oid: str
    author: str
    at: str
    message: str


class Log:
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
        return [Commit(oid=part[0], author=part[1], at=_text(int(part[2])), message=part[3]) for part in parts]

    def read(self, names: Sequence[str], timeout_s: float = 120.0) -> list[bytes | None]:
        """Return files of old commits, named ``COMMIT:PATH``; None for a missing one."""
        with self._cache.locked(timeout_s):
            objects = read_objects(self._repo, names, timeout_s)
        return [None if item is None else item[2] for item in objects]

    def _fetch(self, timeout_s: float) -> None:
        if not (self._repo / "HEAD").is_file() or not (self._repo / "config").is_file():
            bare_repository(self._repo, self._cache.url, self._cache.branch)
        refspec = f"+refs/heads/{self._cache.branch}:{TIP_REF}"
        argv = ["fetch", "--quiet", "--no-tags", "--no-write-commit-graph", "--filter=tree:0", "origin", refspec]
        ended = git(self._repo, *argv, timeout_s=timeout_s, check=False)
        if ended.status:
            reason = reason_of(ended)
            raise ToolFailed(f"cannot read the history of {self._cache.url}: {reason.text}", next=reason.next)


def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
