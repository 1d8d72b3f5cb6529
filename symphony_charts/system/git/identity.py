"""git itself says who makes commits, and which commit a file comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import SpecError
from symphony_charts.system.subprocess_runner import run

__all__ = ["Identity", "identity", "source_commit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Author and committer of a commit, each as ``Name <mail>``."""

    author: str
    committer: str


def identity(configured_author: str = "") -> Identity:
    """Author and committer as git's own settings and environment have them.

    `configured_author` takes the author's place, and that of a committer whom git does not know. Raises SpecError
    where git knows nobody.
    """
    committer = _ident("GIT_COMMITTER_IDENT") or configured_author
    author = configured_author or _ident("GIT_AUTHOR_IDENT")
    if not author or not committer:
        raise SpecError.one(
            "git does not know who makes this commit",
            "author",
            'git config --global user.name "Your Name"; git config --global user.email you@example.org',
        )
    return Identity(author=author, committer=committer)


def _ident(variable: str) -> str:
    ended = run(["git", "-c", "user.useConfigOnly=true", "var", variable], timeout_s=10, check=False)
    # After the name come the seconds since 1970 and the time zone.
    return "" if ended.status else ended.text.strip().rsplit(" ", 2)[0]


def source_commit(folder: Path) -> str:
    """Return the commit that is checked out around `folder`, with ``-dirty`` if files differ; else empty."""
    ended = run(["git", "-C", str(folder), "rev-parse", "HEAD"], timeout_s=10, check=False)
    if ended.status:
        return ""
    status = ["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no", "--", "."]
    changed = run(status, timeout_s=20, check=False)
    return ended.text.strip() + ("-dirty" if changed.status or changed.text.strip() else "")
