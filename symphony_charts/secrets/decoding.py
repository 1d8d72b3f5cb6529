"""A file is looked at in every form that its content can be unpacked or decoded into, within bounds.

Encoded runs are replaced where they stand, as gitleaks does it, so that a decoded value still has its name before it.
What unpacks to more than the bounds allow is itself reported: nobody has seen what is in it.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import gzip
import html
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

import re2

__all__ = ["BROKEN", "MOST_BYTES", "MOST_LAYERS", "View", "is_large_binary", "views"]

BROKEN = "broken into lines"
"""The layer of what goes on in the next line."""
MOST_BYTES = 64 << 20
"""What one file may come to in all its forms together."""
MOST_LAYERS = 6
"""How often something may be packed or encoded again."""
_MOST_MEMBERS = 10_000
_LARGE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One form of a file's content: `path` with the members of archives behind colons, and the `layers` taken off.

    A view `is_joined` where lines were put together, and `is_cut` where the bounds ended it: then it has no content.
    """

    path: str
    data: bytes
    layers: tuple[str, ...] = ()
    is_joined: bool = False
    is_cut: bool = False


def views(path: str, data: bytes) -> Iterator[View]:
    """The content itself, then what is packed, encoded or broken into lines in it, nearest first."""
    ahead = deque([View(path=path, data=data)])
    seen = {data}
    left = MOST_BYTES
    while ahead:
        view = ahead.popleft()
        below = list(_inside(view, left))
        if not below or _kind_of(view.data) != "tar":  # of which the members are all that it holds
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
    """Whether it is a big file of no text, as weights of a model are: nothing in it is encoded as in a text."""
    return len(data) > _LARGE and b"\0" in data[:8192]


def _inside(view: View, left: int) -> Iterator[View]:
    """What is directly in a view; one that is cut ends it."""
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
            pass  # It only began like one, and has been looked at as it is.
        return
    if is_large_binary(view.data):
        return
    runs = list(_runs_in(view.data))
    texts = [run for run in runs if not _kind_of(run.content)]
    if texts:
        # Round a run that went over lines stands what other lines hold: what it says is looked at by itself.
        data = b"\n".join(run.content for run in texts) if view.is_joined else _put_in(view.data, texts)
        yield View(path=view.path, data=data, layers=(*view.layers, *dict.fromkeys(run.coding for run in texts)))
    for run in runs:
        if _kind_of(run.content):
            yield View(path=view.path, data=run.content, layers=(*view.layers, run.coding))
    if not view.is_joined:
        joined = _join_lines(view.data)
        if joined:
            yield View(path=view.path, data=joined, layers=(*view.layers, BROKEN), is_joined=True)


# --- what is packed ---------------------------------------------------------------------------------------------------


class _TooMuchError(Exception):
    """What is packed is more than may be looked at."""


