"""The event loop of a supervisor, and its events."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct


class Started(Struct, frozen=True):
    """A program runs while others are still being started; unless it waits at its gate, this is its start."""

    slot: int


class TakenOver(Struct, frozen=True):
    """The supervisor has begun to watch all programs; `stopping` is set if its predecessor was stopping the run."""

    stopping: str = ""


class TmuxGone(Struct, frozen=True):
    """The tmux server of the run is gone, and with it all terminals."""


class Ended(Struct, frozen=True):
    """A program has ended `at` a time since 1970; `limit` is the limit that ended it, as text."""

    slot: int
    status: int | None
    at: float
    limit: str = ""


class Held(Struct, frozen=True):
    """A program cannot be restarted yet; `why` names the obstacle (``tmux, which does not answer``)."""

    slot: int
    why: str


class Readiness(Struct, frozen=True):
    """Checks have found that a process is ready or not; `why` is the reason."""

    slot: int
    is_ready: bool
    why: str = ""


class ProbeFailed(Struct, frozen=True):
    """A probe has found that a process must end, within `grace_s` (None: the usual grace period)."""

    slot: int
    probe: Literal["startup", "liveness"]
    why: str
    grace_s: float | None = None


class PaneClosed(Struct, frozen=True):
    """The pane of a program was closed: it has no terminal any more, and its output is not logged."""

    slot: int


class Overdue(Struct, frozen=True):
    """The deadline of a process that began at that time has passed."""

    slot: int
    began: float


class RestartDue(Struct, frozen=True):
    """The pause after the end of a process at that time is over."""

    slot: int
    ended: float | None


class Respawned(Struct, frozen=True):
    """A program was restarted; with `is_done` false it cannot be, since tmux is gone."""

    slot: int
    is_done: bool


class LingerOver(Struct, frozen=True):
    """The services of a run that has ended have lingered for long enough."""


class RestartAsked(Struct, frozen=True):
    slots: Sequence[int]


class PauseAsked(Struct, frozen=True):
    """A command asks to stop the processes in `slots`, and to leave them stopped."""

    slots: Sequence[int]


class StopAsked(Struct, frozen=True):
    """A command asks to stop the run."""


Event = (
    Started
    | TakenOver
    | TmuxGone
    | PaneClosed
    | Ended
    | Readiness
    | ProbeFailed
    | Overdue
    | RestartDue
    | Respawned
    | Held
    | LingerOver
    | RestartAsked
    | PauseAsked
    | StopAsked
)


Deed = Literal["release", "respawn", "attend", "end", "read end", "grant"]


class Act(Struct, frozen=True):
    """An action on the program of `slot`.

    ``release`` lets it start where it waits; ``respawn`` restarts it and results in `Respawned` or `Held`; ``attend``
    begins its checks; ``end`` sends TERM, and KILL after `grace_s`; ``read end`` determines an end that was not
    observed and results in `Ended`; ``grant`` withdraws its restart request once the state is written.
    """

    do: Deed
    slot: int
    grace_s: float = 0.0


class Later(Struct, frozen=True):
    """Trigger `event` after this many seconds."""

    delay_s: float
    event: RestartDue | Overdue | LingerOver


Action = Act | Later


class Loop:
    """Calls actions when their descriptor is ready or their time has come; without timers it sleeps indefinitely."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._actions: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def watch(self, descriptor: int, action: Callable[[], None]) -> None:
        """Call `action` whenever `descriptor` is readable, until `forget`; a second call replaces the action."""
        self._actions[descriptor] = action
        self._poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop watching `descriptor`; do this before closing it."""
        if self._actions.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Call `action` once after `delay_s` seconds. The action must check if it still applies."""
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._numbers), action))

    def turn(self) -> None:
        """Sleep until something is due, and run its actions."""
        pause_ms = max(0.0, (self._timers[0][0] - time.monotonic()) * 1000) + 0.5 if self._timers else None
        ready = [(descriptor, self._actions[descriptor]) for descriptor, _ in self._poll.poll(pause_ms)]
        for descriptor, action in ready:
            # An earlier action may have closed this descriptor and opened another one with the same number.
            if self._actions.get(descriptor) is action:
                action()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()


def signal_pipe(*numbers: signal.Signals) -> int:
    """Return a descriptor that yields the numbers of these signals; SIGHUP is ignored."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return reader
