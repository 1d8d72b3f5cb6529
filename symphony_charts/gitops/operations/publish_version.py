"""The repository decides which version a chart gets when it is published, not the machine it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symphony_charts.chart.files.chart import Chart
from symphony_charts.chart.files.version import FIRST_VERSION, check_version, compare_values, next_version
from symphony_charts.errors import Conflict
from symphony_charts.formats.data import Values
from symphony_charts.gitops.operations.snapshot import Entry
from symphony_charts.gitops.store.git_objects import file_entry, hash_of, top_entries, tree_object

__all__ = ["Decision", "decide_version", "newest", "version_key"]

# The only file of a chart that says its version.
_VERSIONED = "Chart.yaml"
_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([^+]+))?(?:\+.*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The chart under its version; `is_new` says whether the repository lacks it, `change` what differs from `last`."""

    chart: Chart
    is_new: bool
    last: str | None = None
    change: str = ""


def version_key(version: str) -> tuple[object, ...]:
    """Return a key that sorts versions by precedence; names that are no versions come first.

    Source: SemVer 2.0.0, clause 11.
    """
    match = _NUMBERS.fullmatch(version)
    if match is None:
        return (-1,)
    numbers = tuple(int(part) for part in match.groups()[:3])
    if match[4] is None:
        return (*numbers, 1, ())
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in match[4].split("."))
    return (*numbers, 0, parts)


def newest(versions: Iterable[str]) -> str | None:
    """Return the highest of `versions`, None without any."""
    return max((v for v in versions if _NUMBERS.fullmatch(v)), key=version_key, default=None)


def decide_version(
    chart: Chart, published: Mapping[str, Entry], wanted: str | None, last_values: Values | None
) -> Decision:
    """Decide the version of `chart` among the `published` ones, whose entries hold the ids of their trees.

    Content that was published keeps its version; other content gets the next one by what changed from `last_values`,
    those of the newest version. Raises Conflict where `wanted` exists with other content.
    """
    last = newest(published)
    tops: dict[str, dict[str, Entry]] = {}
    if wanted is not None:
        check_version(wanted)
        same = chart.with_version(wanted)
        if wanted not in published:
            return Decision(chart=same, is_new=True, last=last)
        if not _is_at(chart, wanted, published[wanted].oid, tops):
            raise Conflict(
                f"{chart.name} {wanted} is published already, with other content",
                f"{published[wanted].oid[:12]} in the repository",
                "leave --version out for the next one, or choose another: a published version never changes",
            )
        return Decision(chart=same, is_new=False, last=last)
    for version in sorted(published, key=version_key, reverse=True):
        if _NUMBERS.fullmatch(version) and _is_at(chart, version, published[version].oid, tops):
            return Decision(chart=chart.with_version(version), is_new=False, last=last)
    if last is None:
        return Decision(chart=chart.with_version(FIRST_VERSION), is_new=True)
    change = compare_values(last_values or {}, chart.values)
    return Decision(
        chart=chart.with_version(next_version(last, change)), is_new=True, last=last, change=change.describe()
    )


def _is_at(chart: Chart, version: str, oid: str, tops: dict[str, dict[str, Entry]]) -> bool:
    """Return True if the tree `oid` holds `chart` under `version`; `tops` keeps, by hash, what no version changes."""
    hash_name = hash_of(oid)
    if hash_name not in tops:
        tops[hash_name] = top_entries(chart.files, hash_name)
    own = file_entry(chart.with_version(version).files[_VERSIONED], hash_name)
    return tree_object({**tops[hash_name], _VERSIONED: own}, hash_name).oid == oid
