"""An import reports the experiment, and everything of the input that it could not carry over as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.errors import Problem, SpecError
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment

__all__ = ["Imported", "Log", "Note", "build"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something of the input, at `path`, that was left out or carried over in another way, and what to do about it."""

    path: str
    what: str
    next: str = ""


@dataclass(slots=True)
class Log:
    """Collects, while an input is read, its faults and what is lost of it; nothing is raised before the end."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def fault(self, path: str, what: str, next: str = "") -> None:
        """Keep a fault of the input."""
        self.problems.append(Problem(what=what, path=path, next=next))

    def note(self, path: str, what: str, next: str = "") -> None:
        """Keep something that was not carried over as it was; the same thing is said once."""
        note = Note(path=path, what=what, next=next)
        if note not in self.notes:
            self.notes.append(note)

    def raise_faults(self) -> None:
        """Raise SpecError with every fault kept so far, if there is one."""
        if self.problems:
            raise SpecError(self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An experiment made from another format, with `notes` on what did not come over as it was, in input order."""

    experiment: Experiment
    notes: tuple[Note, ...] = ()

    def with_notes(self, notes: tuple[Note, ...]) -> Imported:
        """This import with other notes."""
        return Imported(experiment=self.experiment, notes=notes)


def build(data: Mapping[str, object], log: Log, origins: Mapping[str, str]) -> Imported:
    """The experiment that `data` describes, unless `log` holds faults.

    `origins` maps paths of the experiment to the paths of the input they came from, so that a fault found only in
    the result is reported where its user can mend it.

    Raises SpecError with all faults.
    """
    log.raise_faults()
    try:
        experiment = from_data(dict(data))
    except SpecError as error:
        raise SpecError([_at_origin(problem, origins) for problem in error.problems]) from error
    return Imported(experiment=experiment, notes=tuple(log.notes))


def _at_origin(problem: Problem, origins: Mapping[str, str]) -> Problem:
    fits = [path for path in origins if problem.path == path or problem.path.startswith((f"{path}.", f"{path}["))]
    if not fits:
        return problem
    longest = max(fits, key=len)
    rest = problem.path[len(longest) :]
    what = f"{problem.what} (as `{problem.path}` of the experiment)" if rest else problem.what
    return Problem(what=what, path=origins[longest], next=problem.next)
