"""Which processes a changed file concerns, and which files never matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath

__all__ = ["IGNORED", "Watched", "concerned", "is_ignored"]

# What editors, version control and Python leave behind, as patterns of single names.
IGNORED = (
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "__pycache__",
    "*.py[co]",
    "*.egg-info",
    ".*_cache",
    ".ipynb_checkpoints",
    ".venv",
    ".tox",
    ".nox",
    "node_modules",
    ".idea",
    ".vscode",
    ".DS_Store",
    "*~",
    ".*.sw?",
    "4913",
    "#*#",
    ".#*",
    ".goutputstream-*",
    "*___jb_???___",
    "*.tmp",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A file, or all files below a folder, that `processes` use, by the names that users type; empty: all of them."""

    path: PurePath
    processes: tuple[str, ...] = ()


def is_ignored(path: PurePath, roots: Iterable[PurePath], patterns: Sequence[str]) -> bool:
    """Whether a pattern fits a name in `path`, or the whole of it, below every one of `roots` that holds it."""
    below = [path.relative_to(root) for root in roots if root in path.parents]
    return bool(below) and all(_fits(part, patterns) for part in below)


def concerned(changed: Iterable[PurePath], watched: Iterable[Watched]) -> dict[str, list[str]]:
    """The changed paths, as they are told, by the process that they concern; `""` stands for all processes."""
    found: dict[str, list[str]] = {}
    for path in sorted(changed):
        for one in watched:
            if path == one.path or one.path in path.parents:
                told = path.name if path == one.path else str(path.relative_to(one.path))
                for process in one.processes or ("",):
                    found.setdefault(process, []).append(told)
    return {process: list(dict.fromkeys(paths)) for process, paths in found.items()}


def _fits(path: PurePath, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (*path.parts, str(path)))
