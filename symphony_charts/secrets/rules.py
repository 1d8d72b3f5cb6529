"""The rules of gitleaks, and a few of our own, find tokens and keys by their form.

What a rule means is what gitleaks means by it (detect/detect.go): a keyword must stand in the text, the pattern gives
the secret, its Shannon entropy must be above a bound, and exceptions look at secret, match, line or path. Patterns are
in RE2's syntax (`patterns.py`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import msgspec

from symphony_charts.secrets.patterns import NAME_PREFIX, Match, Pattern, compile_pattern, find_words
from symphony_charts.system.package_data import table

__all__ = ["Found", "entropy", "fingerprint_of", "search", "search_path"]

_FILES = ("rules.json", "own_rules.json")
_LONGEST_LINE = 2000
# Slow on purpose: a fingerprint stands in files and logs, and a weak password must not be guessed from it.
_FINGERPRINT_ROUNDS = 100_000


class _Exception(msgspec.Struct, frozen=True, rename={"regex_target": "regexTarget"}):
    """An exception to findings: any of it, or all of it where `condition` is ``AND``."""

    regexes: list[str] = []
    stopwords: list[str] = []
    paths: list[str] = []
    regex_target: str = "secret"
    condition: str = "OR"

    def holds(self, found: Found, match: bytes, line: bytes, path: str) -> bool:
        """Return True if this finding is excepted."""
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
        """True if the pattern begins with the name that a value is assigned to, and says little of the value."""
        return self.regex.startswith(NAME_PREFIX)


class _RuleFile(msgspec.Struct, frozen=True):
    rules: list[_Rule]
    allow: list[_Exception] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A secret in a text: the rule that says so, the secret itself, and where its match begins."""

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
    """Yield findings by the name of a file alone: a key store, for instance."""
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
    """Return the group that the rule names, or the first that is not empty, or the whole match."""
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
    """Shannon's entropy in bits for each character, as gitleaks counts it."""
    characters = Counter(secret.decode("utf-8", "replace"))
    shares = [count / len(secret) for count in characters.values()]
    return -sum(share * math.log2(share) for share in shares)


def _line_round(text: bytes, start: int, end: int) -> bytes:
    first = max(text.rfind(b"\n", max(0, start - _LONGEST_LINE), start) + 1, start - _LONGEST_LINE, 0)
    last = text.find(b"\n", end, end + _LONGEST_LINE)
    return text[first : end + _LONGEST_LINE if last < 0 else last]
