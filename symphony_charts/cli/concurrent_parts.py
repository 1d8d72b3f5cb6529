"""`ask_all` asks several parts of the world at once, and waits for none that cannot be reached."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.system.subprocess_runner import run

__all__ = ["Part", "ask_all", "direct_address", "git_address"]

T = TypeVar("T")

# How long it may take until a host has taken a connection, and until everything is answered, in seconds.
REACH_S, ANSWER_S = 4.0, 60.0
_PORTS = {"https": 443, "http": 80, "git": 9418}
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
# ssh://user@host:port/path, and user@host:path as scp writes it.
_SSH = re.compile(r"ssh://(?:[^@/]+@)?(?P<host>[^:/]+)(?::(?P<port>\d+))?/.*|(?!\w+://)(?:[^@/]+@)?(?P<bare>[^:/]+):.*")


@dataclass(kw_only=True)
class Part(Generic[T]):
    """One part: what it is called, how it is asked, and the host and port behind which it is, if that is known.

    Afterwards it has an `answer`, or an `error` that says why there is none.
    """

    name: str
    ask: Callable[[], T]
    address: tuple[str, int] | None = None
    answer: T | None = None
    error: Exception | None = None
    _is_reached: threading.Event = field(default_factory=threading.Event)
    _is_done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Reach it, then ask it."""
        try:
            if self.address is not None:
                _reach(self.address)
            self._is_reached.set()
            self.answer = self.ask()
        except Exception as error:
            self.error = error
        self._is_reached.set()
        self._is_done.set()

    def wait(self, began: float) -> None:
        """Return once it has answered, or will not in time."""
        if not self._is_reached.wait(max(0.0, began + REACH_S + 0.5 - time.monotonic())):
            self.error = _silent(self.address, REACH_S)
        elif not self._is_done.wait(max(0.0, began + ANSWER_S - time.monotonic())):
            self.error = _silent(self.address, ANSWER_S)


def ask_all(parts: Sequence[Part[Any]]) -> None:
    """Ask all parts at once; each has an answer or an error then. What is no error of ours is raised."""
    began = time.monotonic()
    for part in parts:
        threading.Thread(target=part.run, daemon=True).start()
    for part in parts:
        part.wait(began)
        if part.error is not None and not isinstance(part.error, SymphError):
            raise part.error


def direct_address(url: str) -> tuple[str, int] | None:
    """Host and port that a connection to `url` goes to; None where that cannot be known, as behind a proxy."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    is_proxied = parts.scheme != "git" and any(os.environ.get(name) for name in _PROXIES)
    return None if is_proxied else (parts.hostname, parts.port or _PORTS[parts.scheme])


def git_address(url: str) -> tuple[str, int] | None:
    """The same of a Git repository; of one behind ssh by what ssh's own settings make of its host."""
    match = _SSH.fullmatch(url)
    if match is None:
        return direct_address(url)
    if os.environ.get("GIT_SSH_COMMAND") or os.environ.get("GIT_SSH"):
        return None
    port = ["-p", match["port"]] if match["port"] else []
    host = match["host"] or match["bare"]
    try:
        ended = run(["ssh", "-G", *port, "--", host], timeout_s=REACH_S, check=False)
    except SymphError:
        return None
    settings = dict(line.partition(" ")[::2] for line in ended.text.splitlines())
    is_direct = settings.get("proxycommand", "none") == "none" and settings.get("proxyjump", "none") == "none"
    return (
        (settings["hostname"], int(settings["port"])) if is_direct and {"hostname", "port"} <= settings.keys() else None
    )


def _reach(address: tuple[str, int]) -> None:
    try:
        socket.create_connection(address, REACH_S).close()
    except OSError as error:
        reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise ToolFailed(f"{address[0]}:{address[1]} takes no connection: {reason}") from error


def _silent(address: tuple[str, int] | None, limit_s: float) -> ToolFailed:
    host = f"{address[0]}:{address[1]}" if address else "it"
    return ToolFailed(f"{host} does not answer within {limit_s:g} s")
