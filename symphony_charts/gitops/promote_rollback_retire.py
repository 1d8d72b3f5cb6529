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
    deploy_edits,
    deploy_files,
    deploy_folders,
    deploy_warnings,
    expect_version,
    new_beside,
    pointer_or_none,
    read_pointer,
)
from symphony_charts.gitops.pointer import (
    Deployed,
    Given,
    Pointer,
    deployed_fields,
    environment_values,
    move_of,
    parse_pointer,
    published_digest,
)
from symphony_charts.gitops.publish import version_key
from symphony_charts.gitops.published import experiment_of, unsealed_secrets, values_problems
from symphony_charts.gitops.snapshot import Snapshot
from symphony_charts.settings.project import Destination


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """Set environment `after` to the version that `before` runs.

    `after` keeps its own values, over the current `settings`, unless `copies_values` takes the values of `before`.
    `version` and `expect`, if given, are the versions that `before` and `after` must run now (``""``: nothing yet).
    """

    team: str
    name: str
    before: str
    after: str
    settings: Values | None = None
    copies_values: bool = False
    destination: Destination | None = None
    version: str | None = None
    expect: str | None = None
    at: str = ""
    by: str = ""

    def folders(self) -> Iterable[str]:
        return _folders(self.team, self.name, self.before, self.after)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        return [path for env in (self.before, self.after) for path in deploy_files(env, self.team, self.name)]

    def change(self, tip: Snapshot) -> Change:
        """Return the pointer of `after` with the version of `before`. Raises NotFound or Conflict."""
        source = read_pointer(tip, self.before, self.team, self.name)
        target = pointer_or_none(tip, self.after, self.team, self.name)
        expect_version(self.version, source, self.before, self.name)
        expect_version(self.expect, target, self.after, self.name)
        _need_chart(tip, source, source.version)
        moved = self._moved(tip, source, target)
        subject = f"promote {self.team}/{self.name} {source.version} {self.before} -> {self.after}"
        return _change(tip, subject, "promote", target, moved, (("Symph-From", self.before), ("Symph-To", self.after)))

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
            env=self.after,
            chart=source.chart,
            destination=self.destination or source.destination,
            source={"from": self.before},
            **deployed_fields(after),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """Roll `env` back to its previous deployment, or to the newest one with `version`: version, digest and values.

    If the environment runs nothing, the `retired` pointer is restored.
    """

    team: str
    name: str
    env: str
    version: str | None = None
    expect: str | None = None
    at: str = ""
    by: str = ""
    retired: Pointer | None = None

    def folders(self) -> Iterable[str]:
        return _folders(self.team, self.name, self.env)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        return deploy_files(self.env, self.team, self.name)

    def change(self, tip: Snapshot) -> Change:
        """Return the restored pointer. Raises NotFound if the history or the repository lacks that version."""
        if self.retired is not None and pointer_or_none(tip, self.env, self.team, self.name) is None:
            return self._revived(tip, self.retired)
        pointer = read_pointer(tip, self.env, self.team, self.name)
        expect_version(self.expect, pointer, self.env, self.name)
        entry = pointer.find(self.version)
        _need_chart(tip, pointer, entry.version)
        after = msgspec.structs.replace(entry, op="rollback", at=self.at, by=self.by)
        moved = pointer.moved(after, None, {"from": pointer.version})
        subject = f"rollback {self.team}/{self.name} {pointer.version} -> {entry.version} in {self.env}"
        trailers = (("Symph-From", pointer.version), ("Symph-To", self.env))
        return _change(tip, subject, "rollback", pointer, moved, trailers)

    def _revived(self, tip: Snapshot, retired: Pointer) -> Change:
        expect_version(self.expect, None, self.env, self.name)
        after = retired.revived(self.version, self.at, self.by)
        _need_chart(tip, retired, after.version)
        subject = f"rollback {self.team}/{self.name} retired -> {after.version} in {self.env}"
        return _change(tip, subject, "rollback", None, after, (("Symph-From", "retired"), ("Symph-To", self.env)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """Remove an experiment from `env`: its pointer, and so its running objects. Its charts stay."""

    team: str
    name: str
    env: str
    expect: str | None = None

    def folders(self) -> Iterable[str]:
        return deploy_folders(self.env, self.team)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        return deploy_files(self.env, self.team, self.name)

    def change(self, tip: Snapshot) -> Change:
        """Return the removal of the pointer; empty if it is already gone."""
        pointer = pointer_or_none(tip, self.env, self.team, self.name)
        subject = f"retire {self.team}/{self.name} from {self.env}"
        if pointer is None:
            return Change(subject=subject, facts={"name": self.name, "team": self.team, "env": self.env, "was": None})
        expect_version(self.expect, pointer, self.env, self.name)
        return Change(
            subject=subject,
            edits=deploy_edits(tip, pointer, None),
            trailers=(
                ("Symph-Op", "retire"),
                ("Symph-Chart", f"{self.team}/{self.name}@{pointer.version}"),
                ("Symph-From", self.env),
            ),
            facts={"name": self.name, "team": self.team, "env": self.env, "was": pointer.version},
        )


def _folders(team: str, name: str, *envs: str) -> list[str]:
    return [snapshot.versions_path(team, name), *(path for env in envs for path in deploy_folders(env, team))]


def _need_chart(tip: Snapshot, pointer: Pointer, version: str) -> None:
    folder = pointer.chart.rpartition("/")[0]
    versions = tip.folder(folder)
    if version not in versions:
        published = ", ".join(sorted(versions)) or "none"
        raise NotFound(
            f"the repository no longer has {pointer.team}/{pointer.name} {version}",
            f"published versions: {published}",
            "publish it again",
        )


def _check_chart(files: Mapping[str, bytes], after: Pointer) -> None:
    """Raise Conflict if the chart has changed in Git since it was published."""
    if published_digest(files) != after.digest:
        raise Conflict(
            f"{after.chart} differs from the published chart",
            f"{after.env} expects digest {after.digest} for {after.version}",
            "restore the folder from Git's history, or publish again: a changed chart becomes a new version",
        )


def _check_values(files: Mapping[str, bytes], after: Pointer) -> None:
    """Raise SpecError if the chart refuses the environment's values, which may be from another version."""
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
    tip: Snapshot, subject: str, op: str, before: Pointer | None, after: Pointer, extra: tuple[tuple[str, str], ...]
) -> Change:
    files = tip.below(after.chart)
    _check_chart(files, after)
    _check_values(files, after)
    chart = f"{after.team}/{after.name}@{after.version}"
    facts: dict[str, object] = {"name": after.name, "team": after.team, "env": after.env, "version": after.version}
    facts |= {"digest": after.digest, "was": before.version if before else None, "moves": move_of(before, after)}
    facts |= {"warnings": deploy_warnings(tip, before, after), "newBeside": new_beside(tip, after.env)}
    return Change(
        subject=subject,
        edits=deploy_edits(tip, before, after),
        trailers=(("Symph-Op", op), ("Symph-Chart", chart), ("Symph-Digest", after.digest), *extra),
        facts=facts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidy:
    """Remove all versions of each chart except the newest `keep` and those that a pointer needs.

    A pointer needs its current version and the versions in its history, for rollbacks.
    """

    keep: int

    def folders(self) -> Iterable[str]:
        return ["charts", "envs"]

    def files(self, tip: Snapshot) -> Iterable[str]:
        return snapshot.pointer_paths(tip)

    def change(self, tip: Snapshot) -> Change:
        needed = set()
        for path, content in tip.read_all(snapshot.pointer_paths(tip)).items():
            pointer = parse_pointer(content, path)
            parent = pointer.chart.rpartition("/")[0]
            needed |= {pointer.chart, *(f"{parent}/{entry.version}" for entry in pointer.history)}
        teams = tip.folders_in("charts")
        tip.load(teams)
        charts = [chart for team in teams for chart in tip.folders_in(team)]
        tip.load(charts)
        removed = []
        for chart in charts:
            versions = sorted(tip.folder(chart), key=version_key, reverse=True)
            removed += [f"{chart}/{each}" for each in versions[self.keep :] if f"{chart}/{each}" not in needed]
        return Change(
            subject=f"gc: remove {len(removed)} unused chart versions",
            edits=dict.fromkeys(removed),
            trailers=(("Symph-Op", "gc"),),
            facts={"removed": removed, "needed": len(needed)},
        )
