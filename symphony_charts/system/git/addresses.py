"""The host behind a Git repository, as far as git's and ssh's own settings let anybody know, and whether it answers."""

from __future__ import annotations

import os
import re
import socket
from urllib.parse import urlsplit

from symphony_charts.errors import SymphError
from symphony_charts.system.subprocess_runner import run

__all__ = ["REACH_S", "direct_address", "git_address", "silence_of"]

# How long it may take until a host has taken a connection, in seconds.
REACH_S = 4.0
_PORTS = {"https": 443, "http": 80, "git": 9418}
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
# ssh://user@host:port/path, and user@host:path as scp writes it.
_SSH = re.compile(r"ssh://(?:[^@/]+@)?(?P<host>[^:/]+)(?::(?P<port>\d+))?/.*|(?!\w+://)(?:[^@/]+@)?(?P<bare>[^:/]+):.*")


def direct_address(url: str) -> tuple[str, int] | None:
    """Host and port that a connection to `url` goes to; None where that cannot be known, as behind a proxy."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    is_proxied = parts.scheme != "git" and any(os.environ.get(name) for name in _PROXIES)
    return None if is_proxied else (parts.hostname, parts.port or _PORTS[parts.scheme])


def git_address(url: str) -> tuple[str, int] | None:
    """Return the same of a Git repository; of one behind ssh by what ssh's own settings make of its host.

    None where git is configured to go another way: by `insteadOf`, a proxy, or a program in place of ssh. None, too,
    where ssh is told how long to wait: who said that knows better.
    """
    if _SSH.fullmatch(url) is None and direct_address(url) is None:
        return None
    try:
        if _git_output("ls-remote", "--get-url", "--", url) != url:
            return None
        match = _SSH.fullmatch(url)
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
    return (
        (settings["hostname"], int(settings["port"])) if is_open and {"hostname", "port"} <= settings.keys() else None
    )


def silence_of(url: str) -> str:
    """Return an error text if the host of a Git repository takes no connection; empty if it does, or may."""
    address = git_address(url)
    if address is None:
        return ""
    try:
        socket.create_connection(address, REACH_S).close()
    except TimeoutError:
        return f"{address[0]}:{address[1]} takes no connection"
    except OSError:
        return ""  # Which git says better.
    return ""


def _git_output(*words: str) -> str:
    return run(["git", *words], cwd="/", timeout_s=REACH_S, check=False).text.strip()
