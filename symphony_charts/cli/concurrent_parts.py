"""`ask_all` asks several parts of the world at once, and waits for none that cannot be reached."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.system.git.addresses import REACH_S

__all__ = ["Part", "ask_all"]

T = TypeVar("T")

# How long it may take until everything is answered, in seconds.
ANSWER_S = 60.0


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


def _reach(address: tuple[str, int]) -> None:
    try:
        socket.create_connection(address, REACH_S).close()
    except OSError as error:
        reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise ToolFailed(f"{address[0]}:{address[1]} takes no connection: {reason}") from error


def _silent(address: tuple[str, int] | None, limit_s: float) -> ToolFailed:
    host = f"{address[0]}:{address[1]}" if address else "it"
    return ToolFailed(f"{host} does not answer within {limit_s:g} s")
