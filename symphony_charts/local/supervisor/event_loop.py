"""`Loop` waits for descriptors and for times, in one `select.poll` that sleeps as long as nothing is due."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import signal
import time
from collections.abc import Callable


class Loop:
    """Calls what was registered when its descriptor or its time has come; without timers it sleeps without end."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._actions: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def watch(self, descriptor: int, action: Callable[[], None], events: int = select.POLLIN) -> None:
        """Call `action` whenever `descriptor` is ready, until it is forgotten; watching it again replaces both."""
        self._actions[descriptor] = action
        self._poll.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Watch `descriptor` no longer; do this before closing it."""
        if self._actions.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Call `action` once after `delay_s` seconds. Whoever asked must know by then whether it still applies."""
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._numbers), action))

    def turn(self) -> None:
        """Sleep until something is due, and do it."""
        ready = [(descriptor, self._actions[descriptor]) for descriptor, _ in self._poll.poll(self._pause_ms())]
        for descriptor, action in ready:
            # What was done for one may have closed another, whose number is that of a new one by then.
            if self._actions.get(descriptor) is action:
                action()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    def _pause_ms(self) -> float | None:
        if not self._timers:
            return None
        return max(0.0, (self._timers[0][0] - time.monotonic()) * 1000) + 0.5


def signal_pipe(*numbers: signal.Signals) -> int:
    """Return a descriptor that yields the numbers of these signals; a hang-up is ignored."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return reader
