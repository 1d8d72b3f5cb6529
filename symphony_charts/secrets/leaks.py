"""The leak guard lets no byte leave this machine that holds a secret, in the clear or in any common disguise."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.errors import Conflict

__all__ = ["Guard", "Leak"]

# Shorter values are found by accident in anything.
_LEAST_BYTES = 8
_LEAST_LINE_BYTES = 12
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_MOST_UNPACKED = 64 * 1024 * 1024
# What a private key or token looks like, whoever it belongs to. Sources: RFC 7468; the formats that GitHub, GitLab,
# Slack, Google and AWS document for their tokens.
_TOKENS = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{40,}"
    rb"|\bglpat-[\w-]{20}|\bxox[abpr]-[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b|\bya29\.[\w-]{20,}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Where a secret was found, and which: `name` is that of the secret, never its value."""

    path: str
    name: str
    how: str


class Guard:
    """What looks for `secrets` (contents by name) in outgoing files."""

    def __init__(self, secrets: Mapping[str, bytes], *, finds_tokens: bool = True) -> None:
        self._finds_tokens = finds_tokens
        self._forms: dict[bytes, tuple[str, str]] = {}
        for name, content in secrets.items():
            for how, form in _disguises(content):
                self._forms.setdefault(form, (name, how))

    def find(self, files: Mapping[str, bytes]) -> list[Leak]:
        """Every secret that a file holds, in order of path; each form once."""
        places: dict[bytes, str] = {}
        for path, content in sorted(files.items()):
            for inner, data in _unpacked(path, content):
                # Charts of one template share most of their files: equal content is looked at once.
                places.setdefault(data, inner)
        # Encoders break long lines; a secret with line breaks of its own is found in the file as it is.
        texts = {data: (data, _joined(data)) for data in places}
        everything = b"\0".join(text for pair in texts.values() for text in pair)
        leaks = []
        for form, (name, how) in self._forms.items():
            if form in everything:
                leaks += [
                    Leak(path=places[data], name=name, how=how)
                    for data, pair in texts.items()
                    if any(form in text for text in pair)
                ]
        if self._finds_tokens and _TOKENS.search(everything):
            leaks += [
                Leak(path=path, name="a private key or token", how="by its form")
                for data, path in places.items()
                if _TOKENS.search(data)
            ]
        return sorted(leaks, key=lambda leak: leak.path)

    def refuse(self, files: Mapping[str, bytes]) -> None:
        """Raise Conflict when a file holds a secret, naming both and never the value."""
        leaks = self.find(files)
        if leaks:
            first = leaks[0]
            more = len({leak.path for leak in leaks}) - 1
            raise Conflict(
                f"{first.path} holds {first.name} ({first.how}){f' (and {more} more files)' if more else ''};"
                " nothing was sent",
                first.path,
                "take it out; secrets reach processes as files: `secrets: [PATH]` in the spec",
            )


def _disguises(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The forms in which a secret may stand in a file: name of the form, bytes to look for.

    The whole of it without outer white space, and each of its longer lines.
    """
    whole = content.strip()
    parts = [whole] if len(whole) >= _LEAST_BYTES else []
    parts += [line.strip() for line in whole.splitlines() if len(line.strip()) >= _LEAST_LINE_BYTES]
    for part in dict.fromkeys(parts):
        yield "in the clear", part
        yield "in hexadecimal", part.hex().encode()
        yield "in hexadecimal", part.hex().upper().encode()
        for text in _base64_forms(part):
            yield "in base64", text
        decoded = part.decode("utf-8", "replace")
        if "\ufffd" not in decoded:
            quoted = (
                json.dumps(decoded)[1:-1],
                json.dumps(decoded, ensure_ascii=False)[1:-1],
                decoded.replace("'", "''"),
            )
            for form in quoted:
                yield "escaped", form.encode()
            yield "backwards", decoded[::-1].encode()
        for kept in (_UNRESERVED, _UNRESERVED + b"/"):
            yield "URL-encoded", _percent(part, kept)
            yield "URL-encoded", _percent(part, kept).replace(b"%20", b"+")


def _base64_forms(part: bytes) -> Iterator[bytes]:
    """What stays the same of `part` in base64 wherever it begins in the text: three alignments, two alphabets."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + part)
        # A character holds six bits: those that also hold bits of a neighbour may be anything.
        core = encoded[(0, 2, 3)[offset] : 8 * (offset + len(part)) // 6]
        if len(core) >= _LEAST_BYTES:
            yield core
            yield core.translate(bytes.maketrans(b"+/", b"-_"))


def _percent(part: bytes, kept: bytes) -> bytes:
    """Percent-encoding, RFC 3986 section 2.1."""
    return b"".join(bytes([byte]) if byte in kept else b"%%%02X" % byte for byte in part)


def _joined(data: bytes) -> bytes:
    return re.sub(rb"\s+", b"", data)


def _unpacked(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """A file as it is, or what is packed in it: a gzip stream, or the members of a tar in one."""
    if not content.startswith(b"\x1f\x8b"):
        yield path, content
        return
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            inner = stream.read(_MOST_UNPACKED)
    except (OSError, EOFError, zlib.error):
        yield path, content
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
            for member in archive:
                packed = archive.extractfile(member) if member.isfile() else None
                if packed is not None:
                    yield f"{path}:{member.name}", packed.read(_MOST_UNPACKED)
    except tarfile.TarError:
        yield path, inner
