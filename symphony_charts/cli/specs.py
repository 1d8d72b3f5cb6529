"""Read the specs and values of a command line."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from symphony_charts.chart.release import Overrides, paths_of, user_values
from symphony_charts.cli import options, output
from symphony_charts.errors import ChartRefused, Problem, SpecError, UsageError
from symphony_charts.formats.data import Values
from symphony_charts.prepare import Prepared, prepare
from symphony_charts.settings.project import read_text, read_values
from symphony_charts.spec.files import SpecFile, is_lock

Result = TypeVar("Result")


def specs_of(paths: Sequence[str]) -> list[str]:
    """Return `paths` without lock files, which patterns like ``*.yaml`` match, too."""
    specs = [path for path in paths if not is_lock(Path(path))]
    return specs or list(paths)


def each_spec(paths: Sequence[str], prepare: Callable[[str], Result]) -> list[Result]:
    """Return the results of `prepare` for each spec, in order. Raises SpecError or ChartRefused with all problems."""
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
                for problem in error.problems:
                    place = problem.path if problem.path.startswith(path) else f"{path}, {problem.path}".rstrip(", ")
                    faults.append(problem.moved_to(place))
                is_wrong |= isinstance(error, SpecError)
            advance(1)
    if faults:
        raise SpecError(faults) if is_wrong else ChartRefused(faults)
    return results


def refuse_twins(charts: Sequence[tuple[str, str]]) -> None:
    """Raise SpecError if two specs make a chart of the same name: the second would overwrite the first."""
    first: dict[str, str] = {}
    problems = []
    for path, name in charts:
        other = first.setdefault(name, path)
        if other != path:
            what = f'{other} and {path} both make the chart "{name}"'
            problems.append(Problem(what=what, path="name", next="rename one, or package them apart"))
    if problems:
        raise SpecError(problems)


def user_values_of(args: argparse.Namespace) -> Values:
    """Return the values of the value options, with those of every file that they name. Raises UsageError, SpecError."""
    try:
        paths = [path for line in csv.reader(args.values, strict=True) for path in line]
    except csv.Error as error:
        raise UsageError(f"-f cannot be split at its commas: {error}", next="repeat -f for each file") from error
    overrides = Overrides(
        files=tuple(read_values(path) for path in paths),
        json=tuple(args.set_json),
        sets=tuple(args.set),
        strings=tuple(args.set_string),
        from_files=tuple(args.set_file),
        literals=tuple(args.set_literal),
        contents={path: read_text(path) for text in args.set_file for path in paths_of(text)},
    )
    return user_values(overrides)


def prepared_of(args: argparse.Namespace, spec: SpecFile, *, force: bool | None = None) -> Prepared:
    """Return `spec` prepared with the command line's values and node pools.

    `force` accepts a group that cannot be scheduled (None: use `--force-unschedulable`). Raises as `prepare` does.
    """
    is_forced = bool(getattr(args, "force_unschedulable", False)) if force is None else force
    variables: dict[str, object] = dict(options.parse_assignments(getattr(args, "var", []), "--var"))
    pools, system = getattr(args, "pools", ()), getattr(args, "system", None)
    return prepare(
        spec, overrides=user_values_of(args), pools=pools, variables=variables, system=system, force=is_forced
    )
