"""Gitleaks' rules for secrets, and its regular expressions in Python.

Rules have gitleaks' semantics (detect/detect.go): the text must contain a keyword, the pattern gives the secret, its
Shannon entropy must be above a bound, and exceptions check secret, match, line or path. Patterns use RE2's syntax
(`patterns.py`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import msgspec

from symphony_charts.system.package_data import table

# RE2 takes time linear in the text. `re` backtracks, so its fallback searches pieces of bounded length. The two differ
# in one case: `re` misses a match that is longer than `OVERLAP` and crosses the end of a piece.

try:
    import re2
except ImportError:
    re2 = None


NAME_PREFIX = r"(?i)[\w.-]{0,50}?"
"""The start of a pattern that begins with the name of the assigned value."""
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
    """A pattern in RE2's syntax for Python's `re`; searches piece by piece, unless it `is_linear` in the text."""

    def __init__(self, pattern: str, *, is_linear: bool = False) -> None:
        self._compiled = re.compile(_in_python_syntax(pattern).encode())
        # A prefix that may be empty decides only the start of a match, but costs `re` 50 steps at each byte.
        core = pattern.removeprefix(NAME_PREFIX)
        self._core = self._compiled if core == pattern else re.compile(_in_python_syntax(f"(?i){core}").encode())
        self._is_linear = is_linear

    def finditer(self, text: bytes) -> Iterator[Match]:
        """Yield the matches from left to right, without overlaps."""
        begin, is_last = 0, False
        while not is_last:
            end = len(text) if self._is_linear else begin + PIECE
            is_last = end >= len(text)
            done = end - OVERLAP
            is_there = self._core is self._compiled or self._core.search(text, begin, end)
            for match in self._compiled.finditer(text, begin, end) if is_there else ():
                # A match that reaches the end of a piece may be longer: the next piece finds all of it.
                if match.end() < end or is_last:
                    yield match
                    done = max(done, match.end())
            begin = done

    def search(self, text: bytes) -> Match | None:
        return next(self.finditer(text), None)


@cache
def compile_pattern(pattern: str, *, is_linear: bool = False) -> Pattern:
    """Compile a pattern in RE2's syntax for bytes; with `is_linear`, `re` needs no bounded pieces for it."""
    if re2 is None:
        return PythonPattern(pattern, is_linear=is_linear)
    compiled: Pattern = re2.compile(pattern.encode(), _options())
    return compiled


def find_words(words: Sequence[str]) -> Callable[[bytes], Iterable[int]]:
    """Return a function that returns the indexes of the words in a text."""
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
        # The empty word matches everywhere; if it is missing, the automaton ran out of memory and gave up.
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
    # The flags for the rest of each open group: RE2 keeps them across `|`, so each branch gets them.
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


_FILES = ("rules.json", "own_rules.json")
_LONGEST_LINE = 2000
# Slow on purpose: fingerprints appear in files and logs, and must not help to guess a weak password.
_FINGERPRINT_ROUNDS = 100_000


class _Exception(msgspec.Struct, frozen=True, rename={"regex_target": "regexTarget"}):
    """An exception to findings: any of its conditions, or all of them if `condition` is `AND`."""

    regexes: list[str] = []
    stopwords: list[str] = []
    paths: list[str] = []
    regex_target: str = "secret"
    condition: str = "OR"

    def holds(self, found: Found, match: bytes, line: bytes, path: str) -> bool:
        target = {"match": match, "line": line}.get(self.regex_target, found.secret)
        answers = [
            any(compile_pattern(pattern).search(text) for pattern in patterns)
            for patterns, text in ((self.regexes, target), (self.paths, _bytes(path)))
            if patterns
        ]
        if self.stopwords:
            answers.append(_words(tuple(self.stopwords)).search(found.secret.lower()) is not None)
        return all(answers) if self.condition == "AND" else any(answers)


class _Rule(msgspec.Struct, frozen=True, rename={"secret_group": "secretGroup"}):
    id: str
    regex: str = ""
    path: str = ""
    keywords: list[str] = []
    entropy: float = 0.0
    secret_group: int = 0
    allow: list[_Exception] = []

    @property
    def needs_context(self) -> bool:
        """True if the pattern begins with the name of the assigned value, and restricts the value little."""
        return self.regex.startswith(NAME_PREFIX)


