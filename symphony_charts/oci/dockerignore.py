"""``.dockerignore`` decides which files of a folder belong to an image.

Source: moby/patternmatcher, patternmatcher.go and ignorefile/ignorefile.go; Docker docs, "Build context". The last
pattern that matches a path or a folder above it decides; ``!`` takes files in again.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from symphony_charts.errors import Problem, SpecError

__all__ = ["Ignore", "read_ignore"]

_ESCAPED = frozenset(".$+()|{}")
# Python reserves these within a set for the future; Go takes them as they are.
_ESCAPED_IN_SET = frozenset("[&~|")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    expression: re.Pattern[str]
    takes_in: bool


@dataclass(frozen=True, slots=True)
class Ignore:
    """The patterns of one file, in order."""

    patterns: tuple[_Pattern, ...] = ()

    @property
    def takes_in(self) -> bool:
        """True if a pattern takes files in again, so that ignored folders must be looked into."""
        return any(pattern.takes_in for pattern in self.patterns)

    def leaves_out(self, path: str) -> bool:
        """Return True if `path`, relative and with ``/``, is ignored."""
        places = [path]
        while "/" in places[-1]:
            places.append(places[-1].rpartition("/")[0])
        ignored = False
        for pattern in self.patterns:
            if pattern.takes_in == ignored and any(pattern.expression.fullmatch(candidate) for candidate in places):
                ignored = not pattern.takes_in
        return ignored


def read_ignore(text: str, at: str = ".dockerignore") -> Ignore:
    """Return the patterns of a ``.dockerignore``. Raises SpecError with the line of each that cannot be understood."""
    patterns: list[_Pattern] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        words = line.strip()
        if not words or line.startswith("#"):
            continue
        pattern = _clean(words)
        takes_in, glob = pattern.startswith("!"), pattern.removeprefix("!")
        try:
            patterns.append(_Pattern(expression=_expression(glob), takes_in=takes_in))
        except (re.error, ValueError) as error:
            problems.append(Problem(what=f'"{words}" is no pattern: {error}', path=f"{at}:{number}"))
    if problems:
        raise SpecError(problems)
    return Ignore(tuple(patterns))


def _clean(words: str) -> str:
    """Return the pattern as Docker cleans it, in two passes: first without its ``!``, then with it."""
    mark, glob = ("!", words[1:].strip()) if words.startswith("!") else ("", words)
    cleaned = _clean_path(glob) if glob else ""
    if len(cleaned) > 1:
        cleaned = cleaned.removeprefix("/")
    return _clean_path((mark + cleaned).strip())


def _clean_path(path: str) -> str:
    """As Go's ``filepath.Clean``; POSIX lets two slashes at the start stand."""
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _expression(glob: str) -> re.Pattern[str]:
    if not glob:
        raise ValueError("nothing stands after the !")
    rest = glob.removeprefix("**")
    if rest != glob and not any(character in rest for character in "*?[]\\"):
        # Docker compares the end of the path then: `**b` is whatever ends with a b.
        return re.compile(f"(?:.*{re.escape(rest)}|{re.escape(rest.removeprefix('/'))})", re.DOTALL)
    parts: list[str] = []
    position, in_set = 0, False
    while position < len(glob):
        character = glob[position]
        position += 1
        if character == "*" and not in_set:
            position, part = _stars(glob, position)
            parts.append(part)
        elif character == "?" and not in_set:
            parts.append("[^/]")
        elif character == "\\":
            if position == len(glob):
                raise ValueError("it ends with a backslash")
            parts.append(re.escape(glob[position]))
            position += 1
        elif character in "[]":
            parts.append("\\[" if in_set and character == "[" else character)
            in_set = character == "[" or (in_set and character != "]")
        else:
            is_special = character in (_ESCAPED_IN_SET | _ESCAPED if in_set else _ESCAPED)
            parts.append(f"\\{character}" if is_special else character)
    if in_set:
        raise ValueError("a [ is not closed")
    return re.compile("".join(parts), re.DOTALL)


def _stars(glob: str, position: int) -> tuple[int, str]:
    if not glob.startswith("*", position):
        return position, "[^/]*"
    position += 1
    if glob.startswith("/", position):
        position += 1
    return position, ".*" if position == len(glob) else "(.*/)?"
