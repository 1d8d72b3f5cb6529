"""A pack file with its index, written without a process.

Source: git, Documentation/gitformat-pack.txt (versions 2 of both).
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

__all__ = ["write_pack"]

_TYPES = {"commit": 1, "tree": 2, "blob": 3}


def write_pack(folder: Path, objects: Iterable[tuple[str, str, bytes]]) -> Path:
    """Write `objects` (kind, id, content) as a pack below ``objects/pack`` of the bare repository `folder`.

    The index comes last and by renaming, so that git sees the pack whole or not at all.
    """
    parts, entries, position = [b""], [], 12
    for kind, oid, data in objects:
        part = _size_header(_TYPES[kind], len(data)) + zlib.compress(data, 1)
        entries.append((bytes.fromhex(oid), zlib.crc32(part), position))
        parts.append(part)
        position += len(part)
    parts[0] = struct.pack(">4sII", b"PACK", 2, len(entries))
    body = b"".join(parts)
    checksum = hashlib.sha1(body, usedforsecurity=False).digest()
    place = folder / "objects" / "pack" / f"pack-{checksum.hex()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    _place(place.with_suffix(".pack"), body + checksum)
    _place(place.with_suffix(".idx"), _index(entries, checksum))
    return place.with_suffix(".pack")


def _size_header(kind: int, size: int) -> bytes:
    """Kind and size, four bits of the size in the first byte and seven in each that follows."""
    out = [(kind << 4) | (size & 15)]
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def _index(entries: list[tuple[bytes, int, int]], pack_checksum: bytes) -> bytes:
    entries = sorted(entries)
    counts = [0] * 256
    for oid, _, _ in entries:
        counts[oid[0]] += 1
    if any(position >= 1 << 31 for _, _, position in entries):
        raise ValueError("a pack of more than 2 GiB")
    index = b"".join(
        [
            b"\xfftOc\0\0\0\2",
            struct.pack(">256I", *accumulate(counts)),
            *(oid for oid, _, _ in entries),
            struct.pack(f">{len(entries)}I", *(crc for _, crc, _ in entries)),
            struct.pack(f">{len(entries)}I", *(position for _, _, position in entries)),
            pack_checksum,
        ]
    )
    return index + hashlib.sha1(index, usedforsecurity=False).digest()


def _place(path: Path, content: bytes) -> None:
    beside = path.with_name(f"tmp_{path.name}_{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.chmod(0o444)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
