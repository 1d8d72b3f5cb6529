"""One try of a check, in steps that never block: each says which descriptor it waits for, and for what.

The outcome is text: why the try failed, empty when it passed. What counts as passing is what counts for the kubelet:
an accepted connection, an answer of HTTP without an error, a command that exits with 0. Source: kubernetes/kubernetes
pkg/probe.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeAlias

from symphony_charts.local.plan.records import Check
from symphony_charts.local.supervisor.event_loop import Loop
from symphony_charts.system import processes

__all__ = ["Attempt", "Steps", "connected", "new_socket", "steps_of"]

# Each step is a descriptor and the events that it waits for.
Steps: TypeAlias = Generator[tuple[int, int], None, str]


class Attempt:
    """A try under way; `done` is called once with its outcome, unless it is cancelled before."""

    def __init__(self, loop: Loop, steps: Steps, timeout_s: float, done: Callable[[str], None]) -> None:
        self._loop, self._steps, self._done = loop, steps, done
        self._descriptor = -1
        self._is_over = False
        loop.later(timeout_s, lambda: self._finish(f"no answer within {timeout_s:g} s"))
        self._step()

    def cancel(self) -> None:
        """Leave it; nobody is told."""
        if not self._is_over:
            self._is_over = True
            self._loop.forget(self._descriptor)
            self._steps.close()

    def _step(self) -> None:
        self._loop.forget(self._descriptor)
        try:
            self._descriptor, events = next(self._steps)
        except StopIteration as end:
            self._finish(end.value)
        except (OSError, ValueError) as error:
            self._finish(getattr(error, "strerror", None) or str(error))
        else:
            self._loop.watch(self._descriptor, self._step, events)

    def _finish(self, outcome: str) -> None:
        if not self._is_over:
            self.cancel()
            self._done(outcome)


def steps_of(check: Check, folder: Path) -> Steps:
    """The steps of one try of `check`; `folder` is that of the process."""
    if check.kind == "tcp":
        return _connect(check)
    if check.kind == "exec":
        return _run(check, folder)
    # Only then: most runs ask nobody by HTTP, and TLS takes long to load.
    from symphony_charts.local.supervisor.http_probe import get_steps

    return get_steps(check)


def _connect(check: Check) -> Steps:
    with new_socket() as connection:
        yield from connected(connection, check.host, check.port)
    return ""


def connected(connection: socket.socket, host: str, port: int) -> Generator[tuple[int, int], None, None]:
    """The steps until a connection stands; raises OSError when it does not come about."""
    error = connection.connect_ex((host, port))
    if error == errno.EINPROGRESS:
        yield connection.fileno(), select.POLLOUT
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))


def new_socket() -> socket.socket:
    """A TCP socket that never blocks."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    return connection


def _run(check: Check, folder: Path) -> Steps:
    """Run the command in the environment, folder and mounts of the process; its last line tells why it failed."""
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        argv, env = processes.inside(pid, check.command)
    except (OSError, ValueError):
        return "the process does not run"
    with (folder / "probe").open("w+b") as output:
        program = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            descriptor = os.pidfd_open(program.pid)
            try:
                yield descriptor, select.POLLIN
            finally:
                os.close(descriptor)
        finally:
            # Also what is still running when the time is over, with all that it has started.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(program.pid, signal.SIGKILL)
            status = program.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - 400))
        lines = output.read().decode("utf-8", "replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if status == 0 else f"exit status {status}{f': {said}' if said else ''}"
