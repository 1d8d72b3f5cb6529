"""The log of a branch, in a repository of commits without trees and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.cache import TIP_REF, Cache, bare_repository
from symphony_charts.system.git.objects import read_objects
from symphony_charts.system.git.program import git, reason_of
from symphony_charts.system.git.remote import read


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
        ended = read(self._cache, self._repo, *argv, timeout_s=timeout_s)
        if ended.status:
            reason = reason_of(ended)
            raise ToolFailed(f"cannot read the history of {self._cache.url}: {reason.text}", next=reason.next)


def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
