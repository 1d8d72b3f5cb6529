"""Port-forward over WebSocket: ``v4.channel.k8s.io``, two channels for each port.

Source: RFC 6455; kubernetes/cri-streaming pkg/streaming/portforward/websocket.go.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct

from tests.e2e.rig.kubelet.pod import Pod
from tests.e2e.rig.kubelet.probes import connect

FORWARD_PROTOCOL = "v4.channel.k8s.io"
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10


def accept_key(key: str) -> str:
    return base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()).decode()


async def forward_over_websocket(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pod: Pod, port: int
) -> None:
    """Forward one connection to `port` of the pod until either side ends."""
    for channel in (0, 1):
        _send(writer, _BINARY, bytes([channel]) + struct.pack("<H", port))
    try:
        inner, outer = await asyncio.wait_for(connect(pod.sandbox_pid, "127.0.0.1", port), 10)
    except (OSError, asyncio.TimeoutError) as problem:
        _send(writer, _BINARY, b"\x01" + f"an error occurred forwarding port {port}: {problem}".encode())
        _send(writer, _CLOSE, b"")
        await writer.drain()
        return
    inward = asyncio.ensure_future(_inward(reader, writer, outer))
    try:
        while chunk := await inner.read(1 << 15):
            _send(writer, _BINARY, b"\x00" + chunk)
            await writer.drain()
        _send(writer, _CLOSE, b"")
        await writer.drain()
    finally:
        inward.cancel()
        await asyncio.gather(inward, return_exceptions=True)
        outer.close()


async def _inward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outer: asyncio.StreamWriter) -> None:
    """Forward the client's data; its end is the end of the connection."""
    try:
        while True:
            code, data = await _receive(reader)
            if code == _CLOSE:
                return
            if code == _PING:
                _send(writer, _PONG, data)
            elif data[:1] == b"\x00":
                outer.write(data[1:])
                await outer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        outer.close()


async def _receive(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return opcode and content of the next message; a client masks its frames."""
    whole, code = b"", 0
    while True:
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await reader.readexactly(8))
        mask = await reader.readexactly(4) if second & 0x80 else b"\0\0\0\0"
        data = await reader.readexactly(size)
        whole += bytes(byte ^ mask[place & 3] for place, byte in enumerate(data))
        code = code or first & 0x0F
        if first & 0x80:
            return code, whole


def _send(writer: asyncio.StreamWriter, code: int, data: bytes) -> None:
    size = len(data)
    if size < 126:
        length = bytes([size])
    else:
        length = struct.pack(">BH", 126, size) if size < 1 << 16 else struct.pack(">BQ", 127, size)
    writer.write(bytes([0x80 | code]) + length + data)
