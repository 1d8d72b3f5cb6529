"""Texts and paths as YAML and Go templates take them."""

from __future__ import annotations

import re
from functools import lru_cache

_PLAIN = re.compile(
    r"(?!.*(: |:$| #|\s$))(?:[A-Za-z_./$(]|--?[A-Za-z])[^\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff]*"
    r"|[0-9]+(?:m|[kMGTP]|[KMGTP]i)"
)
# YAML 1.1 reads these as numbers, booleans or null.
_SPECIAL = re.compile(
    r"y|n|yes|no|on|off|true|false|null|~|\.inf|\.nan|[-+.]?[0-9][-+.:_0-9a-fx]*|[-+.]?[0-9.]+e[-+]?[0-9]+",
    re.IGNORECASE,
)
_FLOW_SYNTAX = re.compile(r"[,\[\]{}]")
# A literal block gives back one line break at the end, and no control characters or leading blanks.
_NOT_IN_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_BLOCK = re.compile(r"\S(.*[^\n])?\n", re.DOTALL)
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


@lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """Return `text` in double quotes, as YAML and Go both read it."""
    return '"' + "".join(char if char.isprintable() and char not in '"\\' else _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return _SHORT_ESCAPES.get(char) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


@lru_cache(maxsize=4096, typed=True)
def constant(value: str | int | float | bool, *, in_flow: bool = False) -> str:
    """Return a constant in YAML, quoted only if it must be. Template syntax in it stays data."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if "{{" in value or "}}" in value:
        return "{{ " + quoted(value) + " | quote }}"
    is_plain = _PLAIN.fullmatch(value) and not _SPECIAL.fullmatch(value)
    return value if is_plain and not (in_flow and _FLOW_SYNTAX.search(value)) else quoted(value)


def fits_block(text: str) -> bool:
    """Return True if a literal block scalar gives `text` back unchanged."""
    return not _NOT_IN_BLOCK.search(text) and _BLOCK.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def go_path(path: str) -> str:
    """Return `path` as Go takes it, with `index` for names that are not identifiers."""
    if path == "." or path.startswith('"'):
        return path
    expression, *names = path.split(".")
    for name in names:
        is_identifier = name.isascii() and name.isidentifier()
        expression = f"{expression}.{name}" if is_identifier else f'(index {expression or "."} "{name}")'
    return expression
