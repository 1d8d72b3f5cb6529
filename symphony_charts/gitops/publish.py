"""Publish a chart: choose its version, write its folder and move the pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import semver

from symphony_charts.chart.archive import FIRST_VERSION, check_version, compare_values, next_version
from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.chart.release import merge
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.formats.data import Values
from symphony_charts.formats.yaml_read import load
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.base import (
    Change,
    PointerOperation,
    deploy_edits,
    expect_version,
    pointer_or_none,
)
from symphony_charts.gitops.pointer import Deployed, Given, Pointer, deployed_fields, environment_values, move_between
from symphony_charts.gitops.published import run_of
from symphony_charts.gitops.snapshot import Entry, Snapshot, entries_id, file_entry, top_entries
from symphony_charts.settings.project import Destination

# The only file of a chart that contains its version.
_VERSIONED = "Chart.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The chart under its version; `is_new`: the repository lacks it; `change` is its difference from `last`."""

    chart: Chart
    is_new: bool
    last: str | None = None
    change: str = ""


def version_key(version: str) -> tuple[bool, semver.Version]:
    """Return a key that sorts versions by precedence; invalid versions come first."""
    is_valid = semver.Version.is_valid(version)
    return is_valid, semver.Version.parse(version) if is_valid else semver.Version(0)


def newest(versions: Iterable[str]) -> str | None:
    """Return the highest of `versions`, None if there are none."""
    return max(filter(semver.Version.is_valid, versions), key=version_key, default=None)


def decide_version(
    chart: Chart, published: Mapping[str, Entry], wanted: str | None, last_values: Values | None
) -> Decision:
    """Return the version of `chart` among the `published` ones, whose entries hold the ids of their trees.

    Published content keeps its version; other content gets the next one by its difference from `last_values`, the
    values of the newest version. Raises Conflict if `wanted` exists with other content.
    """
    last = newest(published)
    algorithm = "sha256" if any(len(entry.oid) == 64 for entry in published.values()) else "sha1"
    parts = top_entries(chart.files, algorithm)
    if wanted is not None:
        check_version(wanted)
        same = chart.with_version(wanted)
        if wanted not in published:
            return Decision(chart=same, is_new=True, last=last)
        if not _is_at(chart, wanted, published[wanted].oid, parts, algorithm):
            raise Conflict(
                f"{chart.name} {wanted} is published already, with other content",
                f"{published[wanted].oid[:12]} in the repository",
                "leave --version out for the next one, or choose another: a published version never changes",
            )
        return Decision(chart=same, is_new=False, last=last)
    for version in sorted(published, key=version_key, reverse=True):
        if semver.Version.is_valid(version) and _is_at(chart, version, published[version].oid, parts, algorithm):
            return Decision(chart=chart.with_version(version), is_new=False, last=last)
    if last is None:
        return Decision(chart=chart.with_version(FIRST_VERSION), is_new=True)
    change = compare_values(last_values or {}, chart.values)
    return Decision(
        chart=chart.with_version(next_version(last, change)), is_new=True, last=last, change=change.describe()
    )


