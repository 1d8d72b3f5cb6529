"""Write and read Git objects, and merge trees without a work tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.program import UNSIGNED, git, reason_of


def read_objects(repo: Path, names: Sequence[str], timeout_s: float = 60.0) -> list[tuple[str, str, bytes] | None]:
    """Return kind, id and content of each named object (``<id>`` or ``<commit>:<path>``), None for a missing one.

    Names hold no newline. Raises ToolFailed when the repository is damaged.
    """
    if not names:
        return []
    fed = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    data = git(repo, "cat-file", "--batch", input=fed, timeout_s=timeout_s).stdout
    objects: list[tuple[str, str, bytes] | None] = []
    start = 0
    for name in names:
        end = data.find(b"\n", start)
        if end < 0:
            raise ToolFailed(f"git said nothing about {name}", str(repo))
        words = data[start:end].split()
        start = end + 1
        if len(words) != 3 or not words[2].isdigit():
            objects.append(None)
            continue
        size = int(words[2])
        objects.append((words[1].decode(), words[0].decode(), data[start : start + size]))
        start += size + 1
    return objects


def find_commit(repo: Path, tip: str, commits: Iterable[str]) -> str | None:
    """Return the newest of `commits` in the local history of `tip`, or None."""
    wanted = set(commits) if tip else set()
    if tip in wanted or not wanted:
        return tip if wanted else None
    return next((commit for commit in history(repo, tip) if commit in wanted), None)


def history(repo: Path, tip: str) -> list[str]:
    """Return the commits that led to `tip` and itself, newest first, as far as they are here."""
    return git(repo, "rev-list", tip, timeout_s=60).text.split()


_IMPORT_REF = "refs/symph/import"


def import_tree(repo: Path, commit: str, edits: Mapping[str, bytes | None]) -> str:
    """Write the tree of `commit` (empty: an empty tree) with `edits` (None removes) and return its name.

    Only the trees of edited folders are read. Raises ToolFailed if git cannot write it. Source: git help fast-import.
    """
    _clear_import(repo)
    parts = [f"commit {_IMPORT_REF}\nmark :1\ncommitter symph <> 0 +0000\ndata 0\n".encode()]
    parts.append(f"from {commit}\n".encode() if commit else b"deleteall\n")
    for path, content in sorted(edits.items(), key=lambda item: item[1] is not None):
        named = path.encode("utf-8", "surrogateescape")
        if content is None:
            parts.append(b"D %s\n" % named)
        else:
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (named, len(content), content))
    # No ref remains: fetches would offer it to the server.
    parts.append(f"\nget-mark :1\nreset {_IMPORT_REF}\nfrom {'0' * 40}\n\n".encode())
    argv = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force")
    ended = git(repo, *argv, input=b"".join(parts), check=False)
    if ended.status:
        _clear_import(repo)
        what = f"cannot write the cache of the repository: {reason_of(ended).text}"
        raise ended.failure(what, str(repo), "make room on the disk, or set SYMPH_STATE_DIR")
    return f"{ended.text.strip()}^{{tree}}"


def _clear_import(repo: Path) -> None:
    """Remove files of an import that failed or was killed; the lock of the cache keeps others away."""
    for path in (repo / f"{_IMPORT_REF}.lock", *(repo / "objects/pack").glob("tmp_*")):
        path.unlink(missing_ok=True)


def write_commit(
    repo: Path,
    tree: str,
    parents: Sequence[str],
    message: str,
    *,
    author: str,
    committer: str,
    now: int,
    sign: tuple[str, ...] | None = None,
) -> str:
    """Write a commit of `tree` and return its id; author and committer are ``Name <mail>``, `now` is in seconds UTC.

    `sign` are git's options for signing; None leaves the commit unsigned. Raises ToolFailed if git cannot sign it.
    """
    env: dict[str, str] = {}
    for role, person in (("AUTHOR", author), ("COMMITTER", committer)):
        name, _, mail = person.removesuffix(">").rpartition("<")
        env |= {f"GIT_{role}_NAME": name.strip(), f"GIT_{role}_EMAIL": mail, f"GIT_{role}_DATE": f"@{now} +0000"}
    argv = ["-c", "i18n.commitEncoding=UTF-8", *(sign or ()), "commit-tree", *([] if sign is None else ["-S"])]
    argv += [word for parent in parents for word in ("-p", parent)]
    ended = git(repo, *argv, tree, input=message.encode(), env=env, check=False)
    if ended.status:
        reason = reason_of(ended)
        step = "" if sign is None else f"check that git can sign: git commit -S; {UNSIGNED}"
        raise ended.failure(f"git did not make the commit: {reason.text}", next=step)
    return ended.text.strip()


def merge_base(repo: Path, one: str, other: str) -> str:
    """Return the commit where two forked; empty if they share none."""
    return git(repo, "merge-base", one, other, check=False).text.strip()


def changed_entries(repo: Path, before: str, after: str) -> dict[str, str]:
    """Return the paths that differ between two commits, with mode and id of their new entry."""
    data = git(repo, "diff-tree", "-r", "-z", "--no-renames", before, after).stdout
    fields = data.decode("utf-8", "surrogateescape").split("\0")
    lines = (line.split() for line in fields[:-1:2])
    return {path: f"{line[1]} {line[3]}" for line, path in zip(lines, fields[1::2], strict=True)}


def tree_with(repo: Path, commit: str, entries: Mapping[str, str]) -> str:
    """Return the tree of `commit` with other `entries`, as `changed_entries` returns them."""
    index = repo / "symph-merge-index"
    env = {"GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    try:
        git(repo, "read-tree", commit, env=env)
        # Removals, whose mode is 0, come first: a file may make room for a folder.
        lines = "".join(sorted(f"{entry}\t{path}\0" for path, entry in entries.items()))
        fed = lines.encode("utf-8", "surrogateescape")
        git(repo, "update-index", "-z", "--index-info", input=fed, env=env)
        # Unread files are missing here, and need not exist.
        return git(repo, "write-tree", "--missing-ok", env=env).text.strip()
    finally:
        index.unlink(missing_ok=True)
