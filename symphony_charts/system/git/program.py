"""The git program runs so that neither hooks nor settings of this machine change what it does to a cache of ours.

Transports and credentials stay git's own: its settings for them, its helpers and the agent of ssh are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from symphony_charts.errors import SpecError, ToolMissing
from symphony_charts.formats.urls import repository_fault
from symphony_charts.system.subprocess_runner import Completed, run

__all__ = ["check_branch", "check_url", "git", "git_version"]

_OLDEST_GIT = (2, 30)

_SETTINGS = {
    "core.hooksPath": "/dev/null",  # also the hook `pre-push` of the user's own settings
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    "push.followTags": "false",
    "protocol.version": "2",
    "core.quotePath": "true",
    # A connection that carries nothing for so long is dead.
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "30",
}
_OPTIONS = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
_ENV = {"GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", "GIT_OPTIONAL_LOCKS": "0"}


def git(
    folder: Path | None,
    *args: str,
    input: bytes | None = None,
    timeout_s: float = 60.0,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    give_up: Callable[[], str] | None = None,
) -> Completed:
    """Run git on the bare repository `folder` (None: on none), with `env` over what it usually gets.

    Raises ToolMissing, and ToolFailed if `check`.
    """
    options = () if folder is None else (f"--git-dir={folder}",)
    argv = ["git", *options, *_OPTIONS, *args]
    return run(argv, input=input, timeout_s=timeout_s, env={**_ENV, **(env or {})}, check=check, give_up=give_up)


@lru_cache(maxsize=1)
def git_version() -> tuple[int, int]:
    """Return the version of the git program. Raises ToolMissing without one, or with one that is too old."""
    match = re.search(r"(\d+)\.(\d+)", run(["git", "--version"], timeout_s=10).text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < _OLDEST_GIT:
        wanted = ".".join(map(str, _OLDEST_GIT))
        raise ToolMissing(f"git {version[0]}.{version[1]} is too old", next=f"install git {wanted} or newer")
    return version


def check_url(url: str) -> str:
    """Return `url` itself if git may be given it. Raises SpecError: see `repository_fault`."""
    fault = repository_fault(url, "repository.url")
    if fault:
        raise SpecError([fault])
    return url


def check_branch(branch: str) -> str:
    """Return `branch` itself if it is a branch's name. Raises SpecError. Source: git help check-ref-format."""
    parts = branch.split("/")
    is_bad = any(not part or part.startswith(".") or part.endswith((".lock", ".")) for part in parts)
    if (
        is_bad
        or branch.startswith("-")
        or ".." in branch
        or "@{" in branch
        or re.search(r"[\0-\x20~^:?*\[\\\x7f]", branch)
    ):
        raise SpecError.one(f'"{branch}" is no name of a branch', "branch", "use letters, digits, - and /")
    return branch
