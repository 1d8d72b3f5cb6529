"""The history of an experiment is read from its pointer and from the commits, which also tell what was retired."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from symphony_charts.errors import SpecError
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.base import REASON
from symphony_charts.gitops.operations.pointer import Deployed, Pointer, parse_pointer
from symphony_charts.gitops.store.load import below
from symphony_charts.system.git.log import Commit, Log

__all__ = ["Event", "events_in", "pointer_retired", "with_pointer"]

# As the operations word the lines of their commits.
_LINE = re.compile(
    r"(?P<op>publish|promote|rollback|retire) (?P<team>[\w-]+)/(?P<name>[\w-]+)"
    r"(?: (?P<first>\S+)(?: (?P<before>\S+))? -> (?P<second>\S+)(?: in (?P<place>\S+))?| from (?P<left>\S+))",
    re.ASCII,
)
_REASON = re.compile(rf"{REASON}: (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of an experiment in an environment; unknown fields are None.

    `version` is what ran from then on, None after a retirement. `at` is ISO 8601 in UTC. `reason` is its author's own.
    """

    op: str
    team: str
    env: str
    version: str | None
    at: str
    by: str
    commit: str | None
    deployed: Deployed | None = None
    reason: str = ""


def events_in(log: Log, name: str, env: str) -> list[Event]:
    """Return the events of all experiments called `name` in the commits, newest first."""
    return [event for commit in log.find(f"/{name} ") for event in _events(commit, name, env)]


def with_pointer(events: Iterable[Event], pointer: Pointer | None, log: Log, name: str) -> list[Event]:
    """`events` with what the pointer knows of them; without a pointer, with what the one knew that was retired last.

    What the pointer's history holds stands there whether a commit says so or not: a commit by hand does not.
    """
    events = list(events)
    if pointer is None:
        last = next((event for event in events if event.op == "retire"), None)
        old = _pointer_before(log, last, name) if last else None
        known = [old.deployed, *old.history] if old else []
        return [_with_values(event, known) for event in events]
    entries = [pointer.deployed, *pointer.history]
    told = [_told(entry, pointer, events) for entry in entries]
    commits = {event.commit for event in told}
    # The pointer knows best what it went through; what was before it, or before it was retired, only commits tell.
    since = max([min(event.at for event in told), *(event.at for event in events if event.op == "retire")])
    rest = [event for event in events if event.at <= since and event.commit not in commits]
    return list(_merged(told, rest, [event.commit for event in events]))


def _merged(told: Iterable[Event], rest: list[Event], order: list[str | None]) -> Iterator[Event]:
    """Merge both in the `order` of their commits."""
    for event in told:
        while rest and event.commit in order and order.index(rest[0].commit) < order.index(event.commit):
            yield rest.pop(0)
        yield event
    yield from rest


def pointer_retired(events: Iterable[Event], log: Log, name: str) -> Pointer | None:
    """Return the pointer that the last retirement removed; None without one, or if it cannot be read."""
    last = next(iter(events), None)
    return _pointer_before(log, last, name) if last is not None and last.op == "retire" else None


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
                at=commit.at,
                by=commit.author,
                commit=commit.oid,
                reason=reason,
            )


def _told(entry: Deployed, pointer: Pointer, events: list[Event]) -> Event:
    same = (event for event in events if (event.op, event.version, event.at) == (entry.op, entry.version, entry.at))
    found = next(same, None)
    return Event(
        op=entry.op,
        team=pointer.team,
        env=pointer.env,
        version=entry.version,
        at=entry.at,
        by=entry.by or (found.by if found else ""),
        commit=found.commit if found else None,
        deployed=entry,
        reason=found.reason if found else "",
    )


def _with_values(event: Event, known: list[Deployed]) -> Event:
    same = (entry for entry in known if (event.op, event.version, event.at) == (entry.op, entry.version, entry.at))
    return replace(event, deployed=next(same, None))


def _pointer_before(log: Log, event: Event, name: str) -> Pointer | None:
    path = layout.pointer_path(event.env, event.team, name)
    (content,) = log.read([f"{event.commit}^:{below(log.folder, path)}"])
    try:
        return parse_pointer(content, path) if content is not None else None
    except SpecError:
        return None
