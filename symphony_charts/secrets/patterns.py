"""Compile patterns that come from data: with RE2 if it is installed (extra `re2`), else with Python's `re`.

RE2 takes time linear in the text. `re` backtracks, so its fallback searches pieces of bounded length. The two
differ in one case: `re` misses a match that is longer than `OVERLAP` and crosses the end of a piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol

try:
    import re2
except ImportError:
    re2 = None

__all__ = ["NAME_PREFIX", "OVERLAP", "PIECE", "Match", "Pattern", "PythonPattern", "compile_pattern", "find_words"]

NAME_PREFIX = r"(?i)[\w.-]{0,50}?"
"""The start of a pattern that begins with the name that a value is assigned to."""
PIECE = 16 << 10
"""Bytes that one search of `re` sees."""
OVERLAP = 4 << 10
"""Bytes of a piece that the next piece repeats: a private RSA key of 4096 bits has 3.2 KiB."""
# Enough for every pattern and for the set of keywords to keep their automata.
_MEMORY_BYTES = 64 << 20
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?[a-z]+\)|.", re.DOTALL)


class Match(Protocol):
    """One match; groups count from 1, and 0 is the whole match."""

    def __getitem__(self, number: int, /) -> bytes: ...
    def start(self, number: int = 0, /) -> int: ...
    def span(self, number: int = 0, /) -> tuple[int, int]: ...
    def groups(self) -> Sequence[bytes | None]: ...


class Pattern(Protocol):
    """A compiled pattern."""

    def finditer(self, text: bytes) -> Iterator[Match]: ...
    def search(self, text: bytes) -> Match | None: ...


class PythonPattern:
    """A pattern in RE2's syntax that Python's `re` matches: piece by piece, unless it `is_linear` in the text."""

    def __init__(self, pattern: str, *, is_linear: bool = False) -> None:
        self._compiled = re.compile(_in_python_syntax(pattern).encode())
        # A prefix that may be empty decides only the start of a match, but costs `re` 50 steps at each byte.
        core = pattern.removeprefix(NAME_PREFIX)
        self._core = self._compiled if core == pattern else re.compile(_in_python_syntax(f"(?i){core}").encode())
        self._is_linear = is_linear

    def finditer(self, text: bytes) -> Iterator[Match]:
        """Yield the matches that do not overlap, from left to right."""
        begin, is_last = 0, False
        while not is_last:
            end = len(text) if self._is_linear else begin + PIECE
            is_last = end >= len(text)
            done = end - OVERLAP
            is_there = self._core is self._compiled or self._core.search(text, begin, end)
            for match in self._compiled.finditer(text, begin, end) if is_there else ():
                # A match that reaches the end of a piece may go on: the next piece finds all of it.
                if match.end() < end or is_last:
                    yield match
                    done = max(done, match.end())
            begin = done

    def search(self, text: bytes) -> Match | None:
        """Return the first match."""
        return next(self.finditer(text), None)


@cache
def compile_pattern(pattern: str, *, is_linear: bool = False) -> Pattern:
    """Compile a pattern for bytes that is in RE2's syntax; with `is_linear`, `re` needs no bounded pieces for it."""
    if re2 is None:
        return PythonPattern(pattern, is_linear=is_linear)
    compiled: Pattern = re2.compile(pattern.encode(), _options())
    return compiled


def find_words(words: Sequence[str]) -> Callable[[bytes], Iterable[int]]:
    """Return a function that gives the indexes of the words in a text."""
    encoded = [word.encode() for word in words]

    def search(text: bytes) -> list[int]:
        return [number for number, word in enumerate(encoded) if word in text]

    if re2 is None:
        return search
    found = re2.Set.SearchSet(_options())
    for word in ["", *words]:
        found.Add(re.escape(word))
    found.Compile()

    def match(text: bytes) -> list[int]:
        # The empty word is everywhere: without it the automaton is out of memory and has given up.
        numbers: list[int] = found.Match(text)
        return [number - 1 for number in numbers if number] if 0 in numbers else search(text)

    return match


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    return options


def _in_python_syntax(pattern: str) -> str:
    parts: list[str] = []
    # The flags that hold for the rest of each open group: RE2 keeps them across `|`, and so each branch gets them.
    flags: list[str] = [""]
    for piece in _PARTS.findall(pattern):
        closed = ")" * flags[-1].count(":")
        if piece.startswith("(?") and piece.endswith(")"):
            flags[-1] += f"{piece[:-1]}:"
            parts.append(f"{piece[:-1]}:")
        elif piece == "(":
            flags.append("")
            parts.append(piece)
        elif piece == ")":
            flags.pop()
            parts.append(closed + piece)
        elif piece == "|":
            parts.append(f"{closed}|{flags[-1]}")
        elif piece in ("$", r"\z"):
            parts.append(r"\Z")
        elif piece.startswith("["):
            inside = piece[1:].replace("[:alnum:]", "a-zA-Z0-9")
            parts.append("[" + re.sub(r"\\.|\[", lambda found: found[0].rjust(2, "\\"), inside))
        else:
            parts.append(piece)
    return "".join(parts) + ")" * flags[0].count(":")
