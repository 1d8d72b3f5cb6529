"""Promotion, rollback and retirement move a pointer without a new chart. Each changes one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Conflict, NotFound, SpecError
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.base import Change
from symphony_charts.gitops.operations.pointer import Pointer, chart_files, pointer_faults
from symphony_charts.gitops.operations.pointer_files import deploy_edits, deploy_folders, pointer_or_none
from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.settings.project import Destination

__all__ = ["Promote", "Retire", "Rollback", "read_pointer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """Promotes: environment `after` runs the version that `before` runs.

    The values of `after` stay, unless `env_values` gives others or `copies_values` takes those of `before`; an
    environment that runs nothing yet begins with `first_values`. `version` and `expect` are what `before` and `after`
    must run now, where they are given (``""``: nothing yet).
    """

    team: str
    name: str
    before: str
    after: str
    env_values: Values | None = None
    first_values: Values = field(default_factory=dict)
    copies_values: bool = False
    destination: Destination | None = None
    project: str = "symph"
    version: str | None = None
    expect: str | None = None
    at: str = ""

    def folders(self) -> Iterable[str]:
        """The pointers of both environments, and the versions that are there."""
        return _folders(self.team, self.name, self.before, self.after)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        """Both pointers."""
        return [layout.pointer_path(env, self.team, self.name) for env in (self.before, self.after)]

    def change(self, tip: Snapshot) -> Change:
        """The pointer of `after` at the version of `before`. Raises NotFound, or Conflict where expectations fail."""
        source = read_pointer(tip, self.before, self.team, self.name)
        target = pointer_or_none(tip, self.after, self.team, self.name)
        _expect(self.version, source.version, self.before, self.name)
        _expect(self.expect, target.version if target else "", self.after, self.name)
        _need_chart(tip, source, source.version)
        values = source.values if self.copies_values else self.env_values
        moved = self._moved(source, target, values)
        subject = f"promote {self.team}/{self.name} {source.version} {self.before} -> {self.after}"
        return _change(tip, subject, "promote", target, moved, (("Symph-From", self.before), ("Symph-To", self.after)))

    def _moved(self, source: Pointer, target: Pointer | None, values: Values | None) -> Pointer:
        if target is not None:
            kept = target.values if values is None else values
            moved = target.moved(
                source.version, source.digest, kept, op="promote", at=self.at, source={"from": self.before}
            )
            return _at(moved, self.destination)
        return Pointer(
            name=self.name,
            team=self.team,
            env=self.after,
            version=source.version,
            digest=source.digest,
            chart=source.chart,
            values=self.first_values if values is None else values,
            destination=self.destination or source.destination,
            project=self.project,
            op="promote",
            at=self.at,
            source={"from": self.before},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """Rolls `env` back to what it ran before, or with `version` to the newest with that: version, digest and values."""

    team: str
    name: str
    env: str
    version: str | None = None
    expect: str | None = None
    at: str = ""

    def folders(self) -> Iterable[str]:
        """The environment's pointers, and the versions that are there."""
        return _folders(self.team, self.name, self.env)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        """The pointer."""
        return [layout.pointer_path(self.env, self.team, self.name)]

    def change(self, tip: Snapshot) -> Change:
        """The pointer as it was. Raises NotFound where the history or the repository does not hold that version."""
        pointer = read_pointer(tip, self.env, self.team, self.name)
        _expect(self.expect, pointer.version, self.env, self.name)
        entry = pointer.find(self.version)
        _need_chart(tip, pointer, entry.version)
        source = {"from": pointer.version}
        moved = pointer.moved(entry.version, entry.digest, entry.values, op="rollback", at=self.at, source=source)
        subject = f"rollback {self.team}/{self.name} {pointer.version} -> {entry.version} in {self.env}"
        trailers = (("Symph-From", pointer.version), ("Symph-To", self.env))
        return _change(tip, subject, "rollback", pointer, moved, trailers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """Take an experiment out of `env`: its pointer goes, and with it what runs. Its charts stay."""

    team: str
    name: str
    env: str
    expect: str | None = None

    def folders(self) -> Iterable[str]:
        """The environment's pointers."""
        yield from deploy_folders(self.env, self.team, self.name)
        yield layout.rendered_path(self.env, self.team, self.name)

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        """The pointer."""
        return [layout.pointer_path(self.env, self.team, self.name)]

    def change(self, tip: Snapshot) -> Change:
        """The pointer and the rendered manifests removed; nothing where they are gone."""
        pointer = pointer_or_none(tip, self.env, self.team, self.name)
        subject = f"retire {self.team}/{self.name} from {self.env}"
        if pointer is None:
            return Change(subject=subject, facts={"name": self.name, "team": self.team, "env": self.env, "was": None})
        _expect(self.expect, pointer.version, self.env, self.name)
        edits = deploy_edits(tip, pointer, None)
        rendered = layout.rendered_path(self.env, self.team, self.name)
        if tip.entry(rendered) is not None:
            edits[rendered] = None
        return Change(
            subject=subject,
            edits=edits,
            trailers=(
                ("Symph-Op", "retire"),
                ("Symph-Chart", f"{self.team}/{self.name}@{pointer.version}"),
                ("Symph-From", self.env),
            ),
            facts={"name": self.name, "team": self.team, "env": self.env, "was": pointer.version},
        )


def read_pointer(tip: Snapshot, env: str, team: str, name: str) -> Pointer:
    """The pointer of an experiment in an environment. Raises NotFound without one."""
    pointer = pointer_or_none(tip, env, team, name)
    if pointer is None:
        others = [path.removesuffix(layout.POINTER_SUFFIX) for path in tip.folder(layout.pointer_folder(env, team))]
        hint = f"{env} has {', '.join(sorted(others)[:8])}" if others else f"{env} has no experiment of team {team}"
        raise NotFound(f"{env} runs no {team}/{name}", hint, f"symph publish {name} --env {env}")
    return pointer


def _folders(team: str, name: str, *envs: str) -> list[str]:
    return [layout.versions_path(team, name), *(path for env in envs for path in deploy_folders(env, team, name))]


def _expect(wanted: str | None, actual: str, env: str, name: str) -> None:
    if wanted is not None and wanted != actual:
        raise Conflict(
            f"{env} runs {actual or 'no version'} of {name}, not {wanted or 'none'}",
            next=f"look at what changed: symph history {name} --env {env}",
        )


def _need_chart(tip: Snapshot, pointer: Pointer, version: str) -> None:
    folder = pointer.chart.rpartition("/")[0]
    # What shares another's chart was found by its pointer; only the chart of its own name is loaded.
    if folder != layout.versions_path(pointer.team, pointer.name):
        return
    versions = tip.folder(folder)
    if version not in versions:
        published = ", ".join(sorted(versions)) or "none"
        raise NotFound(
            f"the repository no longer holds {pointer.team}/{pointer.name} {version}",
            f"it holds {published}",
            "publish it again",
        )


def _check_values(tip: Snapshot, after: Pointer) -> None:
    """Raise SpecError where the chart refuses the values that it would run with: another version may have had them."""
    values, schema = (tip.read(path) for path in chart_files(after.chart))
    problems = pointer_faults(after, values, schema)
    if problems:
        raise SpecError(problems, at=f"the values of {after.env} for {after.chart}")


def _at(pointer: Pointer, destination: Destination | None) -> Pointer:
    if destination is None or destination == pointer.destination:
        return pointer
    return msgspec.structs.replace(pointer, destination=destination)


def _change(
    tip: Snapshot, subject: str, op: str, before: Pointer | None, after: Pointer, extra: tuple[tuple[str, str], ...]
) -> Change:
    _check_values(tip, after)
    chart = f"{after.team}/{after.name}@{after.version}"
    facts: dict[str, object] = {"name": after.name, "team": after.team, "env": after.env, "version": after.version}
    facts |= {"digest": after.digest, "was": before.version if before else None}
    return Change(
        subject=subject,
        edits=deploy_edits(tip, before, after),
        trailers=(("Symph-Op", op), ("Symph-Chart", chart), ("Symph-Digest", after.digest), *extra),
        facts=facts,
    )
