"""The operations on a repository: publish, promote, roll back, retire, and remove unused chart versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import semver

from symphony_charts.chart.archive import FIRST_VERSION, check_version, compare_values, next_version
from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.chart.release import merge
from symphony_charts.errors import Conflict, NotFound, Problem, SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.base import (
    Change,
    PointerOperation,
    deploy_edits,
    expect_version,
    pointer_or_none,
    read_pointer,
)
from symphony_charts.gitops.pointer import (
    Given,
    Pointer,
    move_between,
    parse_pointer,
    published_digest,
)
from symphony_charts.gitops.published import experiment_of, run_of, unsealed_secrets, values_problems
from symphony_charts.gitops.snapshot import Entry, Snapshot, entries_id, file_entry, top_entries

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
            what = f"{chart.name} {wanted} is already published with other content"
            step = "remove --version to get the next one, or choose another: a published version never changes"
            raise Conflict(what, f"{published[wanted].oid[:12]} in the repository", step)
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
        edits |= deploy_edits(tip, before, after)
        if self.env and self.secret_file is not None and tip.read(self._secret_path) != self.secret_file:
            edits[self._secret_path] = self.secret_file
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
        values = merge(self.values_after(before, self.given), self.sealed_values)
        return before, self.pointer_after(
            before, "publish", f"{self.charts}/{version}", self.digest, values, self.source
        )

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote(PointerOperation):
    """Set `env` to the version that environment `before` runs.

    `env` keeps its own values, over the current `settings`, unless `copies_values` takes the values of `before`.
    `version`, if given, is the version that `before` must run now.
    """

    before: str
    copies_values: bool = False
    version: str | None = None

    def files(self, tip: Snapshot) -> Iterable[str]:
        return [*super(Promote, self).files(tip), snapshot.pointer_path(self.before, self.team, self.name)]

    def change(self, tip: Snapshot) -> Change:
        """Return the pointer of `env` with the version of `before`. Raises NotFound or Conflict."""
        source = read_pointer(tip, self.before, self.team, self.name)
        target = pointer_or_none(tip, self.env, self.team, self.name)
        expect_version(self.version, source, self.before, self.name)
        expect_version(self.expect, target, self.env, self.name)
        _need_chart(tip, source)
        values = self.values_after(target, Given())
        if self.copies_values:
            values = source.values if _opens_everywhere(tip, source) else _with_ciphertext_of(source.values, values)
        operation = self if target else replace(self, destination=self.destination or source.destination)
        come_from = {"from": self.before}
        after = operation.pointer_after(target, "promote", source.chart, source.digest, values, come_from)
        subject = f"promote {self.title} {source.version} {self.before} -> {self.env}"
        return _change(self, tip, subject, target, after, self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(PointerOperation):
    """Roll `env` back to its previous deployment, or to the newest one with `version`: version, digest and values.

    If the environment runs nothing, the `retired` pointer is restored.
    """

    version: str | None = None
    retired: Pointer | None = None

    def change(self, tip: Snapshot) -> Change:
        """Return the restored pointer. Raises NotFound if the history or the repository lacks that version."""
        find = read_pointer if self.retired is None else pointer_or_none
        before = find(tip, self.env, self.team, self.name)
        expect_version(self.expect, before, self.env, self.name)
        if before is not None:
            entry = msgspec.structs.replace(before.find(self.version), op="rollback", at=self.at, by=self.by)
            after = before.moved(entry, None, {"from": before.version})
        else:
            assert self.retired is not None  # noqa: S101 - read_pointer raises
            after = self.retired.revived(self.version, self.at, self.by)
        _need_chart(tip, after)
        was = before.version if before else "retired"
        return _change(self, tip, f"rollback {self.title} {was} -> {after.version} in {self.env}", before, after, was)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire(PointerOperation):
    """Remove an experiment from `env`: its pointer, and so its running objects. Its charts stay."""

    def change(self, tip: Snapshot) -> Change:
        """Return the removal of the pointer; empty if it is already gone."""
        pointer = pointer_or_none(tip, self.env, self.team, self.name)
        subject, facts = f"retire {self.title} from {self.env}", self.facts(tip, pointer, None)
        if pointer is None:
            return Change(subject=subject, facts=facts)
        expect_version(self.expect, pointer, self.env, self.name)
        chart = f"{self.title}@{pointer.version}"
        trailers = (("Symph-Op", "retire"), ("Symph-Chart", chart), ("Symph-From", self.env))
        return Change(subject=subject, edits=deploy_edits(tip, pointer, None), trailers=trailers, facts=facts)


def _need_chart(tip: Snapshot, pointer: Pointer) -> None:
    versions = tip.folder(pointer.chart.rpartition("/")[0])
    if pointer.version not in versions:
        published = ", ".join(sorted(versions)) or "none"
        what = f"the repository no longer has {pointer.team}/{pointer.name} {pointer.version}"
        raise NotFound(what, f"published versions: {published}", "publish it again")


def _check(files: Mapping[str, bytes], after: Pointer) -> None:
    """Raise Conflict if the chart has changed in Git since it was published, SpecError if it refuses the values."""
    if published_digest(files) != after.digest:
        what = f"{after.chart} differs from the published chart"
        step = "restore the folder from Git's history, or publish again: a changed chart becomes a new version"
        raise Conflict(what, f"{after.env} expects digest {after.digest} for {after.version}", step)
    # The environment's values may be from another version.
    problems = values_problems(files, after.chart, after.values)
    lacking = sorted(unsealed_secrets(files, after.chart, after.values))
    if lacking:
        what = f"{after.env} has no sealed value of {', '.join(lacking)}"
        next_step = f"seal it: symph publish SPEC --env {after.env} --version {after.version} --cert CERTIFICATE"
        problems.append(Problem(what=what, path="secrets.encryptedData", next=next_step))
    if problems:
        raise SpecError(problems, at=f"the values of {after.env} for {after.chart}")


def _opens_everywhere(tip: Snapshot, source: Pointer) -> bool:
    """Return True if any namespace can decrypt the sealed values of `source`, or nothing is sealed."""
    if not sub(source.values, "secrets", "encryptedData"):
        return True
    return experiment_of(tip.below(source.chart), source.chart).secret_source.scope == "cluster-wide"


# Values that only work in one namespace.
_SEALED = ("encryptedData", "sealedFor")


def _with_ciphertext_of(values: Values, own: Values) -> Values:
    rest = {key: value for key, value in sub(values, "secrets").items() if key not in _SEALED}
    sealed = {key: value for key, value in sub(own, "secrets").items() if key in _SEALED}
    return {**values, "secrets": {**rest, "encryptedData": {}, **sealed}}


def _change(
    operation: PointerOperation, tip: Snapshot, subject: str, before: Pointer | None, after: Pointer, source: str
) -> Change:
    """Return the change from one pointer to another, whose version was found in `source`."""
    files = tip.below(after.chart)
    _check(files, after)
    trailers = {
        "Symph-Op": subject.partition(" ")[0],
        "Symph-Chart": f"{operation.title}@{after.version}",
        "Symph-Digest": after.digest,
        "Symph-From": source,
        "Symph-To": operation.env,
    }
    return Change(
        subject=subject,
        edits=deploy_edits(tip, before, after),
        trailers=tuple(trailers.items()),
        facts=operation.facts(tip, before, after),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidy:
    """Remove all versions of each chart except the newest `keep` and those that a pointer needs.

    A pointer needs its current version and the versions in its history, for rollbacks.
    """

    keep: int

    def files(self, tip: Snapshot) -> Iterable[str]:
        return snapshot.pointer_paths(tip)

    def change(self, tip: Snapshot) -> Change:
        needed = set()
        for path, content in tip.read_all(snapshot.pointer_paths(tip)).items():
            pointer = parse_pointer(content, path)
            parent = pointer.chart.rpartition("/")[0]
            needed |= {pointer.chart, *(f"{parent}/{entry.version}" for entry in pointer.history)}
        charts = [chart for team in tip.folders_in("charts") for chart in tip.folders_in(team)]
        versions = {chart: sorted(tip.folder(chart), key=version_key, reverse=True) for chart in charts}
        old = [f"{chart}/{version}" for chart in charts for version in versions[chart][self.keep :]]
        removed = [path for path in old if path not in needed]
        return Change(
            subject=f"gc: remove {len(removed)} unused chart versions",
            edits=dict.fromkeys(removed),
            trailers=(("Symph-Op", "gc"),),
            facts={"removed": removed, "needed": len(needed)},
        )
