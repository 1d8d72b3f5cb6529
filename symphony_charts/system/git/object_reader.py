"""Folders and files out of a cache, many in one call of git."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.program import git

__all__ = ["find_commit", "read_objects"]


def read_objects(repo: Path, names: Sequence[str], timeout_s: float = 60.0) -> list[tuple[str, str, bytes] | None]:
    """Kind, id and content of each object named (``<id>`` or ``<commit>:<path>``), None where there is none.

    Names hold no newline. Raises ToolFailed when the repository is damaged.
    """
    if not names:
        return []
    fed = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    data = git(repo, "cat-file", "--batch", input=fed, timeout_s=timeout_s).stdout
    found: list[tuple[str, str, bytes] | None] = []
    start = 0
    for name in names:
        end = data.find(b"\n", start)
        if end < 0:
            raise ToolFailed(f"git said nothing about {name}", str(repo))
        words = data[start:end].split()
        start = end + 1
        if len(words) != 3 or not words[2].isdigit():
            found.append(None)
            continue
        size = int(words[2])
        found.append((words[1].decode(), words[0].decode(), data[start : start + size]))
        start += size + 1
    return found


def find_commit(repo: Path, tip: str, commits: Iterable[str], base: str = "") -> str | None:
    """The newest of `commits` in the history of `tip` after `base` (all of it for an empty one); None without any."""
    wanted = set(commits)
    if tip in wanted or not wanted:
        return tip if wanted else None
    revisions = [tip, f"^{base}"] if base else [tip]
    listed = git(repo, "rev-list", *revisions, timeout_s=60).text.split()
    return next((commit for commit in listed if commit in wanted), None)
