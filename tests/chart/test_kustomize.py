"""The real kubectl builds the folder of `export kustomize` to exactly the objects of the chart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings

from symphony_charts.chart.folder import kustomize_files
from symphony_charts.errors import SpecError
from symphony_charts.spec import files as specfile
from symphony_charts.spec.data import from_data
from symphony_charts.system.files import write_tree
from tests.chart.harness import EXAMPLE_NAMES, EXAMPLES, Objects, chart_of, native_objects, objects_in
from tests.chart.strategies import experiments
from tests.tools import kubectl


def build(folder: Path) -> Objects:
    program = kubectl()
    if program is None:
        if os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail("kubectl is not unpacked: python -m tests.tools")
        pytest.skip("kubectl is not unpacked: python -m tests.tools")
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    ended = subprocess.run(
        [program, "kustomize", folder], capture_output=True, text=True, timeout=60, env=env, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return objects_in(ended.stdout)


def built(objects: Objects, folder: Path, **said: Any) -> Objects:
    """Return the objects that kubectl builds from the folder of some objects."""
    write_tree(folder, kustomize_files(objects.values(), **said))
    return build(folder)


def objects_of_kind(name: str, kind: str) -> Objects:
    path = next(path for path in EXAMPLES if path.parent.name == name)
    return native_objects(chart_of(specfile.read(path, [f"workload.kind={kind}"]).experiment))


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "jobs") for name in EXAMPLE_NAMES), ("rl", "jobset"), ("rl", "argo")]
)
def test_the_examples_are_built_to_the_same_objects(name: str, kind: str, tmp_path: Path) -> None:
    objects = objects_of_kind(name, kind)
    assert built(objects, tmp_path / "base") == objects


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_generated_experiments_are_built_to_the_same_objects(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    try:
        objects = native_objects(chart_of(from_data(data)))
    except SpecError:
        reject()  # Kubernetes requires more than the overlay has.
    assert built(objects, tmp_path_factory.mktemp("base")) == objects


def test_the_namespace_stands_in_one_place_and_reaches_all_objects(tmp_path: Path) -> None:
    objects = objects_of_kind("rl", "argo")
    got = built(objects, tmp_path / "base", namespace="rl")
    assert {item["metadata"]["namespace"] for item in got.values()} == {"rl"}  # type: ignore[index]  # parsed YAML


def test_two_kinds_of_one_name_are_two_files() -> None:
    def item(version: str) -> dict[str, object]:
        return {"apiVersion": version, "kind": "Job", "metadata": {"name": "a"}}

    assert sorted(kustomize_files([item("batch/v1"), item("batch.volcano.sh/v1alpha1")])) == [
        "job-a-batch.volcano.sh.yaml",
        "job-a.yaml",
        "kustomization.yaml",
    ]
