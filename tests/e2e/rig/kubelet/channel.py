"""Starting `launcher.py` and talking with it: one object per sandbox, container or exec."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Exit", "Launched", "StartError", "launch"]

_LAUNCHER = Path(__file__).with_name("launcher.py")


class StartError(Exception):
    """The command could not be started; the text is the launcher's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a command ended: `code` is 128 + `signal` if a signal ended it."""

    code: int
    signal: int = 0


class Launched:
    """A command that runs under a launcher."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int
    ) -> None:
        self.pid = pid
        self._process, self._reader, self._writer = process, reader, writer
        self._waiter = asyncio.ensure_future(self._wait())

    @property
    def launcher_pid(self) -> int:
        """The process that holds the namespaces while nothing runs in them."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._waiter.done()

    async def wait(self) -> Exit:
        """How it ended; any number of callers may wait."""
        return await asyncio.shield(self._waiter)

    def send(self, signal_name: str) -> None:
        """Send a signal, ``TERM`` or ``KILL``; nothing happens once it has ended."""
        if self.is_running:
            self._writer.write(f"{signal_name}\n".encode())

    async def release(self) -> None:
        """Let go: what still runs is killed; returns when nothing is left."""
        self._writer.close()
        await self._process.wait()
        await self.wait()

    async def _wait(self) -> Exit:
        try:
            line = await self._reader.readline()
            said: dict[str, Any] = json.loads(line) if line else {}
        except (ConnectionResetError, ValueError):
            said = {}
        await self._process.wait()
        # A launcher that was itself killed takes its command along.
        return Exit(code=said.get("exited", 137), signal=said.get("signal", 9 if not said else 0))


async def launch(spec: dict[str, Any], streams: tuple[int, int, int] | None = None) -> Launched:
    """Start a launcher with `spec`; `streams` are the descriptors of an exec's input, output and errors.

    Raises StartError if the command could not be started.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        null = asyncio.subprocess.DEVNULL
        stdin, stdout, stderr = streams or (null, null, None)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno()),
            stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=(theirs.fileno(),), cwd="/",
        )  # fmt: skip
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        writer.write(json.dumps(spec).encode() + b"\n")
        line = await reader.readline()
        said = json.loads(line) if line else {"error": f"the launcher exited with {await process.wait()}"}
    except asyncio.CancelledError:
        writer.close()  # the launcher ends by itself then
        raise
    if "error" in said:
        writer.close()
        await process.wait()
        raise StartError(said["error"])
    return Launched(process, reader, writer, int(said.get("started", process.pid)))