def _is_at(chart: Chart, version: str, oid: str, parts: Mapping[str, Entry], algorithm: str) -> bool:
    """Return True if the tree `oid` holds `chart` under `version`; `parts` are the entries of its other files."""
    own = file_entry(chart.with_version(version).files[_VERSIONED], algorithm)
    return entries_id({**parts, _VERSIONED: own}, algorithm) == oid


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish(PointerOperation):
    """Put a chart into the repository and let `env` run it; without `env` no pointer moves.

    The environment's values are, in increasing precedence: `settings`, its own values, `given`, `sealed_values`.
    `chart_name` is the chart's name (default: `name`); many releases may share a chart. `check` gets the final values
    and raises to refuse them. With `version` None the repository decides; `secret_file` is the encrypted Secret for
    Flux. Equal content is never published twice, so the operation is idempotent.
    """

    env: str = ""
    chart_name: str = ""
    chart_files: dict[str, bytes]
    values: Values
    digest: str
    version: str | None = None
    given: Given = field(default_factory=Given)
    sealed_values: Values = field(default_factory=dict)
    secret_file: bytes | None = None
    source: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Values], None] = lambda _values: None

    def files(self, tip: Snapshot) -> Iterable[str]:
        """Yield the pointer, and what is read of the newest version, which usually is the running one."""
        last = newest(tip.folder(self.charts))
        if last is not None and self.env:
            yield from tip.paths_below([f"{self.charts}/{last}"])
        elif last is not None and self.version is None:
            yield f"{self.charts}/{last}/values.yaml"
        if self.env:
            # `super()` needs its arguments in a dataclass with slots.
            yield from super(Publish, self).files(tip)
            if self.secret_file is not None:
                yield self._secret_path

    def change(self, tip: Snapshot) -> Change:
        """Return the chart's folder unless it exists, and the pointer unless it is up to date."""
        decision = self._decide(tip)
        chart = decision.chart
        edits: dict[str, bytes | None] = {}
        if decision.is_new:
            edits = {f"{self.charts}/{chart.version}/{path}": content for path, content in chart.files.items()}
        before, after = self._pointers(tip, chart.version)
        if after is not None:
            self.check(after.values)
        edits |= deploy_edits(tip, before, after) | self._secret_edits(tip)
        environment = f" -> {self.env}" if self.env else ""
        facts = {"moves": None, "warnings": [], **self.facts(tip, before, after), "version": chart.version}
        facts |= {"digest": self.digest, "isNew": decision.is_new, "last": decision.last, "change": decision.change}
        facts |= {"wasBy": before.by or None if before else None, "run": self._run(tip, before, after)}
        return Change(
            subject=f"publish {self.title} {chart.version}{environment}",
            edits=edits,
            trailers=self._trailers(chart.version, before),
            facts=facts,
        )

    @property
    def charts(self) -> str:
        """The folder of the chart's versions."""
        return snapshot.versions_path(self.team, self.chart_name or self.name)

    @property
    def _secret_path(self) -> str:
        return snapshot.flux_secret_path(self.env, self.team, self.name)

    def _decide(self, tip: Snapshot) -> Decision:
        published = tip.folder(self.charts)
        name = self.chart_name or self.name
        chart = Chart(name=name, version=self.version or "0.1.0", values=self.values, files=self.chart_files)
        last = newest(published)
        values = _values(tip, f"{self.charts}/{last}") if last and self.version is None else None
        return decide_version(chart, published, self.version, values)

    def _pointers(self, tip: Snapshot, version: str) -> tuple[Pointer | None, Pointer | None]:
        """Return the current and the new pointer; None for a missing one."""
        if not self.env:
            return None, None
        before = pointer_or_none(tip, self.env, self.team, self.name)
        expect_version(self.expect, before, self.env, self.name)
        values, settings = (before.values, before.settings) if before else ({}, {})
        values = environment_values(values, settings, self.settings, self.given)
        now = Deployed(
            version=version,
            digest=self.digest,
            values=merge(values, self.sealed_values),
            settings=settings if self.settings is None else self.settings,
            at=self.at,
            by=self.by,
        )
        return before, before.moved(now, self.destination, self.source) if before else self._first_pointer(now)

    def _run(self, tip: Snapshot, before: Pointer | None, after: Pointer | None) -> str | None:
        """Return ``new`` if a new run starts, ``same`` if the old one continues, None if unknown."""
        if before is None or after is None:
            return None
        if move_between(before.destination, after.destination):
            return "new"
        release = Release(name=self.name, namespace=after.destination.namespace)
        try:
            old = self.chart_files if before.chart == after.chart else tip.below(before.chart)
        except Conflict:
            return None  # edited by hand since, so its run is unknown
        now = run_of(self.chart_files, after.chart, after.values, release)
        was = run_of(old, before.chart, before.values, release)
        return None if None in (was, now) else "same" if was == now else "new"

    def _first_pointer(self, now: Deployed) -> Pointer:
        return Pointer(
            name=self.name,
            team=self.team,
            env=self.env,
            chart=f"{self.charts}/{now.version}",
            destination=self.destination or Destination(),
            source=dict(self.source),
            **deployed_fields(now),
        )

    def _secret_edits(self, tip: Snapshot) -> dict[str, bytes | None]:
        if not self.env or self.secret_file is None or tip.read(self._secret_path) == self.secret_file:
            return {}
        return {self._secret_path: self.secret_file}

    def _trailers(self, version: str, before: Pointer | None) -> tuple[tuple[str, str], ...]:
        chart = f"{self.team}/{self.chart_name or self.name}@{version}"
        trailers = [("Symph-Op", "publish"), ("Symph-Chart", chart)]
        trailers.append(("Symph-Digest", self.digest))
        if self.env:
            trailers += [("Symph-From", before.version)] if before else []
            trailers.append(("Symph-To", self.env))
        return (*trailers, *((f"Symph-{key.capitalize()}", value) for key, value in self.source.items()))


def _values(tip: Snapshot, chart: str) -> Values | None:
    """Return the default values of a published chart; None if it has no readable ones."""
    content = tip.read(f"{chart}/values.yaml")
    try:
        values = load(content.decode()) if content is not None else None
    except (SpecError, UnicodeDecodeError):
        return None  # edited by hand since, so its values are unknown
    return values if isinstance(values, dict) else None
