"""A chart as an archive whose bytes depend on its files alone, and the version that follows from its content."""

from __future__ import annotations

import hashlib
import re
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values

# Files with the same texts are neighbours, because gzip looks back 32 kB. The gzip header (RFC 1952) is a
# constant: that of `gzip` differs between Python versions.
_BLOCK = 512
_END = b"\0" * (2 * _BLOCK)
_FIRST = ("Chart.yaml", "values.schema.json", "values.yaml", "README.md", "experiment.yaml")
# Files for chart-testing.
_NOT_PACKED = ("ci/",)
_TEN_BYTES = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def packed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a chart's folder that its archive contains."""
    return {path: content for path, content in files.items() if not path.startswith(_NOT_PACKED)}


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the ``.tgz`` of chart `name`. The tar is reproducible; the compression depends on the zlib version."""
    return compress(tar_of(name, files))


def compress(tar: bytes) -> bytes:
    """Return `tar` in gzip format without a time; every Python writes the same header."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(tar) + deflate.flush()
    return _TEN_BYTES + body + struct.pack("<II", zlib.crc32(tar), len(tar) & 0xFFFFFFFF)


def tar_of(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the tar of chart `name`: regular files of mode 0644 under ``name/``, without an owner, from 1970."""
    parts = []
    for path in sorted(files, key=_place):
        content = files[path]
        parts += [_header(f"{name}/{path}", len(content)), content, b"\0" * (-len(content) % _BLOCK)]
    parts.append(_END)
    return b"".join(parts)


def checksums(files: Mapping[str, bytes]) -> bytes:
    """Return the hashes of `files` by path, in the format of `sha256sum --check`."""
    hashes = (f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in sorted(files.items()))
    return "".join(hashes).encode()


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return a ``sha256:`` digest of the checksums, which is equal for charts that differ only in their version.

    It reads ``version: 0.0.0`` in Chart.yaml.
    """
    unversioned = re.sub(rb"(?m)^version: .*$", b"version: 0.0.0", files["Chart.yaml"])
    return f"sha256:{hashlib.sha256(checksums({**files, 'Chart.yaml': unversioned})).hexdigest()}"


def _place(path: str) -> tuple[int, str]:
    if path in _FIRST:
        return _FIRST.index(path), path
    return (len(_FIRST) if path.startswith("templates/") else len(_FIRST) + 1), path


def _header(path: str, size: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


FIRST_VERSION = "0.1.0"


# Semantic Versioning 2.0.0, clauses 9 to 11.
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesChange:
    """The difference between old and new values, as sorted paths."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def level(self) -> Literal["major", "minor", "patch"]:
        """The part of the version to raise, by the effect on users of the chart."""
        if self.removed or self.retyped:
            return "major"
        return "minor" if self.added else "patch"

    def describe(self) -> str:
        """Return a short description: counts, and the paths if there are few."""
        words = [
            f"{len(paths)} {'value' if len(paths) == 1 else 'values'} {verb}"
            for verb in ("removed", "retyped", "added")
            if (paths := getattr(self, verb))
        ]
        if self.changed:
            few = len(self.changed) <= 3
            words.append(", ".join(self.changed) + " changed" if few else f"{len(self.changed)} values changed")
        return ", ".join(words) or "templates changed"


def next_version(last: str, change: ValuesChange) -> str:
    match = _SEMVER.fullmatch(last)
    if match is None:
        raise SpecError.one(f'"{last}" is not a semantic version', "version")
    major, minor, patch = (int(part) for part in match.groups()[:3])
    if change.level == "major":
        return f"{major + 1}.0.0"
    if change.level == "minor":
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}"


def check_version(version: str) -> str:
    """Return `version` if it is a semantic version that Helm accepts. Raises SpecError otherwise."""
    if _SEMVER.fullmatch(version) is None or version == "0.0.0":
        raise SpecError.one(f'"{version}" is not a semantic version above 0.0.0', "version", "write it like 1.2.3")
    return version


def compare_values(before: Values, after: Values) -> ValuesChange:
    """Return the difference from `before` to `after`, ignoring the digest of the experiment."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    old.pop("specDigest", None)
    new.pop("specDigest", None)
    both = sorted(set(old) & set(new))
    return ValuesChange(
        added=tuple(sorted(set(new) - set(old))),
        removed=tuple(sorted(set(old) - set(new))),
        retyped=tuple(path for path in both if _type(old[path]) != _type(new[path])),
        changed=tuple(path for path in both if _type(old[path]) == _type(new[path]) and old[path] != new[path]),
    )


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif value != {} or not path:
        yield path, value


def _type(value: object) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
