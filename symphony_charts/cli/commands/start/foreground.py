"""`stay` waits in the foreground for the end of an experiment, and asks what an interrupt is to mean."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from symphony_charts.cli import output
from symphony_charts.cli.failures import INTERRUPTED

__all__ = ["stay"]

if sys.platform != "win32":
    import termios
    import tty

_KEYS = "d: leave it running   ctrl-c: end it   any other key: go on looking"


class _Terminated(KeyboardInterrupt):
    """SIGTERM: who ends the command ends what it runs, as with any other program in the foreground."""


class _HungUp(KeyboardInterrupt):
    """SIGHUP: the terminal is gone, which must not cost anybody hours of work."""


def stay(name: str, begin: Callable[[], None], wait: Callable[[], int], end: Callable[[], None]) -> tuple[int, bool]:
    """The exit status once `wait`, after `begin`, has returned one, and whether the experiment has ended.

    Interrupted on a terminal it asks: the experiment is left running (0), ended by `end` (130), or waited for again.
    Without a terminal an interrupt ends it. SIGTERM ends it (143); SIGHUP leaves it running (129).
    """
    with _signals():
        is_begun = False
        while True:
            try:
                if not is_begun:
                    is_begun = True
                    _whole(begin)
                return wait(), True
            except _HungUp:
                return 128 + signal.SIGHUP, False
            except _Terminated:
                return _end(name, wait, end, 128 + signal.SIGTERM)
            except KeyboardInterrupt:
                choice = _ask(name)
            if choice == "leave":
                return 0, False
            if choice == "end":
                return _end(name, wait, end, INTERRUPTED)
            output.note("looking on")


def _whole(begin: Callable[[], None]) -> None:
    """Do all of `begin`, whose threads would else be started in part; signals are heard afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        begin()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(name: str, wait: Callable[[], int], end: Callable[[], None], status: int) -> tuple[int, bool]:
    output.note(f"ending {name}")
    end()
    wait()
    return status, True


def _ask(name: str) -> Literal["leave", "end", "on"]:
    if not output.can_ask():
        return "end"
    output.note(f"\n{name} runs on   {_KEYS}")
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        key = os.read(descriptor, 1)
    except _HungUp:
        return "leave"
    except KeyboardInterrupt:
        return "end"
    except OSError:
        key = b""
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    return "leave" if key in (b"d", b"D", b"") else "on"


@contextmanager
def _signals() -> Iterator[None]:
    """While it is open, SIGTERM and SIGHUP are exceptions as SIGINT is; what was ignored before stays so."""

    def terminated(*_: object) -> None:
        raise _Terminated

    def hung_up(*_: object) -> None:
        raise _HungUp

    handlers = {signal.SIGTERM: terminated, signal.SIGHUP: hung_up}
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
