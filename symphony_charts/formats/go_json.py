"""JSON is written as Go's encoding/json writes it, which helm's `toJson` gives and the run hash is taken of.

Source: golang/go, src/encoding/json/encode.go (sorted keys, ``<>&`` and U+2028/9 escaped, ECMAScript numbers).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal

_ESCAPED = re.compile("[<>&\u2028\u2029]")
_EXPONENT = re.compile(r"e([+-])0*(\d)")
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
# A float as the json module writes it; the same inside of a string only costs time.
_FLOAT = re.compile(r"(?:^|\":|[\[,])-?\d+[.e]")


def dumps(value: object) -> str:
    """Return the one JSON text that Go gives for `value` (str, bool, int, float, None, mappings with str keys, lists).

    Whole numbers stand for float64s and must not be beyond 2^53.
    """
    text = _compact(value)
    if _FLOAT.search(text):
        text = _write(value)
    return _escaped(text)


def indented(value: object) -> str:
    """Return the text of `value` on several lines, two spaces deeper per level, as `toPrettyJson` gives it."""
    return _escaped(_indented(value, ""))


def number(value: float) -> str:
    """Return a float64 in Go: whole ones below 1e21 without a point, those below 1e-6 or above with an exponent."""
    text = repr(value)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        plain = format(Decimal(text), "f") if "e" in text else text
        return plain.removesuffix(".0")
    return _EXPONENT.sub(r"e\1\2", text)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _indented(value: object, margin: str) -> str:
    inner = f"{margin}  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{_compact(key)}: {_indented(value[key], inner)}" for key in sorted(value)]
    elif isinstance(value, list | tuple) and value:
        lines = [f"{inner}{_indented(item, inner)}" for item in value]
    else:
        return _write(value)
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    body = ",\n".join(lines)
    return f"{opening}\n{body}\n{margin}{closing}"


def _compact(value: object) -> str:
    return _ENCODER.encode(value)


def _write(value: object) -> str:
    """Like `_compact`, in Python, since the json module cannot be told how to write a float."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_compact(key)}:{_write(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_write(item) for item in value) + "]"
    return number(value) if isinstance(value, float) else _compact(value)
