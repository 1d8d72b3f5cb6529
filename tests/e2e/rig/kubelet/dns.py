"""The cluster's DNS: A records of Services and of pods behind headless ones, over UDP.

Source of the wire format: RFC 1035, section 4.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Callable, Mapping
from typing import cast

_A, _IN = 1, 1
_NO_ERROR, _NAME_ERROR = 0, 3
_TTL_S = 1
_HEADER = struct.Struct(">HHHHHH")


class DnsServer(asyncio.DatagramProtocol):
    """Answers each query from the current result of `names`."""

    def __init__(self, names: Callable[[], Mapping[str, tuple[str, ...]]]) -> None:
        self._names = names
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance: before Python 3.12 the loop's own class does not derive from it.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        reply = answer(data, self._names())
        if reply and self._transport:
            self._transport.sendto(reply, addr)


def answer(query: bytes, names: Mapping[str, tuple[str, ...]]) -> bytes | None:
    """Return the reply to `query`, None if malformed: addresses for type A, nothing for other types of known names."""
    try:
        identity, flags, count, *_ = _HEADER.unpack_from(query)
        name, end = _read_name(query, _HEADER.size)
        kind, _ = struct.unpack_from(">HH", query, end)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    if count != 1 or flags & 0x8000:
        return None
    addresses = names.get(name.lower(), ())
    records = [ipaddress.IPv4Address(a).packed for a in addresses] if kind == _A else []
    # A name that is only a suffix of others (svc.cluster.local) exists, without addresses of its own.
    exists = bool(addresses) or any(known.endswith(f".{name.lower()}") for known in names)
    code = _NO_ERROR if exists else _NAME_ERROR
    header = _HEADER.pack(identity, 0x8480 | (flags & 0x0100) | code, 1, len(records), 0, 0)
    question = query[_HEADER.size : end + 4]
    body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", _A, _IN, _TTL_S, 4) + record for record in records)
    return header + question + body


def _read_name(data: bytes, at: int) -> tuple[str, int]:
    labels = []
    while data[at]:
        length = data[at]
        if length > 63:
            raise IndexError("a question holds no compressed name")
        labels.append(data[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return ".".join(labels), at + 1
