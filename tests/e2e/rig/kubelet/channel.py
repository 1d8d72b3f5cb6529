"""The parent's side of `launcher.py`: one object per sandbox, container or exec."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LAUNCHER = Path(__file__).with_name("launcher.py")


class StartError(Exception):
    """A command that could not be started; the text is the launcher's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The end of a command: `code` is 128 + `signal` if a signal ended it."""

    code: int
    signal: int = 0


class _Control:
    """The socket to one launcher. An asyncio stream would lose the last data if a write met a closed end."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock, self._rest = sock, b""

    async def say(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._sock, data)

    def signal(self, name: str) -> None:
        """Request a signal; fine if the launcher is gone."""
        with suppress(OSError):
            self._sock.send(f"{name}\n".encode())

    async def hear(self) -> dict[str, Any]:
        """Return the next line, decoded; empty at the end."""
        while b"\n" not in self._rest:
            try:
                data = await asyncio.get_running_loop().sock_recv(self._sock, 1 << 16)
            except OSError:
                return {}
            if not data:
                return {}
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def close(self) -> None:
        self._sock.close()


class Launched:
    def __init__(self, process: asyncio.subprocess.Process, control: _Control, pid: int) -> None:
        self.pid = pid
        self._process, self._control = process, control
        self._waiter = asyncio.ensure_future(self._wait())

    @property
    def launcher_pid(self) -> int:
        """The process that holds the namespaces while nothing runs in them."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return not self._waiter.done()

    async def wait(self) -> Exit:
        """Return how it ended; any number of callers may wait."""
        return await asyncio.shield(self._waiter)

    def send(self, signal_name: str) -> None:
        """Send a signal, ``TERM`` or ``KILL``; do nothing once it has ended."""
        if self.is_running:
            self._control.signal(signal_name)

    async def release(self) -> None:
        """Kill the remaining processes; return when none is left."""
        self.send("KILL")
        await self.wait()

    async def _wait(self) -> Exit:
        said = await self._control.hear()
        await self._process.wait()
        self._control.close()
        # A killed launcher takes its command along.
        return Exit(code=said.get("exited", 137), signal=said.get("signal", 0 if said else 9))


async def launch(spec: dict[str, Any], streams: tuple[int, int, int] | None = None) -> Launched:
    """Start a launcher with `spec`; `streams` are the descriptors of an exec's input, output and errors.

    Raises StartError if the command could not be started.
    """
    ours, theirs = socket.socketpair()
    control = _Control(ours)
    try:
        with theirs:
            null = asyncio.subprocess.DEVNULL
            stdin, stdout, stderr = streams or (null, null, None)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno()),
                stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=(theirs.fileno(),), cwd="/",
            )  # fmt: skip
        await control.say(json.dumps(spec).encode() + b"\n")
        said = await control.hear() or {"error": f"the launcher exited with {await process.wait()}"}
    except BaseException:
        control.close()  # then the launcher ends by itself
        raise
    if "error" in said:
        await process.wait()
        control.close()
        raise StartError(said["error"])
    return Launched(process, control, int(said.get("started", process.pid)))
