"""A repository checked out into a folder, as the init container of a Git volume does it in a pod."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.system.git.program import check_url, git, git_version, said

__all__ = ["check_out_volume"]

_TIMEOUT_S = 600.0


def check_out_volume(repository: str, revision: str, folder: Path) -> str:
    """Check `revision` (branch, tag or commit) of `repository` out into the empty `folder`; the commit it was.

    Only what is needed is fetched where the server allows it. Nothing asks for a password; git's own credential helpers
    do. Raises ToolFailed when there is no such repository or revision, ToolMissing without git.
    """
    git_version()
    url = check_url(repository)
    place = (f"--work-tree={folder}",)
    repo = folder / ".git"
    git(None, "init", "-q", "--", str(folder))
    git(repo, "remote", "add", "origin", url)
    fetched = git(repo, "fetch", "-q", "--depth", "1", "origin", revision, timeout_s=_TIMEOUT_S, check=False)
    if fetched.status == 0:
        git(repo, *place, "checkout", "-q", "--detach", "-f", "FETCH_HEAD", timeout_s=_TIMEOUT_S)
    else:
        # The server gives no single commits, or names none so: then everything, in which an abbreviation counts, too.
        every = ("+refs/heads/*:refs/remotes/origin/*",)
        fetched = git(repo, "fetch", "-q", "--tags", "origin", *every, timeout_s=_TIMEOUT_S, check=False)
        if fetched.status:
            what = f"the repository {repository} cannot be read: {said(fetched)}"
            raise fetched.failure(what, next="check its address, and that git may read it: git ls-remote")
        done = git(repo, *place, "checkout", "-q", "--detach", "-f", revision, timeout_s=_TIMEOUT_S, check=False)
        if done.status:
            raise done.failure(f'the repository {repository} has no revision "{revision}": {said(done)}')
    return git(repo, "rev-parse", "HEAD").text.strip()
