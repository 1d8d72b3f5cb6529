"""Merged values against the chart's own schema: what helm refuses is refused here, with the nearest name."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator

from symphony_charts.chart.files.values_schema import check_schema, schema_faults, schema_text
from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.chart.values.merge import merge
from symphony_charts.chart.values.set_values import Overrides, user_values
from symphony_charts.errors import SpecError
from symphony_charts.settings.values_files import read_values
from tests.chart.harness import (
    EXAMPLE_NAMES,
    chart_of,
    example_chart,
    experiment_of,
    helm_objects,
    index,
    run_helm,
    set_values,
    write_chart,
)
from tests.tools import HELM_VERSIONS

# What no chart lacks.
_LEAST = {"tests": {"image": "busybox:1"}}
SETS = [
    "groups.p.replica=3",
    "groups.p.replicas=three",
    "groups.p.replicas=100001",
    "groups.p.minReplicas=454958264",
    "groups.p.containers.p.image=3",
    "groups.p.containers.p.env.A.B=1",
    "groups.q.replicas=1",
    "services.s.port=70000",
    "services.s.expose=Foo",
    "networkPolicy.enable=true",
    "workload.kind=jobz",
    "doneWhen=p",
    "tests=null",
    "tests.image=null",
    "groups.p.replicas=3",
    "groups.p.nodeSelector.a=b",
    "groups.p.containers.p.resources.requests.cpu=2",
    "services.s.port=7001",
    "extra.any.thing=1",
    "global.x=1",
    # What the API server would refuse, some objects after others have changed.
    "labels.a b=c",
    "labels.example\\.com/a/b=c",
    "labels.a=b c",
    "labels.a=",
    "labels.example\\.com/a=b",
    "annotations.-a=b",
    "groups.p.annotations.a=any text: at all",
    "groups.p.nodeSelector.-a=b",
    "defaults.nodeSelector.a=b/c",
    "groups.p.containers.p.resources.requests.cpu=2 cores",
    "groups.p.containers.p.resources.limits.memory=2GB",
    "groups.p.containers.p.resources.limits.memory=1e3",
    "groups.p.containers.p.resources.limits.cpu=-1",
    "groups.p.containers.p.resources.limits.cpu=0.5",
    "groups.p.containers.p.resources.limits.nvidia\\.com/gpu=1",
    "groups.p.containers.P.image=a",
    "groups.p.containers.p.env.A=B=1",
    "groups.P.containers.c.image=a",
    "groups.p.serviceAccountName=Me",
    "groups.p.serviceAccountName=me.and.you",
    "groups.p.replicas=2147483648",
    "groups.p.containers.p.mounts.m.mountPath=/a:b",
    "groups.p.containers.p.workingDir=sub",
    "groups.p.containers.p.workingDir=/sub",
    "groups.p.volumes.a_b.emptyDir=null",
    "services.s.port=65536",
    "services.s.port=0",
    "services.S.port=80",
    "services.s.host=*.example.com",
    "services.s.host=Example.com",
    "services.s.gateway=a/b",
    "services.s.gateway=a/b/c",
    "services.s.sourceRanges={10.0.0.0/8}",
    "services.s.sourceRanges={10.0.0.0}",
    "configs.a/b.text=x",
    "configs.a.mode=512",
    "fullnameOverride=My_Release",
    "nameOverride=other",
]


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_the_values_of_every_example_keep_their_schema(name: str) -> None:
    assert schema_faults(example_chart(name).values) == []


@pytest.mark.parametrize("text", SETS)
def test_values_are_refused_where_helm_refuses_them(text: str, tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes={"p": {"command": ["x"], "binds": "s"}}))
    ended = run_helm("4.3", "template", "r", write_chart(chart, tmp_path), "--set", text, check=False)
    by_schema = "don't meet the specifications of the schema" in ended.stderr
    assert bool(schema_faults(merge(chart.values, set_values([text])))) == by_schema, ended.stderr


@pytest.mark.parametrize(
    ("values", "what", "path", "next_step"),
    [
        ({"groups": {"a": {"replica": 1}}}, 'no value "replica"', "groups.a.replica", 'did you mean "replicas"?'),
        ({"workload": {"kind": "jobz"}}, '"jobz" is no kind', "workload.kind", 'did you mean "jobs"?'),
        ({"hold": 3}, "3 is not true or false", "hold", "set hold to true or false"),
        ({"labels": {"a b": "c"}}, '"a b" is not the key of a label', "labels.a b", "name, or example.com/name"),
        ({"labels": {"a": "b c"}}, '"b c" is not the value of a label', "labels.a", "63 letters"),
        (
            {"defaults": {"resources": {"requests": {"cpu": "2 cores"}}}},
            '"2 cores" is not a quantity',
            "defaults.resources.requests.cpu",
            "500m",
        ),
        ({"groups": {"P": {"containers": {}}}}, '"P" is not a name', "groups.P", "lower-case letters"),
        ({"doneWhen": "a"}, '"a" is not a list of texts', "doneWhen", "set doneWhen to a list of texts"),
    ],
)
def test_a_fault_has_its_place_and_a_way_out(values: dict[str, Any], what: str, path: str, next_step: str) -> None:
    problem = next(problem for problem in schema_faults(values) if problem.path == path)
    assert what in problem.what
    assert next_step in problem.next


def test_a_number_of_a_values_file_may_have_a_fraction(tmp_path: Path) -> None:
    file = tmp_path / "over.yaml"
    file.write_text("groups: {agent: {containers: {agent: {resources: {requests: {cpu: 0.5}}}}}}\n")
    chart = example_chart("rl")
    merged = merge(chart.values, user_values(Overrides(files=(read_values(str(file)),))))
    assert schema_faults(merged) == []
    objects = index(assemble(merged, Release(name="r1", chart_name=chart.name, chart_version=chart.version)))
    theirs = helm_objects(HELM_VERSIONS[0], write_chart(chart, tmp_path), "-f", str(file))
    assert index(json.loads(json.dumps(list(objects.values())))) == theirs


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        check_schema({**_LEAST, "runkey": 1, "hodl": True, "networkPolicy": {"enable": True}})
    assert [problem.path for problem in caught.value.problems] == ["networkPolicy.enable", "hodl", "runkey"]


def test_a_chart_of_another_version_is_held_against_its_own_schema() -> None:
    own = b'{"type": "object", "properties": {"old": {"type": "string"}}, "additionalProperties": false}'
    assert schema_faults({"old": "x"}, own) == []
    assert [problem.path for problem in schema_faults({"hold": True}, own)] == ["hold"]


_ODD: list[object] = [
    "x",
    "a b=",
    1,
    -1,
    0.5,
    True,
    [],
    ["x"],
    [{}],
    [{"a b": 1}],
    {},
    {"a": 1},
    {"a b": 1},
    {"a": {"b": 1}},
]


def places(rule: dict[str, Any], steps: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each value that the schema names; what may be called anything is called ``a``."""
    yield steps
    for name, below in rule.get("properties", {}).items():
        yield from places(below, (*steps, name))
    others = rule.get("additionalProperties")
    if isinstance(others, dict):
        yield from places(others, (*steps, "a"))


