"""Overrides of a chart's values: anywhere in its schema, of any type, by any of helm's flags."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.chart.release import Overrides, user_values
from symphony_charts.formats.data import Values
from symphony_charts.settings.project import read_values
from tests.spec.drawing import ODD_TEXTS, Drawing, Schema

_ODD = [True, False, 0, -1, 3, 1.5, 2**53, "x", "", "TRUE", "null", [], {}, ["a", 1], [{"a": None}], {"a": {"b": 1}}]
# Helm allows more, in both. More replicas only take longer: their addresses are in variables.
_MOST_STEPS, _MOST_REPLICAS = 12, 50
_NEW_KEYS = ["new", "n", "on", "a.b", "x-1"]
_STRINGS = {"--set", "--set-string", "--set-literal", "--set-file", "--set-json", "-f"}


@dataclass(frozen=True, kw_only=True)
class Said:
    """Overrides of a chart's values: as words for helm, for people (`told`), and as our reading of these words."""

    words: tuple[str, ...]
    told: str
    values: Values


def say(chance: random.Random, schema: Schema, values: Values, folder: Path) -> Said:
    """Return one to three overrides of `values`; files go to `folder`."""
    drawing = Drawing(schema, chance, {})
    words: list[str] = []
    told: list[str] = []
    said: dict[str, Any] = {"files": [], "json": [], "sets": [], "strings": [], "from_files": [], "literals": []}
    contents: dict[str, str] = {}
    for number in range(chance.choice([1, 1, 2, 3])):
        path, value = _what(chance, drawing, schema, values)
        flag = chance.choice(sorted(_flags_for(value)))
        file = folder / f"over-{number}"
        if flag == "-f":
            for step in reversed(path):
                value = {step: value}
            file.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")
            said["files"].append(read_values(str(file)))
            told += [flag, json.dumps(value)]
            words += ["-f", str(file)]
            continue
        text = _text_for(flag, value)
        if flag == "--set-file":
            file.write_bytes(text.encode())
            contents[str(file)], text = text, str(file)
        name = ".".join(map(_escaped, path))
        told += [flag, f"{name}={value!r}"]
        text = f"{name}={text}"
        said[_FIELDS[flag]].append(text)
        words += [flag, text]
    lists = {name: tuple(texts) for name, texts in said.items()}
    return Said(words=tuple(words), told=" ".join(told), values=user_values(Overrides(**lists, contents=contents)))


_FIELDS = {
    "--set-json": "json",
    "--set": "sets",
    "--set-string": "strings",
    "--set-file": "from_files",
    "--set-literal": "literals",
}


def _what(chance: random.Random, drawing: Drawing, schema: Schema, values: Values) -> tuple[list[str], Any]:
    """Return a path, mostly an existing one, and a value, mostly a valid one."""
    path: list[str] = []
    here: object = values
    while True:
        schema = drawing.resolved(schema)
        there = list(here) if isinstance(here, Mapping) else []
        fields, inner = schema.get("properties"), schema.get("additionalProperties")
        if (
            not (fields or isinstance(inner, Mapping))
            or (len(path) > 1 and chance.random() < 0.1)
            or len(path) == _MOST_STEPS
        ):
            break
        names = list(fields) if fields else _NEW_KEYS
        step = chance.choice(there if there and chance.random() < (0.5 if fields else 0.85) else names)
        schema = fields[step] if fields and step in fields else inner if isinstance(inner, Mapping) else {}
        here = here.get(step) if isinstance(here, Mapping) else None
        path.append(step)
    if chance.random() < 0.1:
        return path, None
    if chance.random() < 0.12:
        return path, chance.choice([*_ODD, *ODD_TEXTS])
    value = drawing.value(schema, ".".join(path))
    if path[-1] in ("replicas", "minReplicas") and str(value).isdecimal():
        value = type(value)(int(value) % _MOST_REPLICAS)
    return path, value


def _flags_for(value: object) -> set[str]:
    if isinstance(value, str):
        return _STRINGS
    if isinstance(value, dict):
        return {"--set-json", "-f"}
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return {"--set-json", "-f"}
    return {"--set", "--set-json", "-f"}


def _text_for(flag: str, value: object) -> str:
    if flag == "--set-json":
        return json.dumps(value)
    if flag == "--set" and isinstance(value, list):
        return "{" + ",".join(_text_for(flag, item) for item in value) + "}"
    text = value if isinstance(value, str) else json.dumps(value)
    return _escaped(text, "") if flag in ("--set", "--set-string") else text


def _escaped(text: str, also: str = ".=[") -> str:
    return "".join(f"\\{letter}" if letter in f"\\,{{}}{also}" else letter for letter in text)
