"""Write and read Git objects, and merge trees without a work tree."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.program import UNSIGNED, Author, git, reason_of, start_git


class ObjectReader:
    """A git process that reads objects of a repository, until it is closed."""

    def __init__(self, repo: Path, timeout_s: float = 60.0) -> None:
        self._repo, self._timeout_s = repo, timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, names: Sequence[str]) -> list[tuple[str, str, bytes] | None]:
        """Return kind, id and content of each named object (``<id>`` or ``<commit>:<path>``), None for a missing one.

        Names hold no newline. Raises ToolFailed when the repository is damaged, or after the timeout.
        """
        if not names:
            return []
        process = self._process = self._process or start_git(self._repo, "cat-file", "--batch")
        timer = threading.Timer(self._timeout_s, process.kill)
        timer.daemon = True
        timer.start()
        try:
            return [self._object(process, name) for name in names]
        except OSError as error:
            raise self._failure(names[0]) from error
        finally:
            timer.cancel()

    def _object(self, process: subprocess.Popen[bytes], name: str) -> tuple[str, str, bytes] | None:
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(f"{name}\n".encode("utf-8", "surrogateescape"))
        process.stdin.flush()
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._failure(name)
        words = line.split()
        if len(words) != 3 or not words[2].isdigit():
            return None
        size = int(words[2])
        content = process.stdout.read(size + 1)
        if len(content) != size + 1:
            raise self._failure(name)
        return words[1].decode(), words[0].decode(), content[:size]

    def _failure(self, name: str) -> ToolFailed:
        self.close()
        return ToolFailed(f"git returned no answer about {name}", str(self._repo))

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                # What was not written to a process that has died is lost with it.
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # both are pipes
            process.wait()


def history(repo: Path, tip: str) -> list[str]:
    """Return the commits that led to `tip` and itself, newest first, as far as they are here."""
    return git(repo, "rev-list", tip, timeout_s=60).text.split()


_IMPORT_REF = "refs/symph/import"


def write_edits(
    repo: Path, parent: str, edits: Mapping[str, bytes | None], message: str, author: Author, now: int, algorithm: str
) -> str:
    """Write a commit after `parent` (empty: the first one) with `edits` (None removes) and return its id.

    Only the trees of edited folders are read. Raises ToolFailed if git cannot write or sign it. Source: git help
    fast-import.
    """
    _clear_import(repo)
    text = message.encode()
    persons = f"author {author.name} {now} +0000\ncommitter {author.committer or author.name} {now} +0000\n"
    parts = [f"commit {_IMPORT_REF}\nmark :1\n{persons}data {len(text)}\n".encode(), text]
    parts.append(f"from {parent}\n".encode() if parent else b"deleteall\n")
    for path, content in sorted(edits.items(), key=lambda item: item[1] is not None):
        named = path.encode("utf-8", "surrogateescape")
        if content is None:
            parts.append(b"D %s\n" % named)
        else:
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (named, len(content), content))
    # No ref remains: fetches would offer it to the server.
    no_object = "0" * (64 if algorithm == "sha256" else 40)
    parts.append(f"\nget-mark :1\nreset {_IMPORT_REF}\nfrom {no_object}\n\n".encode())
    argv = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--force")
    ended = git(repo, *argv, input=b"".join(parts), check=False)
    if ended.status:
        _clear_import(repo)
        what = f"cannot write the cache of the repository: {reason_of(ended).text}"
        raise ended.failure(what, str(repo), "free disk space, or set SYMPH_STATE_DIR to another disk")
    commit = ended.text.strip()
    if not author.is_signed:
        return commit
    return write_commit(repo, f"{commit}^{{tree}}", [parent] if parent else [], message, author, now)


def _clear_import(repo: Path) -> None:
    """Remove files of an import that failed or was killed; the lock of the cache keeps others away."""
    for path in (repo / f"{_IMPORT_REF}.lock", *(repo / "objects/pack").glob("tmp_*")):
        path.unlink(missing_ok=True)


def write_commit(repo: Path, tree: str, parents: Sequence[str], message: str, author: Author, now: int) -> str:
    """Write a commit of `tree` at the time `now` (seconds UTC) and return its id.

    Git's own configuration says how a commit is signed. Raises ToolFailed if that fails.
    """
    env: dict[str, str] = {}
    for role, person in (("AUTHOR", author.name), ("COMMITTER", author.committer or author.name)):
        name, _, mail = person.removesuffix(">").rpartition("<")
        env |= {f"GIT_{role}_NAME": name.strip(), f"GIT_{role}_EMAIL": mail, f"GIT_{role}_DATE": f"@{now} +0000"}
    argv = ["-c", "i18n.commitEncoding=UTF-8", "commit-tree", *(["-S"] if author.is_signed else [])]
    argv += [word for parent in parents for word in ("-p", parent)]
    ended = git(repo, *argv, tree, input=message.encode(), env=env, check=False)
    if ended.status:
        reason = reason_of(ended)
        step = f"check that git can sign: git commit -S; {UNSIGNED}" if author.is_signed else ""
        raise ended.failure(f"git could not make the commit: {reason.text}", next=step)
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