def test_whatever_the_schema_refuses_is_told() -> None:
    schema = json.loads(schema_text())
    validator, refused = Draft7Validator(schema), 0
    for steps in places(schema):
        for odd in _ODD if steps else ():
            values: Any = odd
            for step in reversed(steps):
                values = {step: values}
            values = merge(_LEAST, values)
            refused += not validator.is_valid(values)
            assert bool(schema_faults(values)) != validator.is_valid(values), values
    assert refused > 1000


def test_what_stands_in_a_map_of_texts_is_told_by_its_own_path() -> None:
    [problem] = schema_faults({**_LEAST, "annotations": {"n": {"a": {"b": 1}}}})
    assert (problem.path, problem.next) == ("annotations.n", "annotations is a map of texts")


@pytest.mark.parametrize(
    "schema", [b"{", b"\xff", b"[1]", b'{"properties": 0}', b'{"pattern": "("}', b'{"$ref": "#/nowhere"}']
)
def test_a_schema_that_somebody_damaged_is_refused(schema: bytes) -> None:
    with pytest.raises(SpecError, match=r"values\.schema\.json is no JSON Schema") as refused:
        schema_faults({}, schema)
    assert len(refused.value.problems[0].what.splitlines()) == 1


def test_no_schema_makes_us_ask_an_address_or_open_a_file(tmp_path: Path) -> None:
    (tmp_path / "any.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        for uri in (f"http://127.0.0.1:{server.getsockname()[1]}/any.json", (tmp_path / "any.json").as_uri()):
            with pytest.raises(SpecError, match="is not asked for"):
                schema_faults({}, json.dumps({"$ref": uri}).encode())
        with pytest.raises(TimeoutError):
            server.accept()
