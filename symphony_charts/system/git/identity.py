"""git itself says who makes commits, and which commit a file comes from."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.errors import SpecError
from symphony_charts.system.subprocess_runner import run

__all__ = ["author", "source_commit"]


def author() -> str:
    """``Name <mail>`` of git's own settings and environment. Raises SpecError where git knows nobody."""
    ended = run(["git", "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"], timeout_s=10, check=False)
    if ended.status:
        raise SpecError.one(
            "git does not know who makes this commit",
            "author",
            'git config --global user.name "Your Name"; git config --global user.email you@example.org',
        )
    # After the name come the seconds since 1970 and the time zone.
    return ended.text.strip().rsplit(" ", 2)[0]


def source_commit(folder: Path) -> str:
    """The commit that is checked out around `folder`, with ``-dirty`` where something there differs; else empty."""
    ended = run(["git", "-C", str(folder), "rev-parse", "HEAD"], timeout_s=10, check=False)
    if ended.status:
        return ""
    status = ["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no", "--", "."]
    changed = run(status, timeout_s=20, check=False)
    return ended.text.strip() + ("-dirty" if changed.status or changed.text.strip() else "")
