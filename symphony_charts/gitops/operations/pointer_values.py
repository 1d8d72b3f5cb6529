"""The values of an environment against the schema of the chart that it runs, as helm holds them before it renders."""

from __future__ import annotations

from symphony_charts.chart.files.values_check import schema_faults
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import Problem
from symphony_charts.formats.yaml_text import load
from symphony_charts.gitops.operations.pointer import Pointer

__all__ = ["chart_files", "pointer_faults"]


def chart_files(chart: str) -> tuple[str, str]:
    """The paths of a published chart's values, and of their schema."""
    return f"{chart}/values.yaml", f"{chart}/values.schema.json"


def pointer_faults(pointer: Pointer, values: bytes | None, schema: bytes | None) -> list[Problem]:
    """What the schema of its chart refuses of a pointer's values; nothing where either file of the chart is absent.

    Raises SpecError for values that are no YAML.
    """
    if values is None or schema is None:
        return []
    defaults = load(values.decode())
    return schema_faults(merge(defaults if isinstance(defaults, dict) else {}, pointer.values), schema)
