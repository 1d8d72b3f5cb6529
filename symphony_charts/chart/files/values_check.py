"""Merged values against ``values.schema.json``, as helm holds them against it before it renders anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from symphony_charts.chart.files.values_schema import schema_text
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.paths import nearest

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["check_schema", "schema_faults"]

# What a value of each named type looks like, for people.
_WORDS = {
    "bool": "true or false",
    "integer": "a whole number",
    "object": "a map",
    "objects": "a list of maps",
    "port": "a port from 1 to 65535",
    "quantities": "a map of quantities",
    "scalar": "a text, number or boolean",
    "signed": "a whole number",
    "strings": "a map of texts",
    "text": "a text",
    "texts": "a text or a list of texts",
    "words": "a list of texts",
}


def check_schema(values: Mapping[str, object], schema: bytes | None = None) -> None:
    """Raise SpecError with every value that the chart's own schema refuses, `schema` being that of another version."""
    problems = schema_faults(values, schema)
    if problems:
        raise SpecError(problems)


def schema_faults(values: Mapping[str, object], schema: bytes | None = None) -> list[Problem]:
    """Every value that ``values.schema.json`` refuses, by its path, with the nearest name that there is."""
    text = schema_text() if schema is None else schema
    validator = _validator(text)
    if validator.is_valid(values):
        return []
    rules = json.loads(text)
    seen: dict[Problem, None] = {}
    for error in validator.iter_errors(values):
        steps = list(error.instance_path)
        for problem in _problems(rules, steps, _at(values, steps), error.message):
            seen[problem] = None
    return list(seen)


@cache
def _validator(schema: bytes) -> jsonschema_rs.Draft7Validator:
    # 15 ms to import, which verbs without values need not pay.
    import jsonschema_rs

    return jsonschema_rs.Draft7Validator(json.loads(schema))


def _problems(rules: dict[str, object], steps: Sequence[str | int], value: object, said: str) -> Iterator[Problem]:
    """The faults at one place: keys that are not known, keys that are missing, or a value of another type."""
    path = ".".join(map(str, steps))
    rule = _rule_at(rules, steps)
    if isinstance(value, dict) and "properties" in rule:
        known = rule["properties"] if isinstance(rule["properties"], dict) else {}
        for key in sorted(set(value) - set(known)) if rule.get("additionalProperties") is False else ():
            near = nearest(str(key), known)
            next_step = f'did you mean "{near}"?' if near else f"known here: {', '.join(sorted(known)[:12])}"
            yield Problem(what=f'the chart has no value "{key}" here', path=_join(path, key), next=next_step)
        required = rule.get("required")
        for key in required if isinstance(required, list) else ():
            if key not in value:
                what = f"{path} needs {_article(str(key))}"
                yield Problem(what=what, path=_join(path, key), next=f"set {_join(path, key)}")
    elif isinstance(rule.get("enum"), list):
        yield _not_one_of(value, [str(choice) for choice in _list(rule["enum"])], path)
    else:
        wanted = _WORDS.get(str(rule.get("$ref", "")).rpartition("/")[2])
        what = f"{json.dumps(value)} is not {wanted}" if wanted else said
        yield Problem(what=what, path=path, next=f"set {path} to {wanted}" if wanted else "")


def _not_one_of(value: object, choices: list[str], path: str) -> Problem:
    near = nearest(str(value), choices)
    rest = f"one of {', '.join(choice or json.dumps('') for choice in choices)}"
    hint = f'did you mean "{near}"? It is ' if near else ""
    return Problem(what=f"{json.dumps(value)} is no {path.rpartition('.')[2]}", path=path, next=hint + rest)


def _article(key: str) -> str:
    return f"{'an' if key[0] in 'aeiou' else 'a'} {key}"


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _at(values: object, steps: Sequence[str | int]) -> object:
    for step in steps:
        values = values[step] if isinstance(values, dict) else _list(values)[int(step)]
    return values


def _rule_at(rules: dict[str, object], steps: Sequence[str | int]) -> dict[str, object]:
    """The schema of the value at a path; that of the last named type above it, where the path goes on inside one."""
    for step in steps:
        properties, others = rules.get("properties"), rules.get("additionalProperties")
        if isinstance(properties, dict) and step in properties:
            rules = properties[str(step)]
        elif isinstance(others, dict):
            rules = others
    return rules
