"""A model of a repository of charts: its content after each command, in a few lines for each.

Values are flat here (``groups.nap.replicas``), a chart is the id of its tree, and a place is a cluster and a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Key: TypeAlias = tuple[str, str]
Place: TypeAlias = tuple[str, str]
Values: TypeAlias = dict[str, object]

_MAX_HISTORY = 10


class RefusedError(Exception):
    """The command ends with `status`, and nothing changes."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A deployed version with its values, and the part of them that came from the settings of that time."""

    version: str
    values: Values
    settings: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The place of an experiment, its current deployment and the previous ones, newest first."""

    now: Deployed
    place: Place
    history: tuple[Deployed, ...] = ()

    def moved(self, after: Deployed, place: Place | None = None) -> Runs:
        """Return the same experiment with another version or other values, or in another place."""
        is_same = (after.version, after.values) == (self.now.version, self.now.values)
        history = self.history if is_same else (self.now, *self.history)[:_MAX_HISTORY]
        return Runs(now=after, place=place or self.place, history=history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Charts by team and name, then version; running experiments by environment, then team and name; retired ones."""

    charts: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
    runs: Mapping[str, Mapping[Key, Runs]] = field(default_factory=dict)
    retired: Mapping[tuple[str, Key], Runs] = field(default_factory=dict)

    def add_chart(self, key: Key, version: str, oid: str) -> Tree:
        """Return the tree with one more version, or other content of an existing one."""
        return replace(self, charts={**self.charts, key: {**self.charts.get(key, {}), version: oid}})

    def run(self, env: str, key: Key, what: Runs | None) -> Tree:
        """Return the tree with `what` in an environment; a run removed without replacement can be brought back."""
        if what is None and key in self.runs.get(env, {}):
            gone = {**self.retired, (env, key): self.runs[env][key]}
            return replace(self, retired=gone)._placed(env, key, None)
        return self._placed(env, key, what)

    def _placed(self, env: str, key: Key, what: Runs | None) -> Tree:
        rest = {other: runs for other, runs in self.runs.get(env, {}).items() if other != key}
        return replace(self, runs={**self.runs, env: {**rest, key: what} if what else rest})

    def running(self, env: str, key: Key) -> Runs:
        """Return the run in an environment. Raises RefusedError if there is none."""
        if key not in self.runs.get(env, {}):
            raise RefusedError(8)
        return self.runs[env][key]

    def promoted(self, key: Key, before: str, after: str, settings: Values, place: Place, *, copies: bool) -> Tree:
        """Return the tree in which `after` runs the version of `before`; `copies` also takes its own values."""
        source = self.running(before, key)
        target = self.runs.get(after, {}).get(key)
        values = source.now.values if copies else merged(target.now if target else None, settings, {})
        now = Deployed(version=source.now.version, values=values, settings=settings)
        return self.run(after, key, target.moved(now, place) if target else Runs(now=now, place=place))

    def rolled_back(self, env: str, key: Key) -> Tree:
        """Return the tree with the previous deployment at the current place, or the retired one at its former place."""
        if key not in self.runs.get(env, {}) and (env, key) in self.retired:
            gone = self.retired[env, key]
            if gone.now.version not in self.charts.get(key, {}):
                raise RefusedError(8)
            return self.run(env, key, gone)
        runs = self.running(env, key)
        if not runs.history or runs.history[0].version not in self.charts.get(key, {}):
            raise RefusedError(8)
        return self.run(env, key, runs.moved(runs.history[0]))

    def tidied(self, keep: int) -> Tree:
        """Return the tree without versions that are old, not running, and not needed for a rollback."""
        charts = {}
        for key, versions in self.charts.items():
            runs = [each[key] for each in self.runs.values() if key in each]
            needed = {entry.version for each in runs for entry in (each.now, *each.history)}
            newest = sorted(versions, key=_numbers)[-keep:]
            charts[key] = {version: oid for version, oid in versions.items() if version in {*newest, *needed}}
        return replace(self, charts=charts)

    def version_for(self, key: Key, label: str, labels: Mapping[str, str], wanted: str | None) -> str:
        """Return the version of published content: the existing or the next one; `labels` maps trees to content."""
        versions = self.charts.get(key, {})
        if wanted:
            if wanted in versions and labels.get(versions[wanted]) != label:
                raise RefusedError(7)
            return wanted
        same = [version for version, oid in versions.items() if labels.get(oid) == label]
        if same:
            return max(same, key=_numbers)
        if not versions:
            return "0.1.0"
        major, minor, patch = _numbers(max(versions, key=_numbers))
        return f"{major}.{minor}.{patch + 1}"


def merged(before: Deployed | None, settings: Values, given: Mapping[str, object]) -> Values:
    """Return the settings, overlaid by the environment's own values, then by `given`; None removes an own value."""
    own = {} if before is None else {k: v for k, v in before.values.items() if before.settings.get(k) != v}
    dropped = set() if before is None else before.settings.keys() - before.values.keys()
    kept = {k: v for k, v in settings.items() if k not in dropped or k in given}
    values = kept | {k: v for k, v in own.items() if k not in given}
    return values | {k: v for k, v in given.items() if v is not None}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
