"""The complete values of a release, and its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart, Release
from symphony_charts.chart.schema import ValuesSchema, check_values
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import OBJECT_NAME

__all__ = ["Release", "merge_values", "render_release"]

# Source: helm, pkg/chartutil/validate_name.go.
_MAX_RELEASE = 53


def merge_values(schema: ValuesSchema, over: Mapping[str, object], base: BuiltChart | None = None) -> dict[str, Any]:
    """Return the values of a chart with `over` on top, as Helm merges them.

    `schema` is that of the chart; `base` is the chart with other default values.

    Raises:
        SpecError: The schema refuses the values, or they belong to another version of the experiment.
    """
    chart = base or schema.chart
    values = merge(chart.values, over)
    if values.get("specDigest") != chart.values["specDigest"]:
        what = "the values are those of another version of the experiment, and the chart refuses them"
        raise SpecError.one(what, "specDigest", "leave `specDigest` out of them")
    check_values(schema, values)
    return values


def render_release(chart: BuiltChart, values: Mapping[str, Any], release: Release) -> list[dict[str, Any]]:
    """Return all objects that Helm makes of `chart` and complete `values`, the test pod included.

    The values must fit the chart's schema.

    Raises:
        SpecError: Helm or the chart refuses the release, or two objects have one name: the cluster would keep only the
            last.
    """
    if not OBJECT_NAME.fullmatch(release.name) or len(release.name) > _MAX_RELEASE:
        what = f'"{release.name}" cannot be the name of a release'
        raise SpecError.one(what, next=f"use at most {_MAX_RELEASE} lower-case letters, digits and hyphens")
    objects = chart.objects(values, release)
    names = Counter(f"{item['kind']}/{sub(item, 'metadata').get('name')}" for item in objects)
    problems = [
        Problem(what=f"two objects of the chart have the name {name}", path=name, next="rename a group or a service")
        for name, count in names.items()
        if count > 1
    ]
    if problems:
        raise SpecError(problems)
    return objects
