"""An experiment as data and text; `symphony_charts.spec.from_data.from_data` reads it back unchanged."""

from __future__ import annotations

import msgspec

from symphony_charts.formats.yaml_text import dump
from symphony_charts.spec.model import Experiment

__all__ = ["to_data", "to_json", "to_yaml"]


def to_data(experiment: Experiment) -> dict[str, object]:
    """The experiment as JSON types, in the order of the records; what has its default is left out."""
    data: dict[str, object] = msgspec.to_builtins(experiment)
    return data


def to_yaml(experiment: Experiment) -> str:
    """The experiment as a YAML document."""
    return dump(to_data(experiment))


def to_json(experiment: Experiment) -> str:
    """The experiment as indented JSON with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(experiment), indent=2).decode() + "\n"
