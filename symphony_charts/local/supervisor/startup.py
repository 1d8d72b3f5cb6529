"""The start of a run as its supervisor sees it: who has been born and who has died while others are still started.

tmux answers nobody until it has started everything. So each wrapper says itself which slot it is, through the pipe
``born`` in the run's folder (lines of slot and pid), and `up` says through a `Starter` how far it is.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from symphony_charts.local.supervisor.event_loop import Loop

__all__ = ["Starter", "attend_start", "make_room"]

# Besides a pidfd for each process: state, logs, probes, what Python itself has open.
_SPARE_FDS = 64
# Of the time of a start at most one part in so many goes into writing the state down.
_SAVING = 5


class Starter:
    """Who started this supervisor, at the other end of the socket `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def heard(self) -> bool:
        """Wait for the next word; False when the starter is gone."""
        return bool(os.read(self.descriptor, 1))

    def folder(self) -> str:
        """Wait for the folder of the run; empty when the starter is gone. What is printed from now on goes there."""
        said = b""
        while not said.endswith(b"\n"):
            more = os.read(self.descriptor, 1)
            if not more:
                return ""
            said += more
        folder = os.fsdecode(said[:-1])
        log = os.open(f"{folder}/supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        return folder

    def tell(self, number: int) -> None:
        """Say a number; nobody may be listening any more."""
        try:
            os.write(self.descriptor, f"{number}\n".encode())
        except (BrokenPipeError, ConnectionResetError):
            return

    def leave(self) -> None:
        """Stop listening."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self.descriptor)
        os.close(nothing)


def make_room(count: int) -> None:
    """Let this process hold a descriptor for each of `count` processes, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _SPARE_FDS
    if soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def attend_start(
    loop: Loop, pipe: Path, starter: Starter, born: Callable[[int, int], None], save: Callable[[], None]
) -> None:
    """Call `born` with slot and pid of each wrapper, and `save` now and then, until everything has been started.

    A starter that goes away ends it as well: whatever it has started by then is all there is.
    """
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    rest, is_starting, saved_until = b"", True, 0.0

    def read() -> None:
        nonlocal rest
        *lines, rest = (rest + os.read(reader, 1 << 16)).split(b"\n")
        for words in (line.split() for line in lines):
            # Processes of the run could write here as well; what makes no sense is left out.
            if len(words) == 2 and all(word.isdigit() for word in words):
                born(int(words[0]), int(words[1]))

    def told() -> None:
        nonlocal is_starting
        starter.heard()
        is_starting = False

    loop.watch(reader, read)
    loop.watch(starter.descriptor, told)
    starter.tell(0)
    while is_starting:
        began = time.monotonic()
        if began >= saved_until:
            save()
            saved_until = began + _SAVING * (time.monotonic() - began)
        else:
            loop.later(saved_until - began, lambda: None)
        loop.turn()
    for descriptor in (reader, starter.descriptor):
        loop.forget(descriptor)
    os.close(reader)
