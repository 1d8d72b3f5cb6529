"""Merged values as the objects of a release: the one place where values become objects, and where they are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from symphony_charts.chart.files.values_schema import check_schema
from symphony_charts.chart.render.assemble import Release, objects_of
from symphony_charts.chart.render.model import Model, build_model
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub

__all__ = ["Release", "render_release"]


def render_release(
    values: Mapping[str, object], release: Release, *, schema: bytes | None = None
) -> tuple[Model, list[dict[str, object]]]:
    """All objects of a release, as helm would render them from these merged `values`, the test pod included.

    Before them comes the model of the release that they are made from.

    `schema` is the ``values.schema.json`` of a chart that another version made. Raises SpecError with every value that
    the schema refuses, where the templates fail, and for two objects of one name, of which the cluster keeps the last.
    """
    check_schema(values, schema)
    model = build_model(values, release)
    objects = objects_of(model)
    names = Counter(f"{item['kind']}/{sub(item, 'metadata').get('name')}" for item in objects)
    twins = [name for name, count in names.items() if count > 1]
    if twins:
        raise SpecError(
            Problem(what=f"two objects of the chart are called {name}", path=name, next="rename a group or a service")
            for name in twins
        )
    return model, objects
