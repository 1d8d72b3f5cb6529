"""Charts on disk, real helm, and comparison of its objects with the evaluator's."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
import yaml

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.files import Chart, ChartTemplate, make_chart
from symphony_charts.chart.release import Overrides, merge_values, open_chart, render_release, user_values
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.spec import files as specfile
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.spec.sources import key_of
from symphony_charts.spec.workload import Workload
from symphony_charts.system import package_data
from tests.tools import HELM_VERSIONS, helm

Objects: TypeAlias = dict[tuple[str, str], dict[str, object]]

EXAMPLES = sorted(Path(__file__).resolve().parents[2].glob("examples/*/experiment.*"))
EXAMPLE_NAMES = [path.parent.name for path in EXAMPLES if not path.name.endswith(".lock.yaml")]


class _Loader(yaml.CSafeLoader):
    """YAML as JSON types: all but JSON numbers, booleans and null is text, as in helm's own reader."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:null|~|)\Z"), ["n", "~", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789"))
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-0123456789"))
# Go prints text unquoted that looks like a number but exceeds a float64, such as the run 664e1764.
_Loader.add_constructor(
    "tag:yaml.org,2002:float",
    lambda _loader, node: float(node.value) if math.isfinite(float(node.value)) else node.value,
)


@cache
def template() -> ChartTemplate:
    """Return the chart template of the checkout."""
    return ChartTemplate(package_data.folder("chart-template"))


def experiment_of(**data: object) -> Experiment:
    """Return a finished experiment, with a default name and image."""
    return from_data({"name": "exp", "image": "busybox:1.37.0", **data})


def built_of(experiment: Experiment) -> BuiltChart:
    """Return the trees of the experiment's chart, with all Secrets sealed that have to be."""
    chart = build(experiment, allocate(experiment))
    if experiment.secrets and experiment.secret_source.source == "sealed":
        secrets = {**chart.values["secrets"], "encryptedData": {key_of(each): "AgB1" for each in experiment.secrets}}
        chart = chart.with_values({**chart.values, "secrets": secrets})
    return chart


def chart_of(experiment: Experiment, version: str = "0.1.0") -> Chart:
    """Return the experiment's chart, with all Secrets sealed that have to be."""
    chart = built_of(experiment)
    return make_chart(chart, ValuesSchema(chart), version, template())


def example(name: str, workload: Mapping[str, object] | None = None) -> Experiment:
    """Return the experiment of an example, with these settings of its workload."""
    path = next(path for path in EXAMPLES if path.parent.name == name)
    found = specfile.read(path).experiment
    return msgspec.structs.replace(found, workload=msgspec.convert(workload, Workload)) if workload else found


@cache
def example_chart(name: str) -> Chart:
    return chart_of(example(name))


def write_chart(chart: Chart, folder: Path) -> Path:
    """Write the chart's files below `folder`; return the chart's folder."""
    for path, content in chart.files.items():
        file = folder / chart.name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder / chart.name


def run_helm(version: str, *args: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run helm with its own environment; skip the test if helm is not unpacked."""
    program = helm(version)
    if program is None:
        reason = f"helm {version} is not unpacked: python -m tests.tools"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    home = program.parent / "home"
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
    ended = subprocess.run(
        [str(program), *map(str, args)], capture_output=True, text=True, timeout=60, env=env, check=False
    )
    if check and ended.returncode:
        raise AssertionError(f"helm {version} {' '.join(map(str, args))}:\n{ended.stderr}\n{ended.stdout}")
    return ended


def helm_objects(version: str, folder: Path, *args: str, release: str = "r1") -> Objects:
    return objects_in(run_helm(version, "template", release, folder, *args).stdout)


def objects_in(text: str) -> Objects:
    """Return the objects in a stream of YAML, read as Kubernetes reads it."""
    return index(yaml.load_all(text, _Loader))


def native_objects(
    chart: Chart, sets: Sequence[str] = (), values: Mapping[str, object] | None = None, release: str = "r1"
) -> Objects:
    """Return the evaluator's objects of the chart's own files, converted through JSON like helm's."""
    built = open_chart(chart.files, chart.name)
    merged = merge_values(ValuesSchema(built), user_values(Overrides(files=(values or {},), sets=tuple(sets))))
    made = render_release(built, merged, Release(name=release, version=chart.version))
    return index(json.loads(json.dumps(made)))


def set_values(sets: Sequence[str]) -> dict[str, object]:
    return user_values(Overrides(sets=tuple(sets)))


class _StrictLoader(_Loader):
    """A loader that refuses duplicate keys in a map."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key occurs twice: {keys}"
        return super().construct_mapping(node, deep=deep)


def object_in(text: str) -> dict[str, object] | None:
    """Return the object in a document, read as Kubernetes reads it; None if it holds comments only."""
    found: dict[str, object] | None = yaml.load(text, _StrictLoader)  # noqa: S506 - made of a safe one
    return found


def index(objects: object) -> Objects:
    """Return objects by kind and name; fail on duplicates."""
    found: Objects = {}
    for item in objects:  # type: ignore[attr-defined]  # parsed YAML
        if item:
            key = (item["kind"], item["metadata"]["name"])
            assert key not in found, f"two objects are {key}"
            found[key] = item
    return found


def assert_same(
    chart: Chart, folder: Path, sets: Sequence[str] = (), values: Mapping[str, object] | None = None
) -> None:
    """Check that both helms and the evaluator agree on every object."""
    where = write_chart(chart, folder)
    args = [word for text in sets for word in ("--set", text)]
    if values is not None:
        file = folder / "over.yaml"
        file.write_text(json.dumps(values, ensure_ascii=False) + "\n")
        args += ["-f", str(file)]
    wanted = native_objects(chart, sets, values)
    for version in HELM_VERSIONS:
        got = helm_objects(version, where, *args)
        assert sorted(got) == sorted(wanted), version
        for key, item in got.items():
            assert item == wanted[key], (version, key)
