"""The event loop of a supervisor."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable


class Loop:
    """Calls actions when their descriptor is ready or their time has come; without timers it sleeps indefinitely."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._actions: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._calls: deque[Callable[[], None]] = deque()
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self._reader, self._take_calls)

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

    def call(self, action: Callable[[], None]) -> None:
        """Call `action` in the next turn; for other threads."""
        self._calls.append(action)
        # The reader of a full pipe takes all calls.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"\0")

    def _take_calls(self) -> None:
        os.read(self._reader, 1 << 16)
        while self._calls:
            self._calls.popleft()()

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