class _RuleFile(msgspec.Struct, frozen=True):
    rules: list[_Rule]
    allow: list[_Exception] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A secret in a text: its rule, the secret itself, and the start of the match."""

    rule: str
    secret: bytes
    start: int = field(compare=False)


def search(text: bytes, path: str) -> Iterator[Found]:
    """Yield the secrets in the text of the file at `path`, each once, by its most specific rule."""
    seen: set[bytes] = set()
    for rule in sorted(_candidates(text), key=lambda rule: rule.needs_context):
        if rule.path and not compile_pattern(rule.path).search(_bytes(path)):
            continue
        if not rule.regex:
            continue
        for match in compile_pattern(rule.regex).finditer(text):
            whole = match[0]
            found = Found(rule=rule.id, secret=_secret_of(rule, match), start=match.start())
            if found.secret in seen or (rule.entropy and entropy(found.secret) <= rule.entropy):
                continue
            line = _line_round(text, found.start, found.start + len(whole))
            if not any(each.holds(found, whole, line, path) for each in (*_load().allow, *rule.allow)):
                seen.add(found.secret)
                yield found


def search_path(path: str) -> Iterator[Found]:
    """Yield findings by the name of a file alone, such as a key store."""
    for rule in _rules_of_paths():
        if compile_pattern(rule.path).search(_bytes(path)):
            yield Found(rule=rule.id, secret=_bytes(path.rpartition("/")[2]), start=0)


@cache
def fingerprint_of(found: Found) -> str:
    """Return the identity of a finding without its place or secret: the rule, and 16 hexadecimal digits."""
    if not found.secret:
        return found.rule
    digest = hashlib.pbkdf2_hmac("sha256", found.secret, found.rule.encode(), _FINGERPRINT_ROUNDS, 8)
    return f"{found.rule}:{digest.hex()}"


@cache
def _load() -> _RuleFile:
    files = [msgspec.json.decode(table(f"secrets/{name}"), type=_RuleFile) for name in _FILES]
    return _RuleFile(
        rules=[rule for file in files for rule in file.rules], allow=[each for file in files for each in file.allow]
    )


@cache
def _rules_of_paths() -> tuple[_Rule, ...]:
    return tuple(rule for rule in _load().rules if rule.path and not rule.regex)


def _candidates(text: bytes) -> list[_Rule]:
    find, rules_of = _keywords()
    numbers = {number for index in find(text.lower()) for number in rules_of[index]}
    return [_load().rules[number] for number in sorted(numbers)]


@cache
def _keywords() -> tuple[Callable[[bytes], Iterable[int]], list[list[int]]]:
    numbers: dict[str, list[int]] = {}
    for number, rule in enumerate(_load().rules):
        for keyword in rule.keywords or [""]:
            numbers.setdefault(keyword, []).append(number)
    return find_words(list(numbers)), list(numbers.values())


@cache
def _words(words: tuple[str, ...]) -> Pattern:
    return compile_pattern("|".join(re.escape(word.lower()) for word in words))


def _secret_of(rule: _Rule, match: Match) -> bytes:
    """Return the group that the rule names, or the first non-empty one, or the whole match."""
    whole = match[0]
    groups = match.groups()
    if not groups:
        return whole.strip(b"\n")
    if rule.secret_group:
        return groups[rule.secret_group - 1] or b""
    return next((group for group in groups if group), whole)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "replace")


def entropy(secret: bytes) -> float:
    """Return Shannon's entropy in bits per character, as gitleaks computes it."""
    characters = Counter(secret.decode("utf-8", "replace"))
    shares = [count / len(secret) for count in characters.values()]
    return -sum(share * math.log2(share) for share in shares)


def _line_round(text: bytes, start: int, end: int) -> bytes:
    first = max(text.rfind(b"\n", max(0, start - _LONGEST_LINE), start) + 1, start - _LONGEST_LINE, 0)
    last = text.find(b"\n", end, end + _LONGEST_LINE)
    return text[first : end + _LONGEST_LINE if last < 0 else last]
