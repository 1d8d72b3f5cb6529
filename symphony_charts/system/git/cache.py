"""A bare repository per remote branch.

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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.files import write_file
from symphony_charts.system.git.objects import ObjectReader
from symphony_charts.system.git.program import check_branch, check_url, git_version
from symphony_charts.system.user_folders import HAS_FILE_LOCKS

if sys.platform != "win32":
    import fcntl

TIP_REF = "refs/symph/tip"

# Each publish leaves packs behind. Above this number a new cache is cheaper than a cleanup.
_MAX_PACKS = 200


class Cache:
    """The folder of the cache: `repo` is the bare repository, `folder` holds it, its lock and cached facts about it."""

    def __init__(
        self, root: Path, url: str, branch: str, base: str = "", notice: Callable[[str], None] = lambda _text: None
    ) -> None:
        """Use the cache of the branch below `root`, which holds all caches; a new branch starts at the branch `base`.

        Without a base a missing branch is an error. `notice` gets a message when the server is asked again. Raises
        SpecError for an invalid address or branch.
        """
        self.url = str(Path(url).absolute()) if url and "://" not in url and Path(url).is_dir() else check_url(url)
        self.branch = check_branch(branch)
        self.notice = notice
        self._reader: ObjectReader | None = None
        self._mutex, self._is_held = threading.RLock(), False
        self.base = check_branch(base) if base else ""
        key = hashlib.sha256(f"{self.url}\0{branch}".encode()).hexdigest()[:20]
        # Without file locks each process has its own cache.
        self.folder = root / (key if HAS_FILE_LOCKS else f"{key}-{os.getpid()}")
        self.repo = self.folder / "repo.git"

    @contextlib.contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Hold the cache for this thread, which may hold it already. Raises ToolFailed on timeout."""
        with self._mutex:
            if self._is_held:
                yield
                return
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                what = f"cannot write the cache of the repository: {error.strerror}"
                raise ToolFailed(what, str(self.folder), "set SYMPH_STATE_DIR to a writable folder") from error
            try:
                _wait_for(handle, timeout_s, self.folder)
                self._is_held = True
                yield
            finally:
                self._is_held = False
                self._close_reader()
                os.close(handle)

    def prepare(self, algorithm: str = "sha1") -> None:
        """Make the repository if it is missing or has grown too much; needs the lock.

        A new one has the object format `algorithm`. The remote reports another format only when it is asked.
        Raises ToolFailed if it cannot be made, and ToolMissing if git is missing or too old.
        """
        # Only the names: an entry for each would take longer.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if len(os.listdir(self.repo / "objects" / "pack")) > 2 * _MAX_PACKS:  # noqa: PTH208
                self.drop()
        if (self.folder / "made").is_file() and (self.repo / "config").is_file():
            return
        # Check git's version only when a cache is created: the check takes 5 ms.
        git_version()
        self.drop()
        try:
            bare_repository(self.repo, self.url, self.branch, algorithm)
            write_file(self.folder / "made", algorithm.encode() + b"\n", mode=0o600)
        except OSError as error:
            raise ToolFailed(f"cannot make the cache: {error.strerror}", str(self.folder)) from error

    def drop(self) -> None:
        """Empty the cache; needs the lock."""
        self._close_reader()
        for name in ("made", "tip", "blobs"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.repo, ignore_errors=True)

    def read(self, names: Sequence[str]) -> list[tuple[str, str, bytes] | None]:
        """Return objects as `ObjectReader.read` does, by one process until the lock is released; needs the lock."""
        self._reader = self._reader or ObjectReader(self.repo)
        return self._reader.read(names)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    @property
    def algorithm(self) -> str:
        """The object format of the repository: sha1 or sha256."""
        return "sha256" if self._read("made").strip() == "sha256" else "sha1"

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

    def forget_blobs(self) -> None:
        (self.folder / "blobs").unlink(missing_ok=True)

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            # A damaged record counts as missing: its content is requested again.
            return ""


def bare_repository(folder: Path, url: str, branch: str, algorithm: str) -> None:
    """Make an empty repository for one branch of the remote `url`, which git fetches missing objects from."""
    shutil.rmtree(folder, ignore_errors=True)
    # As `git init --bare` makes one, without a process. Source: git help gitrepository-layout.
    for name in ("objects/pack", "refs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(_config(url, branch, algorithm))


def _wait_for(handle: int, timeout_s: float, folder: Path) -> None:
    deadline = time.monotonic() + timeout_s
    while HAS_FILE_LOCKS:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                what = f"another symph command has locked the cache of the repository for {timeout_s:g} s"
                raise ToolFailed(what, str(folder), "wait until it ends, or look for it: ps -ef") from None
            time.sleep(random.uniform(0.002, 0.03))  # noqa: S311 - spreads waits, not security
        else:
            return


def _config(url: str, branch: str, algorithm: str) -> str:
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    return f"""\
[core]
\trepositoryformatversion = 1
\tbare = true
\tcompression = 1
[extensions]
\tpartialClone = origin
\tobjectFormat = {algorithm}
[remote "origin"]
\turl = "{quoted}"
\tfetch = +refs/heads/{branch}:{TIP_REF}
\tpromisor = true
\tpartialCloneFilter = blob:none
"""
