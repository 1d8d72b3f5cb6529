"""YAML text is loaded and dumped here: one strict reader, one safe writer, and the line where a path stands."""

from __future__ import annotations

import re

from symphony_charts.formats.names import sanitize
from symphony_charts.formats.yaml_read import Lines, SourceNumber, load, load_with_lines
from symphony_charts.formats.yaml_write import dump, dump_all, quote

__all__ = ["SourceNumber", "dump", "dump_all", "line_in", "line_of", "load", "load_with_lines", "quote"]

_INDEX = re.compile(r"\[(\d+)\]\.?")
_LINE = re.compile(r"line (\d+)")


def line_of(text: str, path: str) -> int | None:
    """Return the line, counted from 1, where `path` (``processes.learner.binds[0]``) is in YAML or JSON `text`.

    Where the path ends in something that the text only implies, its nearest parent counts; None if even its first
    step is absent or the text cannot be read.
    """
    try:
        data, lines = load_with_lines(text)
    except ValueError:
        data, lines = None, {}
    return line_in(data, lines, path)


def line_in(data: object, lines: Lines, path: str) -> int | None:
    """Return `line_of` for text that `load_with_lines` has read. A key also fits its sanitised form."""
    if (match := _LINE.fullmatch(path)) is not None:
        return int(match[1])
    line = None
    while path:
        index = _INDEX.match(path)
        if index is not None:
            here, data = _item(data, lines, int(index[1]))
            path = path[index.end() :]
        else:
            here, data, path = _entry(data, lines, path)
        line = here if here is not None else line
    return line


def _item(data: object, lines: Lines, index: int) -> tuple[int | None, object]:
    """Return line and value of the entry `index`; a map counts its keys, a scalar is its own only item."""
    if isinstance(data, list) and index < len(data):
        return lines.get(id(data), {}).get(index), data[index]
    if isinstance(data, dict) and index < len(data):
        key = list(data)[index]
        return lines.get(id(data), {}).get(key), data[key]
    return None, data


def _entry(data: object, lines: Lines, path: str) -> tuple[int | None, object, str]:
    """Return line and value of the key that `path` begins with, and the rest of the path.

    Keys may hold dots (``app.kubernetes.io/name``), so the longest key that begins the path is the one meant.
    """
    if isinstance(data, dict):
        for key in sorted(data, key=len, reverse=True):
            for spelling in (key, sanitize(key)):
                rest = path[len(spelling) :]
                if spelling and path.startswith(spelling) and rest[:1] in ("", ".", "["):
                    return lines.get(id(data), {}).get(key), data[key], rest.removeprefix(".")
    return None, None, ""
