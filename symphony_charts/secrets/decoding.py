"""Unpack and decode the content of a file, layer by layer and within bounds, for the leak guard.

The text codes are those of gitleaks: base64, hexadecimal, percent-encoding and ``\\u`` escapes. Decoded text replaces
its code in the line, as in gitleaks, so that a value keeps the name before it. Content that exceeds the bounds is
reported, since it was not searched. docs/decisions/0026-leak-decoders.md has the measurement behind the choice.
"""

from __future__ import annotations

import binascii
import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

MOST_BYTES = 64 << 20
"""The bound for all views of one file together."""
MOST_LAYERS = 6
"""The bound for nested layers. A helm release in a chart archive has five."""
_MOST_MEMBERS = 10_000
_LARGE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The content of a file after `layers` were removed; in `path`, members of archives follow a colon.

    A view that `is_cut` has no content, since it exceeds the bounds.
    """

    path: str
    data: bytes
    layers: tuple[str, ...] = ()
    is_cut: bool = False


def views(path: str, data: bytes) -> Iterator[View]:
    """Yield the content itself, then views of its packed or encoded parts, fewest layers first."""
    ahead = deque([View(path=path, data=data)])
    seen = {data}
    left = MOST_BYTES
    while ahead:
        view = ahead.popleft()
        below = list(_inside(view, left))
        if not below or _kind_of(view.data) != "tar":  # the members of a tar are all of its content
            yield view
        for inner in below:
            if inner.is_cut or (len(inner.layers) >= MOST_LAYERS and _kind_of(inner.data)):
                yield View(path=inner.path, data=b"", layers=inner.layers, is_cut=True)
            elif inner.data not in seen:
                seen.add(inner.data)
                left = max(0, left - len(inner.data))
                if len(inner.layers) < MOST_LAYERS:
                    ahead.append(inner)
                else:
                    yield inner


def is_large_binary(data: bytes) -> bool:
    """Return True for a large binary file, such as the weights of a model."""
    return len(data) > _LARGE and b"\0" in data[:8192]


def _inside(view: View, left: int) -> Iterator[View]:
    kind = _kind_of(view.data)
    if kind:
        try:
            for name, content in _UNPACKERS[kind](view.data, left):
                left = max(0, left - len(content))
                inner = f"{view.path}:{name}" if name else view.path
                yield View(path=inner, data=content, layers=(*view.layers, kind))
        except _TooMuchError:
            yield View(path=view.path, data=b"", layers=(*view.layers, kind), is_cut=True)
        except _BROKEN:
            pass  # it only begins like an archive
        return
    if is_large_binary(view.data):
        return
    if b"\0" in view.data:
        strings = b"\n".join(_STRING.findall(view.data))
        if strings:
            yield View(path=view.path, data=strings, layers=(*view.layers, "a binary"))
    runs = list(_runs_in(view.data))
    texts = [run for run in runs if _is_text(run.content) and not _kind_of(run.content)]
    # One code at a time: between the escapes of a JSON web token, its parts are base64 that must stay.
    for coding in dict.fromkeys(run.coding for run in texts):
        data = _put_in(view.data, [run for run in texts if run.coding == coding])
        yield View(path=view.path, data=data, layers=(*view.layers, coding))
    for run in runs:
        if run not in texts:
            yield View(path=view.path, data=run.content, layers=(*view.layers, run.coding))


# --- archives ---------------------------------------------------------------------------------------------------------


class _TooMuchError(Exception):
    """The content of an archive exceeds the bounds."""


_BROKEN = (
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
    *(zlib.error, tarfile.TarError, zipfile.BadZipFile),
)


def _kind_of(data: bytes) -> str:
    """Return the archive or text format by the first bytes of `data`, or an empty text."""
    for kind, begins in _MAGIC.items():
        if data.startswith(begins):
            return kind
    return "tar" if data[257:262] == b"ustar" else ""


_MAGIC: dict[str, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
    "UTF-16": (b"\xff\xfe", b"\xfe\xff"),
}


def _unpack_utf16(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    """Yield the text of a file that begins with a byte order mark, as Windows PowerShell writes it."""
    del left
    yield "", data.decode("utf-16", "replace").encode()


def _unpack_gzip(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        content = stream.read(left + 1)
    if len(content) > left:
        raise _TooMuchError
    yield "", content


def _unpack_tar(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for number, member in enumerate(archive):
            if number > _MOST_MEMBERS or member.size > left:
                raise _TooMuchError
            packed = archive.extractfile(member) if member.isfile() else None
            if packed is not None:
                content = packed.read()
                left -= len(content)
                yield member.name, content


def _unpack_zip(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) > _MOST_MEMBERS:
            raise _TooMuchError
        for member in members:
            if member.flag_bits & 1:
                continue  # encrypted
            with archive.open(member) as stream:
                content = stream.read(left + 1)
            left -= len(content)
            if left < 0:
                raise _TooMuchError
            yield member.filename, content


_UNPACKERS = {"gzip": _unpack_gzip, "tar": _unpack_tar, "zip": _unpack_zip, "UTF-16": _unpack_utf16}


# --- text codes -------------------------------------------------------------------------------------------------------

# Escapes, or a word that may be base64 or hexadecimal. The "n" of an escaped line break is not part of a word.
_RUN = re.compile(rb"(?:%[0-9A-Fa-f]{2})+|(?:\\{1,2}u[0-9A-Fa-f]{4})+|\\[nrt]|[A-Za-z0-9+/_-]{16,}={0,2}")
# Lines of base64, as the program `base64` and MIME write it.
_BLOCK = re.compile(rb"(?:^|\s)((?:[A-Za-z0-9+/]{60,76}\r?\n[ \t]*)+[A-Za-z0-9+/]{1,76}={0,2})(?:\s|\Z)")
# Names and paths: codes of that length contain digits, or letters of both cases.
_NAME = re.compile(rb"[a-z/_-]+|[A-Z]+[/_-][A-Z/_-]*")
_PART = re.compile(rb"[A-Za-z0-9]{16,}={0,2}")
_HEX = re.compile(rb"[0-9A-Fa-f]{16,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """An encoded piece of a text: its place, its code, and its decoded `content`."""

    start: int
    end: int
    coding: str
    content: bytes


def _runs_in(data: bytes) -> Iterator[_Run]:
    done = 0
    for block in _blocks_in(data):
        yield from _words_in(data, done, block.start)
        yield block
        done = block.end
    yield from _words_in(data, done, len(data))


def _blocks_in(data: bytes) -> Iterator[_Run]:
    for match in _BLOCK.finditer(data):
        start, end = match.span(1)
        *lines, last = data[start:end].split()
        if len({len(line) for line in lines}) == 1 and len(last) <= len(lines[0]):
            run = _decoded_word(b"".join((*lines, last)), start)
            if run is not None:
                yield replace(run, end=end)


def _words_in(data: bytes, start: int, end: int) -> Iterator[_Run]:
    for match in _RUN.finditer(data[start:end]):
        word, at = match[0], start + match.start()
        if word[:1] == b"%":
            yield _Run(start=at, end=at + len(word), coding="percent-encoding", content=unquote_to_bytes(word))
        elif word[:1] == b"\\":
            text = "".join(chr(int(code[:4], 16)) for code in word.decode().split("u")[1:])
            if text:
                content = text.encode("utf-8", "replace")
                yield _Run(start=at, end=at + len(word), coding="Unicode escapes", content=content)
        elif not _NAME.fullmatch(word):
            run = _decoded_word(word, at)
            if run is not None:
                yield run
            elif not word.isalnum():
                parts = (_decoded_word(part[0], at + part.start()) for part in _PART.finditer(word))
                yield from (part for part in parts if part is not None)


def _decoded_word(word: bytes, start: int) -> _Run | None:
    for coding, content in _decodings(word):
        if _is_text(content) or _kind_of(content) or _STRING.search(content):
            return _Run(start=start, end=start + len(word), coding=coding, content=content)
    return None


def _decodings(word: bytes) -> Iterator[tuple[str, bytes]]:
    if _HEX.fullmatch(word) and len(word) % 2 == 0:
        yield "hexadecimal", bytes.fromhex(word.decode())
    digits = word.rstrip(b"=").translate(_FOR_URLS)
    if len(digits) % 4 != 1:
        yield "base64", binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def _put_in(data: bytes, runs: list[_Run]) -> bytes:
    """Return the lines of a text that contain `runs`, with each run replaced by its content."""
    pieces: list[bytes] = []
    done = 0
    for run in runs:
        line = data.rfind(b"\n", done, run.start) + 1
        if line and done:
            pieces.append(data[done : data.find(b"\n", done) + 1])
        pieces += (data[max(line, done) : run.start], run.content)
        done = run.end
    end = data.find(b"\n", done)
    return b"".join([*pieces, data[done:] if end < 0 else data[done:end]])


_FOR_URLS = bytes.maketrans(b"-_", b"+/")
# Printable text in a binary, as `strings` finds it. Random bytes contain such a run once in 150,000 bytes.
_STRING = re.compile(rb"[\t\x20-\x7e]{12,}")
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r"))


def _is_text(content: bytes) -> bool:
    if content.translate(None, _CONTROLS) != content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
