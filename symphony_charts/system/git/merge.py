"""Two branches are merged by whole files, in an index of its own: no content is read, and none is mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from symphony_charts.system.git.program import git

__all__ = ["changed_paths", "merge_base", "merge_trees"]


def merge_base(repo: Path, one: str, other: str) -> str:
    """Return the commit where two forked; empty where they share none."""
    return git(repo, "merge-base", one, other, check=False).text.strip()


def changed_paths(repo: Path, before: str, after: str) -> set[str]:
    """Return the files that differ between two commits."""
    text = git(repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after).text
    return {path for path in text.split("\0") if path}


def merge_trees(repo: Path, base: str, ours: str, theirs: str, *, theirs_in: Iterable[str]) -> tuple[str, list[str]]:
    """Return the tree of `theirs` with the changes of `ours` since `base`, and the files in conflict.

    Of what stands at or below the paths `theirs_in`, `theirs` alone counts. The tree is empty where files conflict.
    """
    index = repo / "symph-merge-index"
    env = {"GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    try:
        git(repo, "read-tree", "-i", "-m", "--aggressive", base, ours, theirs, env=env)
        for path in theirs_in:
            _stage(repo, env, path, theirs)
        unmerged = git(repo, "ls-files", "-u", "-z", env=env).text.split("\0")
        conflicts = sorted({line.partition("\t")[2] for line in unmerged if line})
        if conflicts:
            return "", conflicts
        # Files that nobody read are not here, nor need they be.
        return git(repo, "write-tree", "--missing-ok", env=env).text.strip(), []
    finally:
        index.unlink(missing_ok=True)


def _stage(repo: Path, env: Mapping[str, str], path: str, commit: str) -> None:
    """Make the index hold the content of `path` in `commit`, if any."""
    held = git(repo, "ls-files", "-z", "--", f":(literal){path}", env=env).text.split("\0")
    gone = "".join(f"0 {'0' * len(commit)}\t{each}\0" for each in dict.fromkeys(held) if each)
    fresh = git(repo, "ls-tree", "-r", "-z", commit, "--", path).text
    git(repo, "update-index", "-z", "--index-info", input=(gone + fresh).encode("utf-8", "surrogateescape"), env=env)
