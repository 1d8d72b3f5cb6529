"""The version of a chart stays for the same content, else it is the next by what changed in its values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values

__all__ = ["FIRST_VERSION", "ValuesChange", "check_version", "compare_values", "next_version"]

FIRST_VERSION = "0.1.0"

# Semantic Versioning 2.0.0, clause 9 to 11.
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesChange:
    """How values differ from those before, as sorted paths."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def level(self) -> Literal["major", "minor", "patch"]:
        """The part of the version that a change raises, by what users of the chart have to expect."""
        if self.removed or self.retyped:
            return "major"
        return "minor" if self.added else "patch"

    def describe(self) -> str:
        """A few words for people: counts, and the paths where they are few."""
        words = [
            f"{len(paths)} {'value' if len(paths) == 1 else 'values'} {verb}"
            for verb in ("removed", "retyped", "added")
            if (paths := getattr(self, verb))
        ]
        if self.changed:
            few = len(self.changed) <= 3
            words.append(", ".join(self.changed) + " changed" if few else f"{len(self.changed)} values changed")
        return ", ".join(words) or "templates changed"


def next_version(last: str, change: ValuesChange) -> str:
    """The version after `last` for content that changed so."""
    match = _SEMVER.fullmatch(last)
    if match is None:
        raise SpecError.one(f'"{last}" is no semantic version', "version")
    major, minor, patch = (int(part) for part in match.groups()[:3])
    if change.level == "major":
        return f"{major + 1}.0.0"
    if change.level == "minor":
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}"


def check_version(version: str) -> str:
    """`version` itself if it is a semantic version that helm takes. Raises SpecError otherwise."""
    if _SEMVER.fullmatch(version) is None or version == "0.0.0":
        raise SpecError.one(f'"{version}" is no semantic version above 0.0.0', "version", "write it like 1.2.3")
    return version


def compare_values(before: Values, after: Values) -> ValuesChange:
    """What `after` adds to, takes from and changes in `before`; the digest of the experiment does not count."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    old.pop("specDigest", None)
    new.pop("specDigest", None)
    both = sorted(set(old) & set(new))
    return ValuesChange(
        added=tuple(sorted(set(new) - set(old))),
        removed=tuple(sorted(set(old) - set(new))),
        retyped=tuple(path for path in both if _type(old[path]) != _type(new[path])),
        changed=tuple(path for path in both if _type(old[path]) == _type(new[path]) and old[path] != new[path]),
    )


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """All that can be set, empty maps as such; a list is one value."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif value != {} or not path:
        yield path, value


def _type(value: object) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
