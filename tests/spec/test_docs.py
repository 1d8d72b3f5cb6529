"""The examples in docs/spec.md are valid and mean what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment, PodSettings, Process

PAGE = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_python_blocks_build_the_experiment_of_the_first_yaml_block() -> None:
    build, edit = blocks("python")
    names: dict[str, Any] = {}
    exec(build.replace("cluster.launch(exp)", "made = exp.finish()"), names)  # noqa: S102 - the page's own code
    assert names["made"] == from_data(load(blocks("yaml")[0]))
    exec(edit, names)  # noqa: S102 - the page's own code
    assert names["exp"].finish().processes["agent"].env == {"A": "1"}


@pytest.mark.parametrize("record", [Experiment, Process, PodSettings])
def test_every_field_is_named(record: type[Experiment | Process | PodSettings]) -> None:
    missing = [field for field in record.__struct_fields__ if f"`{field}`" not in PAGE]
    assert missing == []
