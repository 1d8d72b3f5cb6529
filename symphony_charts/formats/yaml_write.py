"""Write YAML that every reader reads alike, and JSON as Go's encoding/json writes it.

A string is bare only if no reader can misread it; all others are double-quoted as in JSON, and multi-line text is a
literal block if that is exact. Lines are never folded, so values survive byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from json.encoder import encode_basestring

# Readers disagree on these words (`y` and `on` are booleans in YAML 1.1 only), so they are always quoted.
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity"])
# A word, a flag such as `--steps=10`, or a Kubernetes quantity such as 500m.
_BARE = re.compile(
    r"(?:[A-Za-z_/]|--?[A-Za-z])(?:[A-Za-z0-9_./@+-]|[:,=](?=[A-Za-z0-9_./-])| (?=[A-Za-z0-9/]))*"
    r"|[0-9]+(?:m|[KMGT]i)",
    re.ASCII,
)
# YAML's printable set without NEL, LS, PS and the byte order mark, which readers treat as line breaks or drop.
_PRINTABLE = "\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_NOT_LITERAL = re.compile(r"[^\S\n]\n|[^\S\n]\Z|\n\n\n\n|\n\n\Z|\A\s|\r|\n[^\S\n ]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Longest key on one line: YAML allows 1024 characters, counted as written in the file.
_LONGEST_KEY = 240


def dump(data: object) -> str:
    """Return one YAML document: maps in their order, block style, UTF-8, a newline at the end.

    Accepts JSON types (and tuples as lists). Raises TypeError for anything else, and ValueError for a lone surrogate,
    which no encoding can represent.
    """
    lines: list[str] = []
    _write(data, 0, lines, "")
    lines.append("")
    return "\n".join(lines)


def dump_all(documents: Iterable[object]) -> str:
    """Return several YAML documents, each after ``---``."""
    return "".join("---\n" + dump(document) for document in documents)


def quote(text: str) -> str:
    """Return `text` in double quotes; prefers escapes that JSON and YAML share."""
    quoted = encode_basestring(text)
    if _unprintable().search(quoted):
        quoted = _unprintable().sub(_escape, quoted)
    return quoted


@cache
def _unprintable() -> re.Pattern[str]:
    """Compile lazily: it takes longer than all other patterns together."""
    return re.compile(f"[^{_PRINTABLE}]")


def _write_map(data: Mapping[object, object], depth: int, lines: list[str], lead: str) -> None:
    """Append the entries of `data`; `lead` (the dashes of enclosing lists) replaces the indent of the first line."""
    pad = "  " * depth
    start = lead or pad
    for key, value in data.items():
        if not isinstance(key, str):
            raise TypeError(f"YAML written here has string keys only, not {key!r}")
        head = start + _key(key, pad)
        start = pad
        if isinstance(value, (Mapping, list, tuple)) and value:
            lines.append(head)
            _write(value, depth + 1, lines, "")
        else:
            lines.append(f"{head} {_inline(value, depth + 1)}")


def _write_list(data: Iterable[object], depth: int, lines: list[str], lead: str) -> None:
    pad = "  " * depth
    start = lead or pad
    for value in data:
        _write(value, depth + 1, lines, start + "- ")
        start = pad


def _write(value: object, depth: int, lines: list[str], lead: str) -> None:
    if isinstance(value, Mapping) and value:
        _write_map(value, depth, lines, lead)
    elif isinstance(value, (list, tuple)) and value:
        _write_list(value, depth, lines, lead)
    else:
        lines.append(lead + _inline(value, max(depth, 1)))


def _inline(value: object, depth: int) -> str:
    if isinstance(value, str):
        return _text(value, depth)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    raise TypeError(f"YAML cannot hold {type(value).__name__} {value!r}")


def _text(text: str, depth: int) -> str:
    if _BARE.fullmatch(text) and text.lower().lstrip("-") not in _WORDS:
        return text
    if "\n" in text and not _NOT_LITERAL.search(text) and not _unprintable().search(text):
        pad = "  " * depth
        chomp, body = ("|", text[:-1]) if text.endswith("\n") else ("|-", text)
        return f"{chomp}\n" + "\n".join(pad + line if line else "" for line in body.split("\n"))
    return quote(text)


def _key(key: str, pad: str) -> str:
    if _BARE.fullmatch(key) and key.lower().lstrip("-") not in _WORDS and len(key) <= _LONGEST_KEY:
        return key + ":"
    quoted = quote(key)
    return quoted + ":" if len(quoted) <= _LONGEST_KEY else f"? {quoted}\n{pad}:"


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = float.__repr__(value).partition("e")
    # YAML 1.1 requires a dot and a sign with an exponent: it would read 1e-07 as text.
    return f"{digits if '.' in digits else digits + '.0'}{exponent}{power}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if _SURROGATE.match(match[0]):
        raise ValueError(f"half of a surrogate pair (U+{code:04X}) is not a character")
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# Source: golang/go, src/encoding/json/encode.go (sorted keys, ``<>&`` and U+2028/9 escaped, ECMAScript numbers).

_ESCAPED = re.compile("[<>&\u2028\u2029]")
_EXPONENT = re.compile(r"e([+-])0*(\d)")
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
# A float as the json module writes it; a match inside a string only costs time.
_FLOAT = re.compile(r"(?:^|\":|[\[,])-?\d+[.e]")


def dumps(value: object) -> str:
    """Return the same JSON text as Go for `value` (str, bool, int, float, None, mappings with str keys, lists).

    Integers represent float64s and must be at most 2^53.
    """
    text = _ENCODER.encode(value)
    return _escaped(_write_json(value) if _FLOAT.search(text) else text)


def indented(value: object) -> str:
    """Return the JSON text of `value`, indented by two spaces per level, as `toPrettyJson` prints it."""
    return _escaped(_write_json(value, ""))


def number(value: float) -> str:
    """Return a float64 in Go's format: an exponent below 1e-6 and from 1e21 on, and no point in whole numbers."""
    text = repr(value)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        plain = format(Decimal(text), "f") if "e" in text else text
        return plain.removesuffix(".0")
    return _EXPONENT.sub(r"e\1\2", text)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _write_json(value: object, margin: str | None = None) -> str:
    """Return `value` as JSON, indented below `margin` if it is set. The json module cannot customise floats."""
    if isinstance(value, float):
        return number(value)
    if not value or not isinstance(value, Mapping | list | tuple):
        return _ENCODER.encode(value)
    inner, colon = (None, ":") if margin is None else (f"{margin}  ", ": ")
    if isinstance(value, Mapping):
        items = [f"{_ENCODER.encode(key)}{colon}{_write_json(value[key], inner)}" for key in sorted(value)]
    else:
        items = [_write_json(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    if margin is None:
        return f"{opening}{','.join(items)}{closing}"
    lines = ",\n".join(f"{inner}{item}" for item in items)
    return f"{opening}\n{lines}\n{margin}{closing}"
