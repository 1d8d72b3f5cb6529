"""Gitleaks' rules for secrets.

Rules have gitleaks' semantics (detect/detect.go): the text must contain a keyword, the pattern gives the secret, its
Shannon entropy must be above a bound, and exceptions check secret, match, line or path. The rule files hold patterns in
Python's syntax (`python -m scripts.leak_rules`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import msgspec

from symphony_charts.system.package_data import table
from symphony_charts.system.records import decode_json

NAME_PREFIX = r"(?i:[\w.-]{0,50}?"
"""The start of a pattern that begins with the name of the assigned value."""
PIECE = 16 << 10
"""Bytes that one search sees: `re` backtracks, and its time may grow with the square of the length."""
OVERLAP = 4 << 10
"""Bytes of a piece that the next piece repeats: a private RSA key of 4096 bits has 3.2 KiB."""


def find_matches(pattern: str, text: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the matches in `text` from left to right, without overlaps.

    A match that is longer than `OVERLAP` and crosses the end of a piece is missed.
    """
    compiled = _compiled(pattern)
    # A prefix that may be empty decides only the start of a match, but costs `re` 50 steps at each byte.
    core = _compiled(f"(?i:{pattern.removeprefix(NAME_PREFIX)}") if pattern.startswith(NAME_PREFIX) else None
    begin, is_last = 0, False
    while not is_last:
        end = begin + PIECE
        is_last = end >= len(text)
        done = end - OVERLAP
        for match in compiled.finditer(text, begin, end) if core is None or core.search(text, begin, end) else ():
            # A match that reaches the end of a piece may be longer: the next piece finds all of it.
            if match.end() < end or is_last:
                yield match
                done = max(done, match.end())
        begin = done


def _has_match(pattern: str, text: bytes) -> bool:
    return any(True for _ in find_matches(pattern, text))


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


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
            any(_has_match(pattern, text) for pattern in patterns)
            for patterns, text in ((self.regexes, target), (self.paths, _bytes(path)))
            if patterns
        ]
        if self.stopwords:
            secret = found.secret.lower()
            answers.append(any(word.lower().encode() in secret for word in self.stopwords))
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
        if not rule.regex or (rule.path and not _has_match(rule.path, _bytes(path))):
            continue
        for match in find_matches(rule.regex, text):
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
        if _has_match(rule.path, _bytes(path)):
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
    files = [decode_json(table(f"secrets/{name}"), _RuleFile) for name in _FILES]
    return _RuleFile(
        rules=[rule for file in files for rule in file.rules], allow=[each for file in files for each in file.allow]
    )


@cache
def _rules_of_paths() -> tuple[_Rule, ...]:
    return tuple(rule for rule in _load().rules if rule.path and not rule.regex)


def _candidates(text: bytes) -> list[_Rule]:
    lower = text.lower()
    numbers = {number for keyword, numbers in _keywords().items() if keyword in lower for number in numbers}
    return [_load().rules[number] for number in sorted(numbers)]


@cache
def _keywords() -> dict[bytes, list[int]]:
    numbers: dict[bytes, list[int]] = {}
    for number, rule in enumerate(_load().rules):
        for keyword in rule.keywords or [""]:
            numbers.setdefault(keyword.encode(), []).append(number)
    return numbers


def _secret_of(rule: _Rule, match: re.Match[bytes]) -> bytes:
    """Return the group that the rule names, or the first non-empty one, or the whole match."""
    groups = match.groups()
    if not groups:
        return match[0].strip(b"\n")
    if rule.secret_group:
        return groups[rule.secret_group - 1] or b""
    return next(filter(None, groups), match[0])


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
