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
    deploy_edits,
    deploy_files,
    deploy_folders,
    deploy_warnings,
    expect_version,
    new_beside,
    pointer_or_none,
)
from symphony_charts.gitops.pointer import Deployed, Given, Pointer, deployed_fields, environment_values, move_of
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
                f"{chart.name} {wanted} is already published with other content",
                f"{published[wanted].oid[:12]} in the repository",
                "remove --version to get the next one, or choose another: a published version never changes",
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
class Publish:
    """Put a chart into the repository and let `env` run it; without `env` no pointer moves.

    The environment's values are, in increasing precedence: `settings`, its own values, `given`, `sealed_values`.
    `release` is the release name (default: the chart's name); many releases may share a chart. `check` gets the final
    values and raises to refuse them. With `version` None the repository decides; `secret_file` is the encrypted Secret
    for Flux; `expect` is the version that must run now. Equal content is never published twice, so the operation is
    idempotent.
    """

    team: str
    name: str
    chart_files: dict[str, bytes]
    values: Values
    digest: str
    env: str | None = None
    version: str | None = None
    release: str = ""
    settings: Values | None = None
    given: Given = field(default_factory=Given)
    sealed_values: Values = field(default_factory=dict)
    secret_file: bytes | None = None
    destination: Destination | None = None
    expect: str | None = None
    source: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
    by: str = ""
    check: Callable[[Values], None] = lambda _values: None

    def folders(self) -> Iterable[str]:
        yield snapshot.versions_path(self.team, self.name)
        if self.env is not None:
            yield from deploy_folders(self.env, self.team)

    def files(self, tip: Snapshot) -> Iterable[str]:
        """Yield the pointer, and what is read of the newest version, which usually is the running one."""
        last = newest(tip.folder(snapshot.versions_path(self.team, self.name)))
        if last is not None and self.env is not None:
            yield from tip.paths_below([snapshot.chart_path(self.team, self.name, last)])
        elif last is not None and self.version is None:
            yield f"{snapshot.chart_path(self.team, self.name, last)}/values.yaml"
        if self.env is not None:
            yield from deploy_files(self.env, self.team, self._release)
            if self.secret_file is not None:
                yield snapshot.flux_secret_path(self.env, self.team, self._release)

    def change(self, tip: Snapshot) -> Change:
        """Return the chart's folder unless it exists, and the pointer unless it is up to date."""
        decision = self._decide(tip)
        chart = decision.chart
        edits: dict[str, bytes | None] = {}
        if decision.is_new:
            folder = snapshot.chart_path(self.team, self.name, chart.version)
            edits = {f"{folder}/{path}": content for path, content in chart.files.items()}
        before, after = self._pointers(tip, chart.version)
        if after is not None:
            self.check(after.values)
        edits |= deploy_edits(tip, before, after) | self._secret_edits(tip)
        environment = f" -> {self.env}" if self.env else ""
        facts: dict[str, object] = {"name": self._release, "team": self.team, "version": chart.version}
        facts |= {"env": self.env, "digest": self.digest, "isNew": decision.is_new, "last": decision.last}
        facts |= {"change": decision.change, "was": before.version if before else None}
        facts |= {"wasBy": before.by or None if before else None, "moves": move_of(before, after)}
        facts |= {"run": self._run(tip, before, after), "warnings": deploy_warnings(tip, before, after)}
        facts |= {"newBeside": new_beside(tip, self.env)}
        return Change(
            subject=f"publish {self.team}/{self._release} {chart.version}{environment}",
            edits=edits,
            trailers=self._trailers(chart.version, before),
            facts=facts,
        )

    @property
    def _release(self) -> str:
        return self.release or self.name

    def _decide(self, tip: Snapshot) -> Decision:
        published = tip.folder(snapshot.versions_path(self.team, self.name))
        chart = Chart(name=self.name, version=self.version or "0.1.0", values=self.values, files=self.chart_files)
        last = newest(published)
        is_asked = self.version is None and last is not None
        values = _values(tip, snapshot.chart_path(self.team, self.name, last or "")) if is_asked else None
        return decide_version(chart, published, self.version, values)

    def _pointers(self, tip: Snapshot, version: str) -> tuple[Pointer | None, Pointer | None]:
        """Return the current and the new pointer; None for a missing one."""
        if self.env is None:
            return None, None
        before = pointer_or_none(tip, self.env, self.team, self._release)
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
        if move_of(before, after):
            return "new"
        release = Release(name=self._release, namespace=after.destination.namespace)
        try:
            old = self.chart_files if before.chart == after.chart else tip.below(before.chart)
        except Conflict:
            return None  # edited by hand since, so its run is unknown
        runs = [
            run_of(old, before.chart, before.values, release),
            run_of(self.chart_files, after.chart, after.values, release),
        ]
        return None if None in runs else "same" if runs[0] == runs[1] else "new"

    def _first_pointer(self, now: Deployed) -> Pointer:
        return Pointer(
            name=self._release,
            team=self.team,
            env=self.env or "",
            chart=snapshot.chart_path(self.team, self.name, now.version),
            destination=self.destination or Destination(),
            source=dict(self.source),
            **deployed_fields(now),
        )

    def _secret_edits(self, tip: Snapshot) -> dict[str, bytes | None]:
        if self.env is None or self.secret_file is None:
            return {}
        path = snapshot.flux_secret_path(self.env, self.team, self._release)
        return {} if tip.read(path) == self.secret_file else {path: self.secret_file}

    def _trailers(self, version: str, before: Pointer | None) -> tuple[tuple[str, str], ...]:
        trailers = [("Symph-Op", "publish"), ("Symph-Chart", f"{self.team}/{self.name}@{version}")]
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