_BROKEN = (
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
    *(zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
)


def _kind_of(data: bytes) -> str:
    """What `data` is packed as, by its first bytes; empty for what is not."""
    for kind, begins in _MAGIC.items():
        if data.startswith(begins):
            return kind
    if len(data) > 6 and data[0] & 0x8F == 8 and int.from_bytes(data[:2], "big") % 31 == 0:
        return "zlib"
    if data[257:262] == b"ustar":
        return "tar"
    if len(data) >= 16 and _is_utf16(data):
        return "UTF-16"
    return ""


_MAGIC: dict[str, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
    "bzip2": (b"BZh",),
    "xz": (b"\xfd7zXZ\0",),
    "UTF-16": (b"\xff\xfe", b"\xfe\xff"),
}


def _is_utf16(data: bytes) -> bool:
    """Whether every other byte of the beginning is null, as in UTF-16 of mostly Latin text."""
    head = data[:256]
    for nulls, others in ((head[1::2], head[0::2]), (head[0::2], head[1::2])):
        if nulls.count(0) > 0.8 * len(nulls) and others.count(0) < 0.1 * len(others):
            return True
    return False


def _unpack_utf16(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    del left
    has_mark = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    coding = "utf-16" if has_mark else "utf-16-le" if data[1] == 0 else "utf-16-be"
    yield "", data.decode(coding, "replace").encode()


def _bounded(stream: io.BufferedIOBase | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile, left: int) -> bytes:
    content = stream.read(left + 1)
    if len(content) > left:
        raise _TooMuchError
    return content


def _unpack_zlib(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, left + 1)
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


def _stream(opener: Callable[[io.BytesIO], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]) -> _Unpacker:
    def unpack(data: bytes, left: int) -> Iterator[tuple[str, bytes]]:
        with opener(io.BytesIO(data)) as stream:
            yield "", _bounded(stream, left)

    return unpack


_Unpacker = Callable[[bytes, int], Iterator[tuple[str, bytes]]]
_UNPACKERS: dict[str, _Unpacker] = {
    "gzip": _stream(lambda data: gzip.GzipFile(fileobj=data)),
    "bzip2": _stream(bz2.BZ2File),
    "xz": _stream(lzma.LZMAFile),
    "zlib": _unpack_zlib,
    "tar": _unpack_tar,
    "zip": _unpack_zip,
    "UTF-16": _unpack_utf16,
}


# --- what is encoded --------------------------------------------------------------------------------------------------

# Escapes, or what may be a word of base64, hexadecimal or base32. The "n" of an escaped line break is none of its.
_RUN = re2.compile(
    rb"(?:%[0-9A-Fa-f]{2})+|(?:\\{1,2}u[0-9A-Fa-f]{4}|\\{1,2}x[0-9A-Fa-f]{2})+|(?:U\+[0-9A-Fa-f]{4}\s?)+"
    rb"|(?:&#(?:x[0-9A-Fa-f]{2,6}|[0-9]{2,7});)+|\\[nrt]|[A-Za-z0-9+/_-]{16,}={0,6}"
)
# Names and paths: codes of that length have digits, or letters of both cases.
_NAME = re.compile(rb"[a-z/_-]+|[A-Z]+[/_-][A-Z/_-]*")
_PART = re.compile(rb"[A-Za-z0-9]{16,}={0,6}")
_HEX = re.compile(rb"[0-9A-Fa-f]{16,}")
_BASE32 = re.compile(rb"[A-Z2-7]{16,}={0,6}|[a-z2-7]{16,}={0,6}")
_CODES = re.compile(r"(?:u|x|U\+)([0-9A-Fa-f]{2,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A piece of a text that is the code of `content`: where it stands, and what kind of code it is."""

    start: int
    end: int
    coding: str
    content: bytes


def _runs_in(data: bytes) -> Iterator[_Run]:
    """The encoded pieces of a text whose content is text, or packed again."""
    for match in _RUN.finditer(data):
        start, end = match.span()
        if match[0][:1] in (b"%", b"\\", b"&") or match[0][:2] == b"U+":
            if end - start > 2:
                coding, content = _unescaped(match[0])
                yield _Run(start=start, end=end, coding=coding, content=content)
            continue
        if _NAME.fullmatch(match[0]):
            continue
        run = _decoded_word(match[0], start)
        if run is not None:
            yield run
        elif not match[0].isalnum():
            parts = (_decoded_word(part[0], start + part.start()) for part in _PART.finditer(match[0]))
            yield from (part for part in parts if part is not None)


def _unescaped(run: bytes) -> tuple[str, bytes]:
    if run[:1] == b"%":
        return "percent-encoding", unquote_to_bytes(run)
    if run[:1] == b"&":
        return "HTML entities", html.unescape(run.decode()).encode("utf-8", "replace")
    text = "".join(chr(int(code, 16)) for code in _CODES.findall(run.decode()))
    return "Unicode escapes", text.encode("utf-8", "replace")


def _decoded_word(word: bytes, start: int) -> _Run | None:
    for coding, content in _decodings(word):
        if _is_text(content) or _kind_of(content):
            return _Run(start=start, end=start + len(word), coding=coding, content=content)
    return None


def _put_in(data: bytes, runs: list[_Run]) -> bytes:
    """The lines of a text that hold `runs`, with the runs replaced by what they say."""
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


def _decodings(run: bytes) -> Iterator[tuple[str, bytes]]:
    """What a run of letters and digits may be the code of, the narrower alphabets first."""
    core = run.rstrip(b"=")
    if _HEX.fullmatch(run) and len(run) % 2 == 0:
        yield "hexadecimal", bytes.fromhex(run.decode())
    if _BASE32.fullmatch(run):
        with contextlib.suppress(binascii.Error):
            yield "base32", base64.b32decode(core.upper() + b"=" * (-len(core) % 8))
    if len(core) % 4 != 1:
        plain = core.translate(_FOR_URLS)
        yield "base64", binascii.a2b_base64(plain + b"=" * (-len(plain) % 4))


_FOR_URLS = bytes.maketrans(b"-_", b"+/")
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r"))


def _is_text(content: bytes) -> bool:
    if content.translate(None, _CONTROLS) != content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- what is broken into lines ----------------------------------------------------------------------------------------

_ONE_WORD = re.compile(rb"[A-Za-z0-9+/_=.~-]+")
_ROUND_LINES = b" \t\r\"'\\+,"


def _join_lines(data: bytes) -> bytes:
    """The passages in which a line that is but one word goes on where the line above ended, each as one line."""
    passages: list[list[bytes]] = [[]]
    for line in data.split(b"\n"):
        word = line.strip(_ROUND_LINES)
        if passages[-1] and _ONE_WORD.fullmatch(word):
            passages[-1].append(word)
        else:
            passages.append([line.rstrip(_ROUND_LINES)])
    return b"\n".join(b"".join(passage) for passage in passages if len(passage) > 1)
