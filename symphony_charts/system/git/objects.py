"""Write and read Git objects, and merge trees without a work tree."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.program import git


def read_objects(repo: Path, names: Sequence[str], timeout_s: float = 60.0) -> list[tuple[str, str, bytes] | None]:
    """Return kind, id and content of each named object (``<id>`` or ``<commit>:<path>``), None for a missing one.

    Names hold no newline. Raises ToolFailed when the repository is damaged.
    """
    if not names:
        return []
    fed = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    data = git(repo, "cat-file", "--batch", input=fed, timeout_s=timeout_s).stdout
    objects: list[tuple[str, str, bytes] | None] = []
    start = 0
    for name in names:
        end = data.find(b"\n", start)
        if end < 0:
            raise ToolFailed(f"git said nothing about {name}", str(repo))
        words = data[start:end].split()
        start = end + 1
        if len(words) != 3 or not words[2].isdigit():
            objects.append(None)
            continue
        size = int(words[2])
        objects.append((words[1].decode(), words[0].decode(), data[start : start + size]))
        start += size + 1
    return objects


def find_commit(repo: Path, tip: str, commits: Iterable[str]) -> str | None:
    """Return the newest of `commits` in the local history of `tip`, or None."""
    wanted = set(commits) if tip else set()
    if tip in wanted or not wanted:
        return tip if wanted else None
    return next((commit for commit in history(repo, tip) if commit in wanted), None)


def history(repo: Path, tip: str) -> list[str]:
    """Return the commits that led to `tip` and itself, newest first, as far as they are here."""
    return git(repo, "rev-list", tip, timeout_s=60).text.split()


_TYPES = {"commit": 1, "tree": 2, "blob": 3}


def write_pack(folder: Path, objects: Iterable[tuple[str, str, bytes]]) -> Path:
    """Write `objects` (kind, id, content) as a pack below ``objects/pack`` of the bare repository `folder`.

    The index is renamed into place last, so that git sees the pack whole or not at all.
    """
    parts, entries, position = [b""], [], 12
    for kind, oid, data in objects:
        part = _size_header(_TYPES[kind], len(data)) + zlib.compress(data, 1)
        entries.append((bytes.fromhex(oid), zlib.crc32(part), position))
        parts.append(part)
        position += len(part)
    parts[0] = struct.pack(">4sII", b"PACK", 2, len(entries))
    body = b"".join(parts)
    # Names, checksums and their width follow the repository's own hash.
    hash_name = "sha256" if entries and len(entries[0][0]) == 32 else "sha1"
    checksum = hashlib.new(hash_name, body, usedforsecurity=False).digest()
    path = folder / "objects" / "pack" / f"pack-{checksum.hex()}"
    path.parent.mkdir(parents=True, exist_ok=True)
    _place(path.with_suffix(".pack"), body + checksum)
    _place(path.with_suffix(".idx"), _index(entries, checksum, hash_name))
    return path.with_suffix(".pack")


def _size_header(kind: int, size: int) -> bytes:
    """Return kind and size: four bits of the size in the first byte, seven in each that follows."""
    out = [(kind << 4) | (size & 15)]
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def _index(entries: list[tuple[bytes, int, int]], pack_checksum: bytes, hash_name: str) -> bytes:
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
    return index + hashlib.new(hash_name, index, usedforsecurity=False).digest()


def _place(path: Path, content: bytes) -> None:
    beside = path.with_name(f"tmp_{path.name}_{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.chmod(0o444)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def merge_base(repo: Path, one: str, other: str) -> str:
    """Return the commit where two forked; empty if they share none."""
    return git(repo, "merge-base", one, other, check=False).text.strip()


def changed_paths(repo: Path, before: str, after: str) -> set[str]:
    text = git(repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after).text
    return {path for path in text.split("\0") if path}


def merge_trees(repo: Path, base: str, ours: str, theirs: str, *, theirs_in: Iterable[str]) -> tuple[str, list[str]]:
    """Return the tree of `theirs` with the changes of `ours` since `base`, and the files in conflict.

    At or below the paths `theirs_in`, only `theirs` counts. The tree is empty if files conflict.
    """
    index = repo / "symph-merge-index"
    env = {"GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    try:
        git(repo, "read-tree", "-i", "-m", "--aggressive", base, ours, theirs, env=env)
        for path in theirs_in:
            _stage(repo, env, path, theirs)
        unmerged = git(repo, "ls-files", "-u", "-z", env=env).text.split("\0")
        conflicts = sorted({line.partition("\t")[2] for line in unmerged if line})
        if conflicts:
            return "", conflicts
        # Unread files are missing here, and need not exist.
        return git(repo, "write-tree", "--missing-ok", env=env).text.strip(), []
    finally:
        index.unlink(missing_ok=True)


def _stage(repo: Path, env: Mapping[str, str], path: str, commit: str) -> None:
    held = git(repo, "ls-files", "-z", "--", f":(literal){path}", env=env).text.split("\0")
    gone = "".join(f"0 {'0' * len(commit)}\t{each}\0" for each in dict.fromkeys(held) if each)
    fresh = git(repo, "ls-tree", "-r", "-z", commit, "--", path).text
    git(repo, "update-index", "-z", "--index-info", input=(gone + fresh).encode("utf-8", "surrogateescape"), env=env)
