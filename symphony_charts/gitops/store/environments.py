"""Read the current and earlier deployments of environments, and their objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from symphony_charts.backend.status import time_text
from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import Conflict, NotFound, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.gitops import snapshot as gitops_snapshot
from symphony_charts.gitops.base import REASON
from symphony_charts.gitops.pointer import Deployed, Pointer, parse_pointer
from symphony_charts.gitops.published import objects_of
from symphony_charts.gitops.snapshot import Snapshot, below
from symphony_charts.system.git.remote import Commit, Log

# The commit message lines of the operations.
_LINE = re.compile(
    r"(?P<op>publish|promote|rollback|retire) (?P<team>[\w-]+)/(?P<name>[\w-]+)"
    r"(?: (?P<first>\S+)(?: (?P<before>\S+))? -> (?P<second>\S+)(?: in (?P<place>\S+))?| from (?P<left>\S+))",
    re.ASCII,
)
_REASON = re.compile(rf"{REASON}: (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of an experiment in an environment; unknown fields are None.

    `version` runs from then on, None after a retirement. `at` is ISO 8601 in UTC. `reason` is the author's text.
    """

    op: str
    team: str
    env: str
    version: str | None
    at: str
    by: str = ""
    commit: str | None = None
    deployed: Deployed | None = None
    reason: str = ""


def events_in(log: Log, name: str, env: str) -> list[Event]:
    """Return the events of all experiments called `name` in the commits, newest first."""
    return [event for commit in log.find(f"/{name} ") for event in _events(commit, name, env)]


def with_pointer(events: Iterable[Event], pointer: Pointer | None, log: Log, name: str) -> list[Event]:
    """Return `events` with the data of the pointer; without one, of the last retired pointer.

    All entries of the pointer's history are included, even those that no commit message records (manual commits).
    """
    events = list(events)
    known = pointer or pointer_retired(events, log, name)
    entries = [known.deployed, *known.history] if known else []
    if pointer is None:
        deployed = {_key(entry): entry for entry in reversed(entries)}
        return [replace(event, deployed=deployed.get(_key(event))) for event in events]
    recorded = {_key(event): event for event in reversed(events)}
    told = [_told(entry, pointer, recorded.get(_key(entry))) for entry in entries]
    commits = {event.commit for event in told}
    # The pointer knows its own history best; earlier events, from before it or before a retirement, come only from
    # commits.
    since = max([min(event.at for event in told), *(event.at for event in events if event.op == "retire")])
    rest = [event for event in events if event.at <= since and event.commit not in commits]
    return list(_merged(told, rest, [event.commit for event in events]))


def _merged(told: Iterable[Event], rest: list[Event], order: list[str | None]) -> Iterator[Event]:
    for event in told:
        while rest and event.commit in order and order.index(rest[0].commit) < order.index(event.commit):
            yield rest.pop(0)
        yield event
    yield from rest


def pointer_retired(events: Sequence[Event], log: Log, name: str) -> Pointer | None:
    """Return the pointer that the newest event removed; None if that is no retirement, or if it is unreadable."""
    if not events or events[0].op != "retire":
        return None
    path = gitops_snapshot.pointer_path(events[0].env, events[0].team, name)
    (content,) = log.read([f"{events[0].commit}^:{below(log.folder, path)}"])
    try:
        return parse_pointer(content, path) if content is not None else None
    except SpecError:
        return None


def _events(commit: Commit, name: str, env: str) -> Iterator[Event]:
    reason = next((found[1] for line in commit.message.splitlines() if (found := _REASON.fullmatch(line))), "")
    for line in dict.fromkeys(commit.message.splitlines()):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] != name:
            continue
        where = match["left"] or match["place"] or match["second"]
        version = None if match["left"] else match["second"] if match["place"] else match["first"]
        if where == env:
            yield Event(
                op=match["op"],
                team=match["team"],
                env=env,
                version=version,
                at=time_text(commit.time),
                by=commit.author,
                commit=commit.oid,
                reason=reason,
            )


def _key(item: Event | Deployed) -> tuple[str, str | None, str]:
    return item.op, item.version, item.at


def _told(entry: Deployed, pointer: Pointer, event: Event | None) -> Event:
    event = event or Event(op=entry.op, team=pointer.team, env=pointer.env, version=entry.version, at=entry.at)
    return replace(event, by=entry.by or event.by, deployed=entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file at the path of a pointer: environment, team and experiment by its path, and its content.

    `pointer` is None if the file is unreadable; `fault` is then the reason. `has_chart`: its chart exists.
    """

    env: str
    team: str
    name: str
    pointer: Pointer | None
    fault: str = ""
    has_chart: bool = False


def pointers(tip: Snapshot, env: str | None) -> list[Placed]:
    """Return every pointer of `env`, or of all environments; an unreadable one does not affect the others."""
    paths = gitops_snapshot.pointer_paths(tip, env)
    tip.load_files(paths)
    placed = [_placed(tip, path) for path in paths]
    charts = [each.pointer.chart for each in placed if each.pointer]
    tip.load_folders(chart.rpartition("/")[0] for chart in charts)
    return [
        replace(each, has_chart=each.pointer is not None and tip.entry(each.pointer.chart) is not None)
        for each in placed
    ]


def _placed(tip: Snapshot, path: str) -> Placed:
    env, team, name = gitops_snapshot.pointer_name(path) or ("", "", path)
    try:
        return Placed(env=env, team=team, name=name, pointer=parse_pointer(tip.read(path) or b"", path))
    except (Conflict, SpecError) as error:
        return Placed(env=env, team=team, name=name, pointer=None, fault=error.what)


def objects_of_environment(tip: Snapshot, env: str) -> tuple[list[dict[str, object]], list[str]]:
    """Return the objects of every experiment in `env` without those of `helm test`, in order of team and name.

    The second value lists the charts that Helm rendered. Raises NotFound if a chart is missing, and the errors of
    `objects_of`.
    """
    contents = tip.read_all(gitops_snapshot.pointer_paths(tip, env))
    pointers = [parse_pointer(content, path) for path, content in contents.items()]
    tip.read_below(pointer.chart for pointer in pointers)
    objects: list[dict[str, object]] = []
    notes: list[str] = []
    for pointer in pointers:
        files = tip.below(pointer.chart)
        if not files:
            raise NotFound(f"{env} runs {pointer.chart}, which does not exist", next="check it: symph gitops lint")
        release = Release(name=pointer.name, namespace=pointer.destination.namespace)
        made, note = objects_of(files, pointer.chart, pointer.values, release)
        objects += [item for item in made if "helm.sh/hook" not in sub(item, "metadata", "annotations")]
        notes += [note] if note else []
    return objects, notes
