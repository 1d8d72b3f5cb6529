"""The JSON Schema describes each field for editors, from the docstrings of the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from symphony_charts.spec import model, sources, workload
from symphony_charts.spec.json_schema import field_texts, json_schema
from symphony_charts.spec.sources import Record

RECORDS = sorted(
    {
        value
        for module in (model, sources, workload)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Record) and value is not Record
    },
    key=lambda record: record.__name__,
)


def fields_in(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field that the schema names, at any depth."""
    if isinstance(schema, dict):
        fields = schema.get("properties", {})
        yield from ((f"{path}.{name}", field) for name, field in fields.items())
        parts = [(name, part) for name, part in schema.items() if name != "properties"] + list(fields.items())
        for name, part in parts:
            yield from fields_in(part, f"{path}.{name}")
    elif isinstance(schema, list):
        for number, part in enumerate(schema):
            yield from fields_in(part, f"{path}[{number}]")


def test_every_field_says_what_it_is() -> None:
    fields = list(fields_in(json_schema()))
    assert len(fields) > 300
    assert [path for path, field in fields if not field.get("description")] == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_docstring_tells_of_the_fields_of_its_record_alone(record: type[msgspec.Struct]) -> None:
    assert set(field_texts(record)) == set(record.__struct_fields__)
