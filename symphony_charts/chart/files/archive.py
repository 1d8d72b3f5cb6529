"""A chart becomes an archive whose bytes depend on its files alone.

The headers are written by hand: those of `tarfile` and `gzip` differ between Python versions and hold times. The order
and the fields are those of helm's own packages. Sources: POSIX ustar; RFC 1952; helm/helm, pkg/chart/v2/util/save.go.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["content_digest", "pack", "tar_of"]

_BLOCK = 512
_END = b"\0" * (2 * _BLOCK)
_FIRST = ("Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json")
_TEN_BYTES = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the ``.tgz`` of chart `name`. Its tar is the same everywhere; the compression depends on zlib."""
    tar = tar_of(name, files)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(tar) + deflate.flush()
    return _TEN_BYTES + body + struct.pack("<II", zlib.crc32(tar), len(tar) & 0xFFFFFFFF)


def tar_of(name: str, files: Mapping[str, bytes]) -> bytes:
    """The tar of chart `name`: regular files of mode 0644 under ``name/``, owned by nobody, of the year 1970."""
    parts = []
    for path in sorted(files, key=_place):
        content = files[path]
        parts += [_header(f"{name}/{path}", len(content)), content, b"\0" * (-len(content) % _BLOCK)]
    parts.append(_END)
    return b"".join(parts)


def content_digest(name: str, files: Mapping[str, bytes]) -> str:
    """What two charts share exactly if they differ in nothing but their version: ``sha256:`` of a tar.

    It is the uncompressed tar in which the line ``version:`` of Chart.yaml says ``0.0.0``.
    """
    lines = files["Chart.yaml"].split(b"\n")
    unversioned = b"\n".join(b"version: 0.0.0" if line.startswith(b"version: ") else line for line in lines)
    return f"sha256:{hashlib.sha256(tar_of(name, {**files, 'Chart.yaml': unversioned})).hexdigest()}"


def _place(path: str) -> tuple[int, str]:
    if path in _FIRST:
        return _FIRST.index(path), path
    return (len(_FIRST) if path.startswith("templates/") else len(_FIRST) + 1), path


@lru_cache(maxsize=256)
def _header(path: str, size: int) -> bytes:
    prefix, name = _split(path.encode())
    fields = [
        name.ljust(100, b"\0"),
        b"0000644\0",
        b"0000000\0",
        b"0000000\0",
        b"%011o\0" % size,
        b"00000000000\0",
        b"        ",
        b"0",
        b"\0" * 100,
        b"ustar\x0000",
        b"\0" * 64,
        b"0000000\0",
        b"0000000\0",
        prefix.ljust(155, b"\0"),
        b"\0" * 12,
    ]
    header = b"".join(fields)
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


def _split(path: bytes) -> tuple[bytes, bytes]:
    """Prefix and name of a path; ustar has room for 155 and 100 bytes, cut at a slash."""
    if len(path) <= 100:
        return b"", path
    cut = path.find(b"/", len(path) - 101)
    if cut in (-1, 0) or cut > 155:
        raise ValueError(f"{path.decode()} is too long for an archive")
    return path[:cut], path[cut + 1 :]
