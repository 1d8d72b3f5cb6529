"""Exec, on the streams of an upgraded connection.

Source: kubernetes/cri-streaming pkg/streaming (remotecommand).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import termios
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.rig.kubelet.channel import Exit, StartError
from tests.e2e.rig.kubelet.container import Container
from tests.e2e.rig.kubelet.spdy import Connection, Stream

# Each pipe of a command blocks a thread; the loop's own pool is too small for the commands that wait for input.
_THREADS = ThreadPoolExecutor(512, "stream")

EXEC_PROTOCOL = "v4.channel.k8s.io"


async def run_exec(
    connection: Connection, container: Container, argv: list[str], kinds: set[str], *, has_tty: bool
) -> None:
    """Run `argv` in the container; the peer opens a stream for each of `kinds` (stdin, stdout...) and for errors."""
    streams: dict[str, Stream] = {}
    arriving = connection.streams()
    wanted = kinds | {"error"}
    async for stream in arriving:
        streams[stream.headers["streamtype"]] = stream
        if wanted <= set(streams):
            break
    pump = asyncio.ensure_future(_drain(arriving))  # the peer's data only moves while a task waits for streams
    try:
        await streams["error"].write(await _execute(container, argv, streams, has_tty=has_tty))
    finally:
        for stream in streams.values():
            await stream.close()
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


async def _execute(container: Container, argv: list[str], streams: dict[str, Stream], *, has_tty: bool) -> bytes:
    """Run the command on its streams; return the status for the error stream."""
    descriptors, ours, copies = _terminal(streams) if has_tty else _pipes(streams)
    try:
        command = await container.start_exec(argv, descriptors)
    except StartError as error:
        for copy in copies:
            copy.close()
        return _status(f"Internal error occurred: {error}", None)
    finally:
        for descriptor in set(descriptors) - {-3}:
            os.close(descriptor)
    tasks = [asyncio.ensure_future(copy) for copy in copies]
    ended = await command.wait()
    # Output is read to its end; input has no reader any more.
    outputs = tasks[1:] if "stdin" in streams else tasks
    await asyncio.wait(outputs, timeout=5) if outputs else None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for descriptor in ours:
        os.close(descriptor)
    return _status("", ended)


Wiring = tuple[tuple[int, int, int], list[int], list[Coroutine[Any, Any, None]]]
"""The command's descriptors, those to close when it has ended, and the tasks to run meanwhile (input first)."""


def _pipes(streams: dict[str, Stream]) -> Wiring:
    descriptors, copies = [], []
    for name in ("stdin", "stdout", "stderr"):
        if name not in streams:
            descriptors.append(-3)
            continue
        reading, writing = os.pipe()
        if name == "stdin":
            descriptors.append(reading)
            copies.append(_copy_in(streams[name], writing))
        else:
            descriptors.append(writing)
            copies.append(_copy_out(reading, streams[name]))
    first, second, third = descriptors
    return (first, second, third), [], copies


def _terminal(streams: dict[str, Stream]) -> Wiring:
    master, slave = os.openpty()
    copies = [_copy_in(streams["stdin"], os.dup(master))] if "stdin" in streams else []
    if "stdout" in streams:
        copies.append(_copy_out(os.dup(master), streams["stdout"]))
    if "resize" in streams:
        copies.append(_resize(streams["resize"], master))
    return (slave, slave, slave), [master], copies


async def _copy_in(stream: Stream, descriptor: int) -> None:
    """Feed the command; a full pipe blocks a thread, not the kubelet."""
    loop = asyncio.get_running_loop()
    try:
        while data := await stream.reader.read(1 << 16):
            await loop.run_in_executor(_THREADS, os.write, descriptor, data)
    except (BrokenPipeError, OSError):
        return  # the command reads no more
    finally:
        os.close(descriptor)


async def _copy_out(descriptor: int, stream: Stream) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await loop.run_in_executor(_THREADS, _read, descriptor):
            await stream.write(data)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""  # the other end of a terminal is gone


async def _resize(stream: Stream, terminal: int) -> None:
    while line := await stream.reader.readline():
        size = json.loads(line)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))


async def _drain(arriving: Any) -> None:
    async for _ in arriving:
        continue


def _status(problem: str, ended: Exit | None) -> bytes:
    """Return the Status object from which kubectl reads its own exit status."""
    if ended and ended.code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    status: dict[str, Any] = {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": problem}
    if ended:
        status["message"] = f"command terminated with non-zero exit code: exit status {ended.code}"
        status["reason"] = "NonZeroExitCode"
        status["details"] = {"causes": [{"reason": "ExitCode", "message": str(ended.code)}]}
    return json.dumps(status).encode()
