"""Data (of YAML, JSON or a builder) becomes a checked Experiment, and an Experiment becomes data or text again."""

from __future__ import annotations

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.added_kinds import decoded
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.shorthand import expand
from symphony_charts.spec.type_errors import experiment_faults

__all__ = ["from_data", "to_data", "to_json", "to_record", "to_yaml"]


def from_data(data: object, *, for_cluster: bool = False) -> Experiment:
    """Return the experiment that `data` describes, shorthand expanded, names sanitised, everything checked.

    Raises SpecError with all faults: those of the types first; only a spec without them is checked for its meaning.
    """
    return finish(to_record(data), for_cluster=for_cluster)


def to_record(data: object) -> Experiment:
    """Return the record as written; names and references are not checked."""
    if not isinstance(data, dict):
        what = "the experiment is empty" if data is None else "an experiment is a map of keys"
        raise SpecError.one(what, next="begin with `name:` and `processes:`")
    try:
        expanded, problems = expand(data)
        record = None if problems else _convert(_in_order(data, expanded))
    except RecursionError as error:
        raise SpecError.one("nested too deeply", next="an experiment needs no such depth") from error
    if record is not None:
        return record
    raise SpecError([*problems, *experiment_faults(expanded)])


def _in_order(written: dict[object, object], expanded: dict[str, object]) -> dict[str, object]:
    """Return the data with `order` set if lone processes are written before the groups."""
    keys = [key for key in written if key in ("processes", "groups")]
    if keys != ["processes", "groups"] or "order" in written:
        return expanded
    lone, groups = sub(expanded, "processes"), sub(expanded, "groups")
    grouped = [f"{name}/{process}" for name in groups for process in sub(groups, name, "processes")]
    return {**expanded, "order": [*lone, *grouped]} if lone and grouped else expanded


def _convert(expanded: dict[str, object]) -> Experiment | None:
    try:
        return decoded(msgspec.convert(expanded, Experiment))
    except msgspec.ValidationError as error:
        if next(experiment_faults(expanded), None) is None:
            raise SpecError([Problem(what=str(error))]) from error
        return None


def to_data(experiment: Experiment) -> dict[str, object]:
    """Return the experiment as JSON types, in the order of the records; what has its default is left out."""
    data: dict[str, object] = msgspec.to_builtins(experiment)
    return data


def to_yaml(experiment: Experiment) -> str:
    """Return the experiment as a YAML document."""
    return dump(to_data(experiment))


def to_json(experiment: Experiment) -> str:
    """Return the experiment as indented JSON with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(experiment), indent=2).decode() + "\n"
