"""Check out a commit into a folder, and name the commit and author of a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import SpecError, ToolFailed
from symphony_charts.system.git.program import git, git_version, reason_of
from symphony_charts.system.subprocess_runner import run

_SKIPPED = {".git", ".venv", "node_modules", "__pycache__"}
_MAX_BYTES = 8 * 1024 * 1024


def read_checkout(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files below `folder` by relative path, and its symbolic links; files over 8 MiB are left empty.

    Raises SpecError without such a folder, ToolFailed where it cannot be read.
    """
    if not folder.is_dir():
        raise SpecError.one(f"no folder {folder}", str(folder), "give a checkout of the repository")
    files: dict[str, bytes] = {}
    links: list[str] = []
    try:
        for walked, folders, names in os.walk(folder):
            here = Path(walked)
            links += [(here / name).relative_to(folder).as_posix() for name in folders if (here / name).is_symlink()]
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not (here / name).is_symlink())
            for name in names:
                path = here / name
                relative = path.relative_to(folder).as_posix()
                if path.is_symlink():
                    links.append(relative)
                elif path.is_file():
                    files[relative] = path.read_bytes() if path.stat().st_size <= _MAX_BYTES else b""
    except OSError as error:
        raise ToolFailed(f"cannot read {folder}: {error.strerror}", str(error.filename)) from error
    return files, tuple(sorted(links))


def changed_since(folder: Path, base: str) -> tuple[str, ...]:
    """Return the files that were edited or removed since `base` forked off, new ones left out. Raises ToolFailed."""
    argv = ["git", "-C", str(folder), "diff", "--name-only", "-z", "--no-renames", "--relative", "--diff-filter=MDT"]
    ended = run([*argv, "--merge-base", "--end-of-options", base, "--"], timeout_s=60, check=False)
    if ended.status:
        raise ended.failure(f"cannot compare with {base}: {ended.error_text.strip()}", next="fetch it, or give --base")
    return tuple(path for path in ended.stdout.decode("utf-8", "surrogateescape").split("\0") if path)


def count_refs(folder: Path) -> int | None:
    """Return the number of branches and tags there are; None for what is no repository."""
    ended = run(["git", "-C", str(folder), "for-each-ref", "--format=%(refname)"], timeout_s=60, check=False)
    return None if ended.status else len(ended.text.splitlines())


def origin_of(folder: Path) -> str:
    """Return the address that `folder` was cloned from; empty where git knows none."""
    ended = run(["git", "-C", str(folder), "config", "--get", "remote.origin.url"], timeout_s=10, check=False)
    return ended.text.strip()


_TIMEOUT_S = 600.0


def check_out_volume(repository: str, revision: str, folder: Path) -> str:
    """Check `revision` (branch, tag or commit) of `repository` out into the empty `folder`; the commit it was.

    Only what is needed is fetched where the server allows it. Nothing asks for a password; git's own credential helpers
    do. Raises ToolFailed when there is no such repository or revision, ToolMissing without git.
    """
    git_version()
    options = (f"--work-tree={folder}",)
    repo = folder / ".git"
    git(None, "init", "-q", "--", str(folder))
    git(repo, "remote", "add", "--", "origin", repository)
    fetched = git(repo, "fetch", "-q", "--depth", "1", "origin", revision, timeout_s=_TIMEOUT_S, check=False)
    if fetched.status == 0:
        git(repo, *options, "checkout", "-q", "--detach", "-f", "FETCH_HEAD", timeout_s=_TIMEOUT_S)
    else:
        # The server gives no single commits, or names none so: then everything, in which an abbreviation counts, too.
        every = ("+refs/heads/*:refs/remotes/origin/*",)
        fetched = git(repo, "fetch", "-q", "--tags", "origin", *every, timeout_s=_TIMEOUT_S, check=False)
        if fetched.status:
            reason = reason_of(fetched)
            raise fetched.failure(f"the repository {repository} cannot be read: {reason.text}", next=reason.next)
        done = git(repo, *options, "checkout", "-q", "--detach", "-f", revision, timeout_s=_TIMEOUT_S, check=False)
        if done.status:
            raise done.failure(f'the repository {repository} has no revision "{revision}": {reason_of(done).text}')
    return git(repo, "rev-parse", "HEAD").text.strip()


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
