"""SPDY/3.1 as Kubernetes uses it for exec: many byte streams over one upgraded connection.

Flow control is left out, as in the peers' own implementation. Source: SPDY Protocol, Draft 3.1 (sections 2.2-2.6).
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Mapping

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_CONTROL = 0x80030000  # the control bit and version 3
_FIN = 1
_CHUNK = 1 << 15

# Section 2.6.10.1: words with their lengths in front, then one run of text.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = (word.replace("_", " ").encode() for word in _WORDS.split(" "))
    return b"".join(struct.pack(">I", len(word)) + word for word in words) + _TAIL.encode()


def encode_headers(headers: Mapping[str, str], packer: zlib._Compress) -> bytes:
    """Return a header block, compressed by the connection's `packer`."""
    parts = [struct.pack(">I", len(headers))]
    for pair in headers.items():
        parts += [struct.pack(">I", len(text.encode())) + text.encode() for text in pair]
    return packer.compress(b"".join(parts)) + packer.flush(zlib.Z_SYNC_FLUSH)


def decode_headers(data: bytes, unpacker: zlib._Decompress) -> dict[str, str]:
    """Return the headers of a block; `unpacker` keeps its state from the connection's last block."""
    plain = unpacker.decompress(data)
    (count,), at, texts = struct.unpack_from(">I", plain), 4, []
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">I", plain, at)
        texts.append(plain[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return dict(zip(texts[::2], texts[1::2], strict=True))


class Stream:
    """One stream: `reader` has the peer's data and ends with the peer's last frame."""

    def __init__(self, connection: Connection, number: int, headers: dict[str, str]) -> None:
        self.headers, self.reader = headers, asyncio.StreamReader()
        self._connection, self._number = connection, number

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            await self._connection.send_data(self._number, data[start : start + _CHUNK])

    async def close(self) -> None:
        await self._connection.send_data(self._number, b"", is_last=True)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._streams: dict[int, Stream] = {}
        self._packer = zlib.compressobj(zdict=_dictionary())
        self._unpacker = zlib.decompressobj(zdict=_dictionary())

    async def streams(self) -> AsyncIterator[Stream]:
        """Yield every stream the peer opens, until it closes; meanwhile deliver the data of all streams."""
        try:
            while True:
                first, rest = struct.unpack(">II", await self._reader.readexactly(8))
                flags, data = rest >> 24, await self._reader.readexactly(rest & 0xFFFFFF)
                if not first & 0x80000000:
                    self._feed(first, data, is_last=bool(flags & _FIN))
                elif first & 0xFFFF == _SYN_STREAM:
                    yield await self._open(data)
                elif first & 0xFFFF == _RST_STREAM:
                    self._feed(struct.unpack_from(">I", data)[0], b"", is_last=True)
                elif first & 0xFFFF == _PING:
                    await self._send(_CONTROL | _PING, 0, data)
                elif first & 0xFFFF == _GOAWAY:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            for stream in self._streams.values():
                stream.reader.feed_eof()

    async def send_data(self, number: int, data: bytes, *, is_last: bool = False) -> None:
        await self._send(number, _FIN if is_last else 0, data)

    async def _open(self, data: bytes) -> Stream:
        (number,) = struct.unpack_from(">I", data)
        stream = self._streams[number] = Stream(self, number, decode_headers(data[10:], self._unpacker))
        reply = struct.pack(">I", number) + encode_headers({}, self._packer)
        await self._send(_CONTROL | _SYN_REPLY, 0, reply)
        return stream

    def _feed(self, number: int, data: bytes, *, is_last: bool) -> None:
        stream = self._streams.get(number)
        if stream and data:
            stream.reader.feed_data(data)
        if stream and is_last:
            stream.reader.feed_eof()
            del self._streams[number]

    async def _send(self, first: int, flags: int, data: bytes) -> None:
        self._writer.write(struct.pack(">II", first, flags << 24 | len(data)) + data)
        await self._writer.drain()
