"""Parts that all operations share: changes, commit messages, and edits of pointers.

An operation returns its changes to a given tip. It is evaluated again whenever the tip has moved, so it must depend on
nothing else. It names the files that it certainly reads, so that they are fetched at once instead of one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Protocol

from symphony_charts.errors import Conflict, NotFound, SpecError
from symphony_charts.formats.data import Values
from symphony_charts.gitops import snapshot
from symphony_charts.gitops.argocd import PROJECT_FILE, app_name, destination_fault
from symphony_charts.gitops.flux import FLUX_SOURCE_FILE, folder_keeper, source_in
from symphony_charts.gitops.pointer import (
    Deployed,
    Given,
    Pointer,
    deployed_fields,
    environment_values,
    move_between,
    parse_pointer,
    render_pointer,
)
from symphony_charts.gitops.snapshot import Edits, Snapshot
from symphony_charts.settings.project import Destination

REASON = "Symph-Reason"
"""The commit trailer with the author's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An operation's change of the tip: `edits`, empty if nothing has to change.

    `subject` is one line for people; `trailers` are for programs; `facts` are for the answer to the user.
    """

    subject: str
    edits: Edits = field(default_factory=dict)
    trailers: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


class Operation(Protocol):
    """A function of a tip, with the files that it reads."""

    def files(self, tip: Snapshot) -> Iterable[str]:
        """Return the files that it reads, as far as folders show them."""

    def change(self, tip: Snapshot) -> Change:
        """Return the change. Raises Conflict, NotFound or SpecError."""


def message_of(changes: Iterable[Change], extra: Iterable[tuple[str, str]] = ()) -> str:
    """Return the message of the commit that makes `changes`: a subject, a line per change, trailers."""
    changes = list(changes)
    subjects = [change.subject for change in changes]
    head = subjects[0] if len(subjects) == 1 else f"{subjects[0].partition(' ')[0]} {len(subjects)} charts"
    blocks = [head if len(head) <= 72 else f"{head[:71]}…"]
    if len(subjects) > 1 or blocks[0] != head:
        blocks.append("\n".join(subjects))
    trailers = dict.fromkeys(trailer for change in changes for trailer in change.trailers)
    lines = [f"{key}: {' '.join(value.split())}" for key, value in (*trailers, *extra)]
    if lines:
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerOperation:
    """The fields of an operation on the pointer of an experiment in `env`.

    `settings` and `destination` are those of the environment in the settings, None if unknown. `expect` is the version
    that must run now (``""``: nothing; None: any). `at` is ISO 8601 in UTC, `by` the author.
    """

    team: str
    name: str
    env: str
    settings: Values | None = None
    destination: Destination | None = None
    expect: str | None = None
    at: str = ""
    by: str = ""

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        return [PROJECT_FILE, FLUX_SOURCE_FILE, self.pointer_path]

    @property
    def pointer_path(self) -> str:
        return snapshot.pointer_path(self.env, self.team, self.name)

    @property
    def title(self) -> str:
        return f"{self.team}/{self.name}"

    def values_after(self, before: Pointer | None, given: Given) -> Values:
        """Return the environment's values with the current settings and those of a command."""
        values, settings = (before.values, before.settings) if before else ({}, {})
        return environment_values(values, settings, self.settings, given)

    def pointer_after(
        self, before: Pointer | None, op: str, chart: str, digest: str, values: Values, source: Mapping[str, str]
    ) -> Pointer:
        """Return the pointer that follows `before` and runs the chart in the folder `chart`."""
        old = before.settings if before else {}
        settings, version = old if self.settings is None else self.settings, chart.rpartition("/")[2]
        now = Deployed(version=version, digest=digest, values=values, settings=settings, op=op, at=self.at, by=self.by)
        if before is not None:
            return before.moved(now, self.destination, source)
        fields, place = deployed_fields(now), self.destination or Destination()
        return Pointer(
            name=self.name, team=self.team, env=self.env, chart=chart, destination=place, source=dict(source), **fields
        )

    def facts(self, tip: Snapshot, before: Pointer | None, after: Pointer | None) -> dict[str, object]:
        """Return the facts of a change from one pointer to another; None for a missing one."""
        facts: dict[str, object] = {"name": self.name, "team": self.team, "env": self.env or None}
        known = [name for name, entry in tip.folder("envs").items() if entry.is_folder]
        is_new = bool(self.env) and self.env not in known
        facts |= {"was": before.version if before else None, "newBeside": sorted(known) if is_new else None}
        if after is not None:
            move = move_between(before.destination, after.destination) if before else None
            facts |= {"version": after.version, "digest": after.digest, "moves": move.record if move else None}
            facts |= {"warnings": deploy_warnings(tip, before, after)}
        return facts


