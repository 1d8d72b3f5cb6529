"""The schema for editors accepts the same `.symph.yaml` files as `read_settings`, and describes each key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump
from symphony_charts.settings.project import read_settings, settings_schema

VALIDATOR = jsonschema_rs.Draft202012Validator(settings_schema())
RIGHT: list[dict[str, Any]] = [
    {},
    {"team": "rl", "repository": "https://git.example.org/c.git", "environments": ["dev", "prod"], "pools": "a.yaml"},
    {"environments": {"dev": None, "prod": {"cluster": "big", "values": {"groups": {"a": {"replicas": 2}}}}}},
    {"repository": {"url": "a.git"}, "defaults": {"on": "kube"}, "pools": ["a", "b"]},
    {"allow_leaks": [{"fingerprint": "f", "reason": "a test"}]},
]
WRONG: list[dict[str, Any]] = [
    {"tem": "rl"},
    {"repository": {"branch": "main"}},
    {"environments": {"dev": {"namespcae": "x"}}},
    {"defaults": {"on": "docker"}},
    {"allow_leaks": [{"fingerprint": "f"}]},
]


@pytest.mark.parametrize("settings", RIGHT)
def test_what_is_read_is_right_in_an_editor(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / ".symph.yaml").write_text(dump(settings))
    read_settings(tmp_path / ".symph.yaml")
    VALIDATOR.validate(settings)


@pytest.mark.parametrize("settings", WRONG)
def test_what_is_refused_is_marked_in_an_editor(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / ".symph.yaml").write_text(dump(settings))
    with pytest.raises(SpecError):
        read_settings(tmp_path / ".symph.yaml")
    assert not VALIDATOR.is_valid(settings)


def test_each_key_says_what_it_is() -> None:
    records = settings_schema()["$defs"].values()
    assert [field for part in records for field, form in part["properties"].items() if not form["description"]] == []
