"""Collect the losses and faults of an import, and build the experiment.

The log records the keys that readers took. A key without a reader is a loss, so no loss goes unreported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import is_below, join
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment

Verdict: TypeAlias = Literal["changed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A part of the input, at `path`, that was dropped or converted, with a suggestion.

    `verdict`: "changed" if the result does the same (or nearly) by other means; "lost" if it does not.
    """

    path: str
    what: str
    next: str = ""
    verdict: Verdict = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of an import: paths that were `carried` over unchanged, and `notes` on all others."""

    carried: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def changed(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.verdict == "changed")

    @property
    def lost(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.verdict == "lost")

    def data(self) -> dict[str, object]:
        """Return the report as `-o json` prints it."""
        return {
            "carried": list(self.carried),
            "changed": [_as_data(note) for note in self.changed],
            "lost": [_as_data(note) for note in self.lost],
        }

    def summary(self) -> str:
        carried = f"{len(self.carried)} carried, " if self.carried else ""
        return f"{carried}{len(self.changed)} changed, {len(self.lost)} lost"


def _as_data(note: Note) -> dict[str, str]:
    return {"at": note.path, "what": note.what, "next": note.next}


@dataclass(slots=True)
class Reading:
    """One map of the input: its `values`, the keys that were `read`, and meaningless keys that were `skipped`."""

    values: Mapping[str, object]
    read: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Log:
    """Faults and losses collected while an input is read; `raise_faults` raises all faults at once."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    readings: dict[str, list[Reading]] = field(default_factory=dict)

    def fault(self, path: str, what: str, next: str = "") -> None:
        self.problems.append(Problem(what, path, next))

    def changed(self, path: str, what: str, next: str = "") -> None:
        """Record something that was converted; duplicates are ignored."""
        self._keep(Note(path=path, what=what, next=next, verdict="changed"))

    def lost(self, path: str, what: str, next: str = "") -> None:
        """Record something that was not carried over; duplicates are ignored."""
        self._keep(Note(path=path, what=what, next=next))

    note = lost

    def open(self, path: str, values: Mapping[str, object]) -> Reading:
        reading = Reading(values)
        self.readings.setdefault(path, []).append(reading)
        return reading

    def raise_faults(self) -> None:
        if self.problems:
            raise SpecError(self.problems)

    def report(self) -> Report:
        """Return the report; paths without a reader are lost."""
        left_out = {note.path for note in self.notes if note.verdict == "lost"}
        for path, readings in self.readings.items():
            read = set().union(*(reading.read for reading in readings))
            if not left_out.isdisjoint((path, *_above(path))):
                continue  # a note covers the whole map
            for reading in readings:
                for key, value in reading.values.items():
                    if value is not None and key not in read:
                        self.lost(join(path, key), f"`{key}` is not carried over")
        return Report(carried=tuple(self._carried()), notes=tuple(self.notes))

    def _carried(self) -> Iterator[str]:
        """Yield the leaf paths that were read and have no note."""
        lost = {note.path for note in self.notes if note.verdict == "lost"}
        inner = {part for path in self.readings for part in (path, *_above(path))}
        inner |= {part for note in self.notes for part in (note.path, *_above(note.path))}
        for path, readings in self.readings.items():
            skipped = set().union(*(reading.skipped for reading in readings))
            seen = dict.fromkeys(
                key for reading in readings for key in reading.values if reading.values[key] is not None
            )
            for key in seen:
                leaf = join(path, key)
                if key not in skipped and leaf not in inner and lost.isdisjoint(_above(leaf)):
                    yield leaf

    def _keep(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _above(path: str) -> Iterator[str]:
    """Return the paths of the maps and lists around `path`, without the root."""
    return (path[:end] for end in range(1, len(path)) if path[end] in ".[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An experiment made from another format, with the `report` of the import."""

    experiment: Experiment
    report: Report = field(default_factory=Report)

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.report.notes


def build(data: Mapping[str, object], log: Log, origins: Mapping[str, str]) -> Imported:
    """Return the experiment in `data`, unless `log` has faults.

    `origins` maps paths of the experiment to paths of the input, so that a fault found only in the result is reported
    at its source.

    Raises SpecError with all faults.
    """
    log.raise_faults()
    try:
        experiment = from_data(dict(data))
    except SpecError as error:
        raise SpecError([_at_origin(problem, origins) for problem in error.problems]) from error
    return Imported(experiment=experiment, report=log.report())


def _at_origin(problem: Problem, origins: Mapping[str, str]) -> Problem:
    fits = [path for path in origins if is_below(problem.path, path)]
    if not fits:
        return problem
    longest = max(fits, key=len)
    rest = problem.path[len(longest) :]
    what = f"{problem.what} (`{problem.path}` of the experiment)" if rest else problem.what
    return Problem(what, origins[longest], problem.next)
