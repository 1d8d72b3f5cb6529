"""Many bad specs, each a good one with one fault at a known place: refused, with the place in the message."""

from __future__ import annotations

import copy
from functools import reduce
from operator import getitem
from typing import Any

import jsonschema_rs
import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.data import from_data
from symphony_charts.spec.json_schema import json_schema

GOOD: dict[str, Any] = {
    "name": "rl",
    "owner": "jim",
    "image": "u:1",
    "volumes": {"data": {"type": "nfs", "server": "s", "path": "/x"}},
    "configs": {"a.yaml": {"text": "x"}},
    "secrets": [{"file": "~/.key"}],
    "groups": {
        "nonagent": {
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            "node_selector": {"pool": "cpu"},
            "processes": {
                "learner": {"command": ["l"], "binds": {"params": None}, "mounts": [{"volume": "data", "at": "/d"}]},
                "replay": {"cmds": ["r"], "binds": {"replay": 6000}, "lifecycle": "service"},
            },
        }
    },
    "processes": {
        "agent": {
            "command": ["a"],
            "args": ["--n", "1"],
            "env": {"LR": "1e-4"},
            "connects": ["params", "replay"],
            "replicas": 4,
            "requests": {"cpu": "1", "memory": "2Gi"},
            "ready": {"tcp": {"port": 80}},
            "labels": {"tier": "a"},
        },
        "eval": {"command": ["e"], "connects": ["params"], "exposes": {"tb": 6006}, "restart": "never"},
    },
    "done_when": ["learner"],
    "workload": {"kind": "jobs"},
    "local": {"preamble": ["x"]},
}
WRONG_TYPES: dict[type, list[Any]] = {
    type(None): ["x", [1], 1.5],
    str: [7, ["x"], {"a": "b"}],
    int: ["x", [1], 1.5, True],
    list: [7, True],
    dict: [7, ["x", 7], True],
}
# Fields where a value of another type may be a valid short form.
MAY_BE_SHORT = {"secrets", "tolerations", "mounts", "binds", "exposes", "ready", "tcp", "port"}
# Maps with user-defined keys: any key is valid there.
NAMED_MAPS = {
    *("volumes", "configs", "groups", "processes", "env", "node_selector", "labels", "requests", "binds", "exposes"),
}
# Fields that may be null: those whose default is null, and ports.
NULLABLE = {
    *("owner", "image", "restart", "command", "args", "cmds", "ready", "operator", "effect", "key", "text", "tcp"),
    *("replay", "params", "tb"),
}
FREE_TEXT = {"LR", "cpu", "memory", "tier", "pool", "args", "command", "cmds", "preamble"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside `value`."""
    steps = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for step in steps for place in [(*path, step), *places(value[step], (*path, step))]]


def text_of(path: tuple[Any, ...]) -> str:
    """Return `path` in the notation of errors."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def at(path: tuple[Any, ...], data: Any = GOOD) -> Any:
    return reduce(getitem, path, data)


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return GOOD with `value` at `path`."""
    data = copy.deepcopy(GOOD)
    at(path[:-1], data)[path[-1]] = value
    return data


def is_short_form(path: tuple[Any, ...]) -> bool:
    """Return True if a value of another type may be valid at `path`."""
    return [step for step in path if isinstance(step, str)][-1] in {*MAY_BE_SHORT, *FREE_TEXT, "a.yaml", "labels"}


def bad_specs() -> list[tuple[str, dict[str, Any], str]]:
    """Return (id, data, path) of every mutation."""
    specs: list[tuple[str, dict[str, Any], str]] = []
    for path in places(GOOD):
        value, where = at(path), text_of(path)
        if not is_short_form(path):
            for index, wrong in enumerate(WRONG_TYPES[type(value)]):
                specs.append((f"type{index} {where}", changed(path, wrong), where))
        if isinstance(value, str | dict | list) and path[-1] not in NULLABLE:
            specs.append((f"null {where}", changed(path, None), where))
        if isinstance(value, dict) and path[-1] not in NAMED_MAPS:
            specs.append((f"key {where}", changed((*path, "nonsense_key"), 1), f"{where}.nonsense_key"))
    return specs


SPECS = bad_specs()


def test_the_spec_is_good_before_it_is_broken() -> None:
    from_data(GOOD)


@pytest.mark.parametrize(("data", "path"), [spec[1:] for spec in SPECS], ids=[spec[0] for spec in SPECS])
def test_a_broken_spec_is_refused_and_the_place_is_named(data: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        from_data(load(dump(data)))
    assert caught.value.exit_code == 3
    assert path in str(caught.value)


def test_the_json_schema_refuses_most_of_them() -> None:
    schema = jsonschema_rs.Draft202012Validator(json_schema())
    refused = [name for name, data, _ in SPECS if not schema.is_valid(data)]
    assert len(refused) > 170
