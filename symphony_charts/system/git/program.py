"""Run git without the hooks and settings of this machine, and check out repositories.

Transports and credentials use git's own settings, its credential helpers and the ssh agent.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from symphony_charts.errors import SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.formats.names import repository_fault
from symphony_charts.formats.printable import printable_lines
from symphony_charts.system.subprocess_runner import Completed, base_env, run

_OLDEST_GIT = (2, 30)

_SETTINGS = {
    "core.hooksPath": "/dev/null",  # also disables a `pre-push` hook from the user's settings
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
    # A connection that transfers nothing for this long is dead.
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
    """Run git on the bare repository `folder` (None: no repository), with `env` added to its environment.

    Raises ToolMissing, and ToolFailed if `check`.
    """
    options = () if folder is None else (f"--git-dir={folder}",)
    argv = ["git", *options, *_OPTIONS, *args]
    return run(argv, input=input, timeout_s=timeout_s, env={**_ENV, **(env or {})}, check=check, give_up=give_up)


def start_git(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start git on the bare repository `folder`, with pipes as its input and output. Raises ToolMissing."""
    argv = ["git", f"--git-dir={folder}", *_OPTIONS, *args]
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**base_env(), **_ENV},
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise ToolMissing("git is not installed", "", "install git, then: symph doctor") from error


