"""Move, restore and remove pointers, and delete unused chart versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from symphony_charts.errors import Conflict, NotFound, Problem, SpecError
from symphony_charts.formats.data import Values, sub
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
    Deployed,
    Given,
    Pointer,
    deployed_fields,
    environment_values,
    parse_pointer,
    published_digest,
)
from symphony_charts.gitops.publish import version_key
from symphony_charts.gitops.published import experiment_of, unsealed_secrets, values_problems
from symphony_charts.gitops.snapshot import Snapshot


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
        _need_chart(tip, source, source.version)
        moved = self._moved(tip, source, target)
        subject = f"promote {self.title} {source.version} {self.before} -> {self.env}"
        return _change(self, tip, subject, target, moved, self.before)

    def _moved(self, tip: Snapshot, source: Pointer, target: Pointer | None) -> Pointer:
        values, settings = (target.values, target.settings) if target else ({}, {})
        kept = environment_values(values, settings, self.settings, Given())
        copied = source.values if _opens_everywhere(tip, source) else _with_ciphertext_of(source.values, kept)
        after = Deployed(
            version=source.version,
            digest=source.digest,
            values=copied if self.copies_values else kept,
            settings=settings if self.settings is None else self.settings,
            op="promote",
            at=self.at,
            by=self.by,
        )
        if target is not None:
            return target.moved(after, self.destination, {"from": self.before})
        return Pointer(
            name=self.name,
            team=self.team,
            env=self.env,
            chart=source.chart,
            destination=self.destination or source.destination,
            source={"from": self.before},
            **deployed_fields(after),
        )


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
        _need_chart(tip, after, after.version)
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


def _need_chart(tip: Snapshot, pointer: Pointer, version: str) -> None:
    folder = pointer.chart.rpartition("/")[0]
    versions = tip.folder(folder)
    if version not in versions:
        published = ", ".join(sorted(versions)) or "none"
        raise NotFound(
            f"the repository no longer holds {pointer.team}/{pointer.name} {version}",
            f"it holds {published}",
            "publish it again",
        )


def _check_chart(files: Mapping[str, bytes], after: Pointer) -> None:
    """Raise Conflict if the chart has changed in Git since it was published."""
    if published_digest(files) != after.digest:
        raise Conflict(
            f"{after.chart} holds other content than was published",
            f"the digest of {after.version} in {after.env} would be {after.digest}",
            "restore the folder from Git's history, or publish again: a changed chart becomes a new version",
        )


def _check_values(files: Mapping[str, bytes], after: Pointer) -> None:
    """Raise SpecError if the chart refuses the environment's values, which may be from another version."""
    problems = values_problems(files, after.chart, after.values)
    lacking = sorted(unsealed_secrets(files, after.chart, after.values))
    if lacking:
        what = f"{after.env} has nothing sealed for {', '.join(lacking)}"
        next_step = f"seal for it: symph publish SPEC --env {after.env} --version {after.version} --cert CERTIFICATE"
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
    _check_chart(files, after)
    _check_values(files, after)
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
        removed = []
        for chart in charts:
            versions = sorted(tip.folder(chart), key=version_key, reverse=True)
            removed += [f"{chart}/{each}" for each in versions[self.keep :] if f"{chart}/{each}" not in needed]
        return Change(
            subject=f"gc: {len(removed)} chart versions that nothing needs",
            edits=dict.fromkeys(removed),
            trailers=(("Symph-Op", "gc"),),
            facts={"removed": removed, "needed": len(needed)},
        )
