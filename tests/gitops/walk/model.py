"""The model says what a repository of charts holds after each command, in a few lines for each.

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
    """What ran: a version with values, and the part of them that the settings said then."""

    version: str
    values: Values
    settings: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What runs: where, and what ran before it, the newest first."""

    now: Deployed
    place: Place
    history: tuple[Deployed, ...] = ()

    def moved(self, after: Deployed, place: Place | None = None) -> Runs:
        """The same experiment with another version or other values, or elsewhere."""
        is_same = (after.version, after.values) == (self.now.version, self.now.values)
        history = self.history if is_same else (self.now, *self.history)[:_MAX_HISTORY]
        return Runs(now=after, place=place or self.place, history=history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Charts by team and name, then version; what runs by environment, then team and name, and what was retired."""

    charts: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
    runs: Mapping[str, Mapping[Key, Runs]] = field(default_factory=dict)
    retired: Mapping[tuple[str, Key], Runs] = field(default_factory=dict)

    def add_chart(self, key: Key, version: str, oid: str) -> Tree:
        """With one more version, or other content of one that is there."""
        return replace(self, charts={**self.charts, key: {**self.charts.get(key, {}), version: oid}})

    def run(self, env: str, key: Key, what: Runs | None) -> Tree:
        """With `what` in an environment; what nothing takes the place of can be brought back."""
        if what is None and key in self.runs.get(env, {}):
            gone = {**self.retired, (env, key): self.runs[env][key]}
            return replace(self, retired=gone)._placed(env, key, None)
        return self._placed(env, key, what)

    def _placed(self, env: str, key: Key, what: Runs | None) -> Tree:
        rest = {other: runs for other, runs in self.runs.get(env, {}).items() if other != key}
        return replace(self, runs={**self.runs, env: {**rest, key: what} if what else rest})

    def running(self, env: str, key: Key) -> Runs:
        """What runs in an environment. Raises RefusedError where nothing does."""
        if key not in self.runs.get(env, {}):
            raise RefusedError(8)
        return self.runs[env][key]

    def promoted(self, key: Key, before: str, after: str, settings: Values, place: Place, *, copies: bool) -> Tree:
        """`after` runs the version of `before`; its own values stay, or are those of `before`."""
        source = self.running(before, key)
        target = self.runs.get(after, {}).get(key)
        values = source.now.values if copies else merged(target.now if target else None, settings, {})
        now = Deployed(version=source.now.version, values=values, settings=settings)
        return self.run(after, key, target.moved(now, place) if target else Runs(now=now, place=place))

    def rolled_back(self, env: str, key: Key) -> Tree:
        """What ran before runs again, where the experiment runs now, or what was retired, where it ran."""
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
        """Without the versions that are not among the newest, and that nothing runs or can be rolled back to."""
        charts = {}
        for key, versions in self.charts.items():
            runs = [each[key] for each in self.runs.values() if key in each]
            needed = {entry.version for each in runs for entry in (each.now, *each.history)}
            newest = sorted(versions, key=_numbers)[-keep:]
            charts[key] = {version: oid for version, oid in versions.items() if version in {*newest, *needed}}
        return replace(self, charts=charts)

    def version_for(self, key: Key, label: str, labels: Mapping[str, str], wanted: str | None) -> str:
        """The version that content is published as: its own, or the next; `labels` say what a tree's content is."""
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
    """The settings, over them what the environment has of its own, over that what is given; None takes its own away."""
    own = {} if before is None else {k: v for k, v in before.values.items() if before.settings.get(k) != v}
    dropped = set() if before is None else before.settings.keys() - before.values.keys()
    kept = {k: v for k, v in settings.items() if k not in dropped or k in given}
    values = kept | {k: v for k, v in own.items() if k not in given}
    return values | {k: v for k, v in given.items() if v is not None}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
