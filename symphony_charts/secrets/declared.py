"""The secrets that an experiment declares are looked for by their content: whole files, their lines, single values."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from symphony_charts.secrets.rules import entropy

__all__ = ["disguises", "pieces"]

# Shorter ones are found by accident in anything.
_LEAST_BYTES = 8
_LEAST_LINE_BYTES = 12
_LEAST_WORD_BYTES = 16
_LEAST_ENTROPY = 3.3
# What a value is called that is secret whatever it looks like, and what no secret looks like.
_SECRET_NAME = re.compile(
    r"(?i)pass(?:w|phrase|$)|pwd|secret|token|credential|api[_-]?key|private[_-]?key$|access[_-]?key|^key$|_key$|auth$|dsn"
)
_PUBLIC_NAME = re.compile(
    r"(?i)(?:^|_)(?:token|auth)_(?:uri|url|type|endpoint)$|cert_url$|(?:^|_)public_|_id$|file$|path$"
)
_PLAIN = re.compile(
    rb"(?i)true|false|null|none|yes|no|\d{1,12}|[a-z][a-z+.-]*://[^@\s]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|~?/[\w./-]*"
    rb"|[\w-]+(?:\.[\w-]+)+|(?:production|development|staging|password|disabled|enabled|localhost|change-?me)"
)
_WORD = re.compile(rb"[A-Za-z0-9+/_.=~!@#$%^&*-]+")
_LABEL = re.compile(rb"[a-z0-9]+(?:[-_][a-z0-9]+)+")
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ASSIGNED = re.compile(rb"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=|:\s)\s*(?=[^\s=])")
_NETRC = re.compile(rb"\b(password|account)\s+(\S+)")
_URL_PASSWORD = re.compile(rb"://[^\s:/@]*:([^\s/@]+)@")
_FRAME = re.compile(rb"-----(?:BEGIN|END) [A-Z0-9 ]+-----|#.*|[{}\[\],]*|\[[\w .-]+\]")


def pieces(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the secrets of a file with their names: the whole, its longer lines, and its values.

    Of ``KEY=VALUE``, netrc, INI and JSON the values count by themselves, if their name says so or they look random:
    a region or an address stands in every chart. Comments and the frames of PEM are no secrets.
    """
    whole = content.strip()
    if len(whole) >= _LEAST_BYTES:
        yield "", whole
    data = _json_of(whole)
    if data is not None:
        for name, text in _texts_in(data, ""):
            value = text.encode()
            if _is_secret(name.rpartition(".")[2], value):
                yield name, value
            if "\n" in text:
                yield from ((name, line) for line in _long_lines(value))
        return
    for number, line in enumerate(whole.splitlines(), 1):
        assignment = _ASSIGNED.match(line)
        name = assignment[1].decode() if assignment else f"line {number}"
        value = line[assignment.end() :].rstrip().strip(b"\"'") if assignment else b""
        if assignment and _is_secret(name, value):
            yield name, value
        if not assignment or _is_secret(name, value):
            yield from ((name, piece) for piece in _long_lines(line))
        for found in (*_NETRC.finditer(line), *_URL_PASSWORD.finditer(line)):
            secret = found[found.lastindex or 0]
            if len(secret) >= _LEAST_BYTES:
                yield name, secret


def _long_lines(text: bytes) -> Iterator[bytes]:
    lines = (line.strip() for line in text.splitlines())
    return (line for line in lines if len(line) >= _LEAST_LINE_BYTES and not _FRAME.fullmatch(line))


def _json_of(text: bytes) -> object:
    if not text.startswith((b"{", b"[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts_in(data: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts_in(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _texts_in(value, f"{path}[{number}]")


def _is_secret(name: str, value: bytes) -> bool:
    if len(value) < _LEAST_BYTES or _PUBLIC_NAME.search(name) or _PLAIN.fullmatch(value):
        return False
    if _SECRET_NAME.search(name) or b"PRIVATE KEY" in value:
        return True
    if _UUID.fullmatch(value):
        return True
    is_random = _WORD.fullmatch(value) and re.search(rb"\d", value) and re.search(rb"[A-Za-z]", value)
    return bool(
        is_random
        and len(value) >= _LEAST_WORD_BYTES
        and not _LABEL.fullmatch(value)
        and entropy(value) >= _LEAST_ENTROPY
    )


def disguises(part: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes to look for if `part` is secret, each with the name of its form.

    `decoding` undoes other codes. It cannot undo base64 that holds binary data as well, nor the escapes of quotes.
    """
    yield "in the clear", part
    for text in _base64_forms(part):
        yield "in base64", text
    decoded = part.decode("utf-8", "replace")
    if "\ufffd" not in decoded:
        for quoted in (
            json.dumps(decoded)[1:-1],
            json.dumps(decoded, ensure_ascii=False)[1:-1],
            decoded.replace("'", "''"),
        ):
            yield "escaped", quoted.encode()


def _base64_forms(part: bytes) -> Iterator[bytes]:
    """Yield the base64 digits that `part` alone decides: for its three alignments in a text, in two alphabets."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + part)
        # A digit holds six bits: those that also hold bits of a neighbour may be anything.
        core = encoded[(0, 2, 3)[offset] : 8 * (offset + len(part)) // 6]
        if len(core) >= _LEAST_BYTES:
            yield core
            yield core.translate(bytes.maketrans(b"+/", b"-_"))
