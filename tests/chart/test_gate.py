"""Helm prints the evaluator's objects of a packaged chart, and users' text arrives unchanged.

`test_judges.py` compares both under drawn values; here the charts have all files of the template.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from symphony_charts.kinds.registry import kind_of, opened
from tests.chart.harness import (
    EXAMPLE_NAMES,
    assert_same,
    chart_of,
    example_chart,
    experiment_of,
    helm_objects,
    native_objects,
    write_chart,
)
from tests.chart.strategies import HOSTILE, hostile_text
from tests.tools import HELM_VERSIONS

WORKLOADS: list[dict[str, object]] = [
    {},
    {"kind": "jobset"},
    {"kind": "appwrapper"},
    {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}},
    {"kind": "volcano"},
    {"kind": "dijob"},
]


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_helm_prints_what_the_evaluator_makes(name: str, tmp_path: Path) -> None:
    assert_same(example_chart(name), tmp_path)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(hostile_text, min_size=1, max_size=8), st.sampled_from(WORKLOADS))
@example(list(HOSTILE), WORKLOADS[0])
@example(list(HOSTILE), WORKLOADS[1])
@example(list(HOSTILE), WORKLOADS[2])
@example(list(HOSTILE), WORKLOADS[3])
@example(list(HOSTILE), WORKLOADS[4])
@example(list(HOSTILE), WORKLOADS[5])
def test_hostile_strings_come_back_intact(texts: list[str], workload: dict[str, object]) -> None:
    env = {f"E{index}": text for index, text in enumerate(texts)}
    experiment = experiment_of(
        processes={"p": {"command": ["prog", *texts], "args": texts, "env": env, "annotations": {"note": texts[0]}}},
        configs={f"f{index}": {"text": text} for index, text in enumerate(texts)},
        workload=workload,
    )
    chart = chart_of(experiment)
    with tempfile.TemporaryDirectory() as folder:
        where = write_chart(chart, Path(folder))
        for version in HELM_VERSIONS:
            objects = helm_objects(version, where)
            (job,) = [item for item in opened(objects.values()) if kind_of(item) == "Job"]
            (config,) = [item for key, item in objects.items() if key[0] == "ConfigMap" and "f0" in item["data"]]  # type: ignore[operator]  # parsed YAML
            container = job["spec"]["template"]["spec"]["containers"][0]  # type: ignore[index]  # parsed YAML
            assert container["command"] == ["prog", *texts]
            assert container["args"] == texts
            assert {entry["name"]: entry.get("value") for entry in container["env"]}.items() >= env.items()
            assert config["data"] == {f"f{index}": text for index, text in enumerate(texts)}
            assert objects == native_objects(chart)
