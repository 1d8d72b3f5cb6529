"""The generator of experiments covers all of `symph schema`, and the schema and the reader agree.

A field that is never drawn is never tested against real helm: `tests/e2e/test_drawn_charts.py`. For a new field, add
its possible values to `tests/spec/drawn_words.py`, unless any text or number is valid.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data, to_yaml
from symphony_charts.spec.json_schema import json_schema
from tests.spec.drawing import parts_of, reached_by
from tests.spec.drawn_experiments import draw
from tests.spec.drawn_words import NEVER_ALONE

_CASES = 400


def test_every_field_form_and_word_of_the_schema_is_drawn_and_survives_text_somewhere(tmp_path: Path) -> None:
    schema = json_schema()
    left = parts_of(schema)
    assert len(left) > 700
    assert left >= NEVER_ALONE.keys()
    left -= NEVER_ALONE.keys()
    for drawn in itertools.islice(draw(1, tmp_path), _CASES):
        experiment = from_data(drawn.data)
        assert from_data(load(to_yaml(experiment))) == experiment
        left -= reached_by(schema, drawn.data)
        if not left:
            break
    assert not left, f"{sorted(left)} are in no right experiment of {_CASES}: say in drawn_words.py what they may be"


@pytest.mark.parametrize("holder", ["process", "experiment"])
def test_variables_of_one_machine_are_text_for_the_schema_as_for_the_reader(holder: str) -> None:
    local = {"env": {"A": {"secret": "s", "key": "k"}}}
    process = {"command": ["x"], **({"local": local} if holder == "process" else {})}
    with pytest.raises(SpecError, match="expected text, got a map"):
        from_data({"name": "e", "processes": {"p": process}, **({"local": local} if holder == "experiment" else {})})
    record = "LocalProcess" if holder == "process" else "LocalSettings"
    values = json_schema()["$defs"][record]["properties"]["env"]["additionalProperties"]
    assert values == {"type": ["string", "number", "boolean"]}


def test_annotations_are_text_wherever_they_stand() -> None:
    experiment = from_data(
        {
            "name": "e",
            "processes": {"p": {"command": ["x"], "exposes": "web"}},
            "expose": {"web": {"annotations": {"example.org/a": True, "example.org/b": 7}}},
            "workload": {"kind": "appwrapper", "appwrapper": {"annotations": {"example.org/c": False}}},
        }
    )
    assert experiment.expose["web"].annotations == {"example.org/a": "true", "example.org/b": "7"}
    assert experiment.workload.appwrapper.annotations == {"example.org/c": "false"}
