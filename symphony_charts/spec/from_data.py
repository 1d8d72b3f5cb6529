"""Data (of YAML, JSON or a builder) as a checked Experiment."""

from __future__ import annotations

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.shorthand import expand
from symphony_charts.spec.type_errors import experiment_faults

__all__ = ["from_data", "to_record"]


def from_data(data: object, *, for_cluster: bool = False) -> Experiment:
    """The experiment that `data` describes, shorthand expanded, names sanitised, everything checked.

    Raises SpecError with all faults: those of the types first; only a spec without them is checked for its meaning.
    """
    return finish(to_record(data), for_cluster=for_cluster)


def to_record(data: object) -> Experiment:
    """`from_data` without `finish`: the record as written, names and references unchecked."""
    if not isinstance(data, dict):
        what = "the experiment is empty" if data is None else "an experiment is a map of keys"
        raise SpecError.one(what, next="begin with `name:` and `processes:`")
    try:
        expanded, problems = expand(data)
        record = None if problems else _convert(expanded)
    except RecursionError as error:
        raise SpecError.one("nested too deeply", next="an experiment needs no such depth") from error
    if record is not None:
        return record
    raise SpecError([*problems, *experiment_faults(expanded)])


def _convert(expanded: dict[str, object]) -> Experiment | None:
    try:
        return msgspec.convert(expanded, Experiment)
    except msgspec.ValidationError as error:
        if next(experiment_faults(expanded), None) is None:
            raise SpecError([Problem(what=str(error))]) from error
        return None
