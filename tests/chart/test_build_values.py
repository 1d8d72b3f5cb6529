"""The values of a chart: every path that its trees read, a schema as strict as Helm's, and helpful errors."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.evaluate import Reader
from symphony_charts.chart.fields import FIELDS, pattern_of
from symphony_charts.chart.release import merge
from symphony_charts.chart.schema import ValuesSchema, check_values, values_text
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from symphony_charts.system import package_data
from tests.chart.harness import helm_objects, index, run_helm, set_values
from tests.tools import HELM_VERSIONS

ODD_TEXT = "\u0085 a\u2028b \u2029\ufeff{{ .Values.x }}\x7f\n\t😀 # no: comment\r\n"
# An experiment with a value of every type.
RICH = {
    "name": "rich",
    "image": "ghcr.io/lab/rl:1.4",
    "workload": {"kind": "jobs", "gang": "kueue", "queue": "team"},
    "secrets": ["token"],
    "secret_source": {"source": "external", "store": "vault"},
    "prepare": {"fetch": {"command": ["fetch"]}},
    "processes": {
        "learner": {"binds": "replay", "exposes": {"web": 6006, "board": 6007, "lb": 6008}, "requests": {"cpu": "1"}},
        "side-car": {"connects": "replay", "retries": 2, "image": "busybox", "env": {"LR": "0.1"}},
    },
    "expose": {
        "web": {"type": "Ingress", "host": "rl.example.com"},
        "board": {"type": "Gateway", "gateway": "infra/main"},
        "lb": {"type": "LoadBalancer"},
    },
}
ODD: list[Any] = [
    0, 1, -1, 7000, 99_999, 100_000, 1.5, 1e-7, 20_261_124, True, False, None, "", "0", "3", "007", "65536", "1e3",
    "true", "x y", "-", "/a", "a.b/c", "ü", "a\u2028b", "10.0.0.0/8", "ClusterIP", "Local", "q" * 64, [], [1],
    ["a", True], [None], [{}], [{"name": "x"}], [{"key": "a", "operator": "Exists"}],
    [{"apiVersion": "v1", "kind": "A", "metadata": {}}], {}, {"a": 1}, {"a": "b c"},
    {"a": None}, {"a": {}}, {"a": {"fieldRef": {"fieldPath": "x"}}}, {"symph.dev/group": "x"},
    {"requests": {"cpu": 2}}, {"limits": {"cpu": "2x"}}, {"runAsUser": 1_000_660_000}, {"tag": 20_261_124},
    {"tag": "v2"}, {"repository": None}, {"hosts": ["a"]},
]  # fmt: skip


def built(data: dict[str, Any]) -> BuiltChart:
    experiment = from_data(data, for_cluster=True)
    return build(experiment, allocate(experiment))


@cache
def rich() -> tuple[BuiltChart, ValuesSchema]:
    chart = built(RICH)
    return chart, ValuesSchema(chart)


def problems(overrides: dict[str, Any]) -> list[tuple[str, str]]:
    chart, schema = rich()
    with pytest.raises(SpecError) as caught:
        check_values(schema, merge(chart.values, overrides))
    return [(problem.what, problem.next) for problem in caught.value.problems]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the rich chart with templates, values and schema; return its folder."""
    chart, schema = rich()
    folder = tmp_path_factory.mktemp("rich")
    (folder / "templates" / "tests").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: rich\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text(values_text(chart.values), encoding="utf-8")
    (folder / "values.schema.json").write_bytes(schema.text)
    for name, text in chart.texts().items():
        (folder / "templates" / name).write_text(text)
    for path, content in chart.frame.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def paths_of(values: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = (
        [found for key, value in values.items() for found in paths_of(value, (*path, key))]
        if isinstance(values, dict)
        else []
    )
    return [path, *below] if path else below


def drawn(chance: random.Random) -> dict[str, Any]:
    """Draw one or two odd values at paths of the rich chart, or one step below or beside them."""
    paths = [path for path in paths_of(rich()[0].values) if path != ("specDigest",)]
    overrides: dict[str, Any] = {}
    for _ in range(chance.choice([1, 1, 2])):
        path = list(chance.choice(paths))
        default = rich()[0].values
        for step in path:
            default = default[step]
        alike = [odd for odd in ODD if type(odd) is type(default)]
        nested: Any = chance.choice(alike if chance.random() < 0.7 else ODD)
        if chance.random() < 0.1:
            path[-1] += "x"
        for step in reversed(path):
            nested = {step: nested}
        overrides = merge(overrides, nested)
    return overrides


@pytest.mark.parametrize("version", HELM_VERSIONS)
@pytest.mark.parametrize("seed", range(40))
def test_helm_refuses_the_values_that_the_check_refuses(version: str, seed: int, folder: Path, tmp_path: Path) -> None:
    chart, schema = rich()
    overrides = drawn(random.Random(seed))
    file = tmp_path / "values.json"
    file.write_text(json.dumps(overrides))
    ended = run_helm(version, "template", "r1", folder, "-f", file, check=False)
    refused = schema.problems(merge(chart.values, overrides))
    assert ("schema" in ended.stderr) == bool(refused), (overrides, ended.stderr, refused)
    assert refused or ended.returncode == 0 or "cannot name a Service" in ended.stderr, ended.stderr


def test_every_value_that_a_template_reads_is_there() -> None:
    chart, _ = rich()
    reader = Reader(chart.frame)
    for tree in chart.templates.values():
        reader.read(tree, {".": "", "$": ""})
    for path in reader.paths | reader.switches:
        values: Any = chart.values
        for step in path.removeprefix(".Values.").split("."):
            assert step in values or values == chart.values["global"], path
            values = values.get(step, {})


@pytest.mark.parametrize(
    ("text", "path", "step"),
    [
        ("groups.lerner.replicas=3", "groups.lerner", "did you mean groups.learner?"),
        ("groups.x.replicas=3", "groups.x", "known here: learner, side-car"),
        ("groups.learner.replica=3", "groups.learner.replica", "did you mean groups.learner.replicas?"),
        ("processes.learner.replicas=3", "processes.learner.replicas", "did you mean groups.learner.replicas?"),
        (
            "groups.learner.containers.learner.volumes=x",
            "groups.learner.containers.learner.volumes",
            "it belongs to the spec: --spec-set processes.learner.mounts=VALUE",
        ),
        (
            "groups.learner.containers.learner.readinessProbe.tcpSocket.port=1",
            "groups.learner.containers.learner.readinessProbe",
            "it belongs to the spec: --spec-set processes.learner.ready=VALUE",
        ),
        ("workload.kind=jobset", "workload.kind", "it belongs to the spec: --spec-set workload.kind=VALUE"),
        ("volumes.a.size=1Gi", "volumes.a.size", "it belongs to the spec: --spec-set volumes.a.size=VALUE"),
    ],
)
def test_a_path_that_is_not_a_value_is_named_with_what_is_meant(text: str, path: str, step: str) -> None:
    assert problems(set_values([text])) == [(f"{path} is not a value of this chart", step)]


def test_all_problems_are_reported_at_once() -> None:
    found = problems(set_values(["groups.learner.replicas=100000", "services.web.port=0", "tests=null"]))
    assert [what for what, _ in found] == [
        "null removes tests, which the chart needs",
        "100000 does not fit in groups.learner.replicas",
        "0 does not fit in services.web.port",
    ]


def test_a_label_of_ours_is_refused_beside_other_faults_and_any_other_taken() -> None:
    assert problems(set_values([r"podLabels.symph\.dev/group=x", "podLabels.-=x"]))[1:] == [
        ('the chart sets "symph.dev/group" itself', "choose another key, or change it in the spec")
    ]
    chart, schema = rich()
    check_values(schema, merge(chart.values, set_values([r"podLabels.example\.com/x=y"])))


@pytest.mark.parametrize(
    "text",
    [
        "groups.learner.containers.learner.image=busybox:1.37",
        "groups.learner.containers.learner.image.tag=20261124",
        "groups.learner.containers.learner.env.SYMPH_ROLE=x",
        "groups.learner.containers.learner.args={a,1,true}",
        "groups.side-car.containers.side-car.env.LR=null",
        "global.anything.else=1",
        "runKey=2",
    ],
)
def test_usual_overrides_are_taken(text: str) -> None:
    chart, schema = rich()
    check_values(schema, merge(chart.values, set_values([text])))


def test_the_digest_changes_with_the_experiment_alone() -> None:
    chart, again = rich()[0], built(RICH)
    changed = built({**RICH, "image": "ghcr.io/lab/rl:1.5"})
    assert chart.values["specDigest"] == again.values["specDigest"] != changed.values["specDigest"]


def test_values_that_no_object_of_the_experiment_has_are_left_out() -> None:
    values = built({"name": "e", "image": "busybox", "processes": {"a": {"command": ["true"]}}}).values
    assert values.keys().isdisjoint({"services", "workload", "secrets"})
    assert "initContainers" not in sub(dict(values), "groups", "a")


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_text_of_any_character_survives_values_yaml(version: str, folder: Path, tmp_path: Path) -> None:
    chart = rich()[0]
    values = merge(chart.values, {"podAnnotations": {"a": ODD_TEXT}, "runKey": ODD_TEXT})
    file = tmp_path / "values.yaml"
    file.write_text(values_text(values), encoding="utf-8")
    want = index(json.loads(json.dumps(chart.objects(values, Release(name="r1")))))
    assert helm_objects(version, folder, "-f", str(file)) == want


def test_values_yaml_holds_the_values_and_explains_each_key_once() -> None:
    values = rich()[0].values
    text = values_text(values)
    assert load(text) == values
    explained = {pattern_of(path) for path in paths_of(values)} & FIELDS.keys()
    assert sorted(line.strip() for line in text.splitlines() if line.lstrip().startswith("# -- ")) == sorted(
        f"# -- {FIELDS[pattern].meaning}" for pattern in explained
    )


def test_the_values_for_chart_testing_are_taken() -> None:
    chart, schema = rich()
    files = {path: text for path, text in package_data.folder("chart-template").items() if "/ci/" in path}
    assert len(files) == 2
    for text in files.values():
        given = load(text.decode())
        assert isinstance(given, dict)
        check_values(schema, merge(chart.values, given))


@pytest.mark.parametrize("names", [("parameters", "p"), ("p", "parameters")], ids=["service", "group"])
def test_a_name_may_be_that_of_a_section_elsewhere(names: tuple[str, str]) -> None:
    service, group = names
    chart = built({"name": "x", "image": "i", "processes": {group: {"command": "x", "binds": service}}})
    assert ValuesSchema(chart).problems(chart.values) == []