def pointer_or_none(tip: Snapshot, env: str, team: str, name: str) -> Pointer | None:
    path = snapshot.pointer_path(env, team, name)
    content = tip.read(path)
    return None if content is None else parse_pointer(content, path)


def read_pointer(tip: Snapshot, env: str, team: str, name: str) -> Pointer:
    """Return the pointer of an experiment in an environment. Raises NotFound without one."""
    pointer = pointer_or_none(tip, env, team, name)
    if pointer is None:
        others = [path.removesuffix(snapshot.POINTER_SUFFIX) for path in tip.folder(snapshot.pointer_folder(env, team))]
        hint = f"{env} has {', '.join(sorted(others)[:8])}" if others else f"{env} has no experiment of team {team}"
        raise NotFound(f"{env} does not run {team}/{name}", hint, f"symph publish {name} --env {env}")
    return pointer


def expect_version(wanted: str | None, pointer: Pointer | None, env: str, name: str) -> None:
    """Raise Conflict if `env` runs another version than `wanted` (``""``: nothing yet; None: any)."""
    actual = pointer.version if pointer else ""
    if wanted is not None and wanted != actual:
        what = f"{env} runs {actual or 'no version'} of {name}, not {wanted or 'none'}"
        raise Conflict(what, next=f"look at what changed: symph history {name} --env {env}")


def deploy_edits(tip: Snapshot, before: Pointer | None, after: Pointer | None) -> dict[str, bytes | None]:
    """Return the edits that replace `before` by `after`; None means that the environment runs nothing.

    Raises Conflict if Argo CD would have two applications of one name.
    """
    pointer = after or before
    if pointer is None or after == before:
        return {}
    if before is None:
        _refuse_namesake(tip, pointer)
    where = (pointer.env, pointer.team, pointer.name)
    source = source_in(tip.read(FLUX_SOURCE_FILE))
    content = None if after is None else render_pointer(after, source, tip.root)
    edits: dict[str, bytes | None] = {snapshot.pointer_path(*where): content}
    secret = snapshot.flux_secret_path(*where)
    if after is None and tip.entry(secret) is not None:
        edits[secret] = None
    keeper = snapshot.flux_keeper_path(pointer.env)
    if source is not None and tip.entry(keeper) is None:
        edits[keeper] = folder_keeper(pointer.env)
    return edits


def destinations_in_use(tip: Snapshot) -> dict[str, list[Destination]]:
    """Return the destinations of each environment's pointers; unreadable pointers are skipped."""
    places: dict[str, list[Destination]] = {}
    for path, content in tip.read_all(snapshot.pointer_paths(tip)).items():
        with suppress(SpecError):
            place, known = parse_pointer(content, path).destination, places.setdefault(path.split("/")[1], [])
            known += [] if place in known else [place]
    return places


def deploy_warnings(tip: Snapshot, before: Pointer | None, after: Pointer) -> list[str]:
    """Return the reasons why Argo CD cannot sync the pointer, or cannot end the run at the old destination."""
    project = tip.read(PROJECT_FILE)
    warnings = []
    if not tip.commit:
        warnings.append("the repository was empty, so no cluster reads it yet: symph gitops init")
    if unknown := sorted(after.unknown):
        warnings.append(f"a newer symph wrote {', '.join(unknown)} of this pointer; it is kept: update symph")
    if fault := destination_fault(project, after.env, after.destination):
        warnings.append(f"{fault}: symph gitops init --force, and apply bootstrap/ to the cluster")
    move = move_between(before.destination, after.destination) if before else None
    if before and move and move.ends and destination_fault(project, after.env, before.destination):
        warnings.append(f"the old run keeps running in {move.before}: the project of {after.env} no longer allows it")
    return warnings


def _refuse_namesake(tip: Snapshot, pointer: Pointer) -> None:
    """Raise Conflict if another pointer makes an application of the same name, such as a-b/c beside a/b-c."""
    words = app_name(pointer.env, pointer.team, pointer.name).split("-")
    cuts = combinations(range(1, len(words)), 2)
    places = [tuple("-".join(words[start:end]) for start, end in pairwise((0, *cut, len(words)))) for cut in cuts]
    taken = [
        path for env, team, name in places if tip.entry(path := snapshot.pointer_path(env, team, name)) is not None
    ]
    if taken:
        what = f"{taken[0]} already defines an application of the same name: {'-'.join(words)}"
        raise Conflict(what, next="give the experiment another name: Argo CD would refuse both")
