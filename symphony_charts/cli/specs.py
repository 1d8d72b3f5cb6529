"""`each_spec` does the same with every spec file of a command line, and reports the faults of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from symphony_charts.cli import output
from symphony_charts.errors import ChartRefused, Problem, SpecError
from symphony_charts.spec.files import is_lock

__all__ = ["each_spec", "refuse_twins", "specs_of"]

Result = TypeVar("Result")


def specs_of(paths: Sequence[str]) -> list[str]:
    """The spec files among `paths`: the lock files that a pattern like ``*.yaml`` catches as well are left out."""
    specs = [path for path in paths if not is_lock(Path(path))]
    return specs or list(paths)


def each_spec(paths: Sequence[str], prepare: Callable[[str], Result]) -> list[Result]:
    """Return what `prepare` makes of each spec, in order. Raises SpecError or ChartRefused with the faults of all."""
    results: list[Result] = []
    faults: list[Problem] = []
    is_wrong = False
    with output.progress("packaging", len(paths)) as advance:
        for path in paths:
            try:
                results.append(prepare(path))
            except (SpecError, ChartRefused) as error:
                if len(paths) == 1:
                    raise
                faults += [_in_file(problem, path) for problem in error.problems]
                is_wrong |= isinstance(error, SpecError)
            advance(1)
    if faults:
        raise SpecError(faults) if is_wrong else ChartRefused(faults)
    return results


def _in_file(problem: Problem, path: str) -> Problem:
    """The problem with the file that has it, where it does not say so itself."""
    if problem.path.startswith(path):
        return problem
    return problem.moved_to(", ".join(part for part in (path, problem.path) if part))


def refuse_twins(charts: Sequence[tuple[str, str]]) -> None:
    """Raise SpecError where two specs make a chart of one name: the second would overwrite the first."""
    first: dict[str, str] = {}
    problems = []
    for path, name in charts:
        other = first.setdefault(name, path)
        if other != path:
            what = f'{other} and {path} both make the chart "{name}"'
            problems.append(Problem(what=what, path="name", next="rename one, or package them apart"))
    if problems:
        raise SpecError(problems)