@lru_cache(maxsize=1)
def git_version() -> tuple[int, int]:
    """Return the version of git. Raises ToolMissing if git is missing or too old."""
    match = re.search(r"(\d+)\.(\d+)", run(["git", "--version"], timeout_s=10).text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < _OLDEST_GIT:
        wanted = ".".join(map(str, _OLDEST_GIT))
        raise ToolMissing(f"git {version[0]}.{version[1]} is too old", next=f"install git {wanted} or newer")
    return version


def check_url(url: str) -> str:
    """Return `url` if it is safe to pass to git. Raises SpecError: see `repository_fault`."""
    fault = repository_fault(url, "repository.url")
    if fault:
        raise SpecError([fault])
    return url


def check_branch(branch: str) -> str:
    """Return `branch` if it is a valid branch name. Raises SpecError. Source: git help check-ref-format."""
    parts = branch.split("/")
    has_bad_part = any(not part or part.startswith(".") or part.endswith((".lock", ".")) for part in parts)
    if has_bad_part or branch.startswith("-") or re.search(r"\.\.|@\{|[\0-\x20~^:?*\[\\\x7f]", branch):
        raise SpecError.one(f'"{branch}" is not a valid branch name', "branch", "use letters, digits, - and /")
    return branch


# Only the exit status decides success. The text selects a better message and shows whether a retry can help.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why git failed: its line, the `next` step, and `is_final` if a retry is useless."""

    text: str
    next: str
    is_final: bool = False


_PREFIX = r"(?:(?:fatal|error|remote|hint|ERROR): *)+"
# Lines that accompany every failure, or decoration.
_NOISE = (
    r"Could not read from remote repository\.|Please make sure you have the correct access rights|"
    r"and the repository exists\.|Warning: Permanently added .*|[^\w]*"
)
_CHECK = "check the address and your access: git ls-remote ADDRESS"
_TRUST = "add the certificate of its issuer: git config --global http.sslCAInfo FILE"
_KEY_OF_HOST = "compare its key with the published one and accept it: ssh HOST (remove an old key: ssh-keygen -R HOST)"
_ROOM = "free disk space, or allow larger files: ulimit -f"
_UNTRUSTED = (
    r"SSL certificate problem|certificate verification failed|no alternative certificate subject name"
    r"|SSL peer certificate|unable to get local issuer"
)
_REFUSED = (
    r"Permission denied|returned error: 40[0134]|unsupported protocol|dubious ownership|mismatched algorithms"
    r"|transport '.*' not allowed|is not a valid"
)
# The most specific first: one line becomes the headline. All of these are final. Sources: git's remote-curl.c,
# connect.c, http.c, credential.c; OpenSSH's sshconnect.c; libcurl's vtls.
_TELLING = (
    (r"Host key for .* has changed|No \S+ host key is known for|Host key verification failed", _KEY_OF_HOST),
    (
        r"Permission denied \(|Too many authentication failures",
        "list the keys that ssh offers: ssh -vT HOST; add one: ssh-add KEY",
    ),
    (_UNTRUSTED, _TRUST),
    (r"[Cc]ould not resolve host(?!.*Temporary failure)|Connection refused|Could(n't| not) connect to server", _CHECK),
    (r"[Rr]epository .*not found|does not appear to be a git repository|project you were looking for", _CHECK),
    (r"Authentication failed|could not read (Username|Password)|terminal prompts disabled", _CHECK),
    (r"File too large|No space left on device|Disk quota exceeded", _ROOM),
    (_REFUSED, _CHECK),
)


def reason_of(ended: Completed) -> Reason:
    """Return the reason from git's output: the first known pattern, else the last line that is not noise."""
    if ended.status == -getattr(signal, "SIGXFSZ", 25):
        return Reason(text="git may not write files of this size", next=_ROOM, is_final=True)
    lines = [re.sub(_PREFIX, "", line.strip(), count=1) for line in printable_lines(ended.error_text).split("\n")]
    telling = [line for line in lines if not re.fullmatch(_NOISE, line)]
    for pattern, step in _TELLING:
        for line in telling:
            if re.search(pattern, line):
                return Reason(text=line, next=step, is_final=True)
    said = telling[-1:] or [line for line in lines if line]
    return Reason(text=said[0] if said else f"git ended with status {ended.status}", next=_CHECK)


# Timeout for a connection to a host, in seconds.
REACH_S = 4.0
_PORTS = {"https": 443, "http": 80, "git": 9418}
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
# ssh://user@host:port/path, and scp's user@host:path.
_SSH = r"ssh://(?:[^@/]+@)?(?P<host>[^:/]+)(?::(?P<port>\d+))?/.*|(?!\w+://)(?:[^@/]+@)?(?P<bare>[^:/]+):.*"


def direct_address(url: str) -> tuple[str, int] | None:
    """Return the host and port that a connection to `url` uses; None if unknown, for example behind a proxy."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    is_proxied = parts.scheme != "git" and any(os.environ.get(name) for name in _PROXIES)
    return None if is_proxied else (parts.hostname, parts.port or _PORTS[parts.scheme])


def git_address(url: str) -> tuple[str, int] | None:
    """Return the host and port of a Git repository; for ssh, apply ssh's own settings for the host.

    None if git is configured to take another route (`insteadOf`, a proxy, a replacement for ssh), or if ssh has a
    connection timeout of its own, which takes precedence.
    """
    if re.fullmatch(_SSH, url) is None and direct_address(url) is None:
        return None
    try:
        if _git_output("ls-remote", "--get-url", "--", url) != url:
            return None
        match = re.fullmatch(_SSH, url)
        if match is None:
            return None if _git_output("config", "--get-urlmatch", "http.proxy", url) else direct_address(url)
        if os.environ.get("GIT_SSH_COMMAND") or os.environ.get("GIT_SSH") or _git_output("config", "core.sshCommand"):
            return None
        port = ["-p", match["port"]] if match["port"] else []
        ended = run(["ssh", "-G", *port, "--", match["host"] or match["bare"]], timeout_s=REACH_S, check=False)
    except SymphError:
        return None
    settings = dict(line.partition(" ")[::2] for line in ended.text.splitlines())
    is_open = all(settings.get(key, "none") == "none" for key in ("proxycommand", "proxyjump", "connecttimeout"))
    return (settings["hostname"], int(settings["port"])) if is_open and "hostname" in settings else None


def connection_fault(url: str) -> str:
    """Return an error text if the connection to the host of a Git repository times out, else an empty text."""
    address = git_address(url)
    if address is None:
        return ""
    try:
        socket.create_connection(address, REACH_S).close()
    except TimeoutError:
        return f"{address[0]}:{address[1]} accepts no connection"
    except OSError:
        return ""  # git reports this better.
    return ""


def _git_output(*words: str) -> str:
    return run(["git", *words], cwd="/", timeout_s=REACH_S, check=False).text.strip()


_SKIPPED = {".git", ".venv", "node_modules", "__pycache__"}
_MAX_BYTES = 8 * 1024 * 1024


def read_checkout(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files below `folder` by relative path, and its symbolic links; files over 8 MiB are left empty.

    Raises SpecError if the folder is missing, ToolFailed if it cannot be read.
    """
    if not folder.is_dir():
        raise SpecError.one(f"no folder {folder}", str(folder), "give the folder of a checkout")
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
    """Return the files that were edited or removed since `base` forked off, without new files. Raises ToolFailed."""
    argv = ["git", "-C", str(folder), "diff", "--name-only", "-z", "--no-renames", "--relative", "--diff-filter=MDT"]
    ended = run([*argv, "--merge-base", "--end-of-options", base, "--"], timeout_s=60, check=False)
    if ended.status:
        raise ended.failure(f"cannot compare with {base}: {ended.error_text.strip()}", next="fetch it, or give --base")
    return tuple(path for path in ended.stdout.decode("utf-8", "surrogateescape").split("\0") if path)


def origin_of(folder: Path) -> str:
    """Return the address that `folder` was cloned from; empty if git knows none."""
    ended = run(["git", "-C", str(folder), "config", "--get", "remote.origin.url"], timeout_s=10, check=False)
    return ended.text.strip()


_TIMEOUT_S = 600.0


def check_out_volume(repository: str, revision: str, folder: Path) -> str:
    """Check out `revision` (branch, tag or commit) of `repository` into the empty `folder`; return its commit.

    Fetches only the required objects if the server allows it. Never prompts for a password; git's credential helpers
    still run. Raises ToolFailed for a missing repository or revision, ToolMissing without git.
    """
    git_version()
    options = (f"--work-tree={folder}",)
    repo = folder / ".git"
    git(None, "init", "-q", "--", str(folder))
    git(repo, "remote", "add", "--", "origin", repository)
    fetched = git(repo, "fetch", "-q", "--depth", "1", "origin", revision, timeout_s=_TIMEOUT_S, check=False)
    wanted = revision if fetched.status else "FETCH_HEAD"
    if fetched.status:
        # The server does not serve single commits, or `revision` is an abbreviation: fetch everything, which also
        # resolves abbreviations.
        every = ("+refs/heads/*:refs/remotes/origin/*",)
        fetched = git(repo, "fetch", "-q", "--tags", "origin", *every, timeout_s=_TIMEOUT_S, check=False)
    if fetched.status:
        reason = reason_of(fetched)
        raise fetched.failure(f"cannot read the repository {repository}: {reason.text}", next=reason.next)
    done = git(repo, *options, "checkout", "-q", "--detach", "-f", wanted, timeout_s=_TIMEOUT_S, check=False)
    if done.status:
        raise done.failure(f'the repository {repository} has no revision "{revision}": {reason_of(done).text}')
    return git(repo, "rev-parse", "HEAD").text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Author and committer of a commit (default: the author), as ``Name <mail>``; git signs it if it `is_signed`."""

    name: str
    committer: str = ""
    is_signed: bool = False


def author_of_commits(configured_author: str = "") -> Author:
    """Return the author from git's settings and environment.

    `configured_author` replaces the author, and the committer if git knows none. Raises SpecError without them.
    """
    lines = run(["git", "var", "-l"], timeout_s=10, check=False).text.splitlines()
    known = {key: value if equals else "true" for key, equals, value in (line.partition("=") for line in lines)}
    committer = _ident("COMMITTER", known)
    author = configured_author or (committer and _ident("AUTHOR", known))
    if not author:
        step = 'git config --global user.name "Your Name"; git config --global user.email you@example.org'
        raise SpecError.one("git has no name and email for this commit", "author", step)
    parts = re.fullmatch(r"\s*([^<>\0\n]*[^<>\0\s])\s*<([^<>\0\n]*)>\s*", author)
    if parts is None:
        raise SpecError.one(f'"{author}" is no author of a commit', "repository.author", "Your Name <you@example.org>")
    is_signed = known.get("commit.gpgsign", "").lower() not in ("", "false", "no", "off", "0")
    return Author(name=f"{parts[1]} <{parts[2]}>", committer=committer, is_signed=is_signed)


def _ident(role: str, known: Mapping[str, str]) -> str:
    """Return the person of a role; empty if git would have to guess name or address from this machine."""
    for part, more in (("name", False), ("email", bool(os.environ.get("EMAIL")))):
        names = (f"{role.lower()}.{part}", f"user.{part}")
        if not (more or os.environ.get(f"GIT_{role}_{part.upper()}") or any(known.get(name) for name in names)):
            return ""
    # The name is followed by the seconds since 1970 and the time zone.
    return known.get(f"GIT_{role}_IDENT", "").rsplit(" ", 2)[0]


def source_commit(folder: Path) -> str:
    """Return the commit that is checked out around `folder`, with ``-dirty`` if files differ; else an empty text."""
    argv = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch", "--untracked-files=no", "--", "."]
    lines = run(argv, timeout_s=20, check=False).text.splitlines()
    commit = next((line.rpartition(" ")[2] for line in lines if line.startswith("# branch.oid ")), "")
    if not re.fullmatch(r"[0-9a-f]+", commit):
        return ""  # "(initial)" before the first commit
    return commit + ("-dirty" if any(not line.startswith("#") for line in lines) else "")


UNSIGNED = "or turn signing off: git config commit.gpgsign false"
