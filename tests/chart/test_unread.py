"""Every setting of a spec changes the chart's objects, or is refused, or is reported as unused."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from symphony_charts.chart.lint import Finding
from symphony_charts.chart.lint.release_rules import check_release, check_unread
from symphony_charts.errors import SymphError
from symphony_charts.formats import yaml_write
from symphony_charts.formats.data import sub
from symphony_charts.kinds.registry import KINDS
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec import model, workload
from symphony_charts.spec.data import from_data, spec_path
from symphony_charts.spec.sources import Record, SecretSource
from tests.chart.harness import set_values

Path = tuple[str, ...]

# For each field a value that differs from the default; a list holds values that are set one after the other.
POD: dict[str, list[object]] = {
    "replicas": [4],
    "min_replicas": [1],
    "restart": ["always", "on-failure", "never"],
    "retries": [3],
    "until": ["run", "uninstall"],
    "names": [["other"]],
    "node_selector": [{"disk": "ssd"}],
    "capabilities": [{"net": "fast"}],
    "tolerations": [[{"key": "k", "operator": "Exists"}]],
    "labels": [{"a": "b"}],
    "annotations": [{"a": "b"}],
    "service_account": ["robot"],
    "priority_class": ["high"],
    "grace_period": [7],
    "deadline": [70],
    "pod_overlay": [{"spec": {"hostNetwork": True}}],
}
PROCESS: dict[str, list[object]] = {
    "image": ["other:1"],
    "image_pull_policy": ["Always"],
    "command": [["other"]],
    "args": [["other"]],
    "cmds": [["exec other"]],
    "preamble": [["other"]],
    "shell": ["bash"],
    "env": [{"A": "b"}],
    "cwd": ["/x"],
    "lifecycle": ["service", "finite"],
    "binds": [{"other": 7500}],
    "connects": [["dialled"]],
    "exposes": [{"shown": 7600}],
    "requests": [{"cpu": "1"}],
    "limits": [{"cpu": "1"}],
    "gpus": [1],
    "reserve": [True],
    "pod_share": [["cpu"]],
    "mounts": [[{"volume": "v", "at": "/v"}]],
    "ready": [{"tcp": {"port": 80}}],
    "after": [["lone"]],
    "assign_to": [{"assign_to": "resource", "cpu": 1.0}],
    "container_overlay": [{"stdin": True}],
}
STEP: dict[str, list[object]] = {
    **{field: PROCESS[field] for field in ("image", "command", "args", "cmds", "shell", "env", "cwd", "mounts")},
    **{field: PROCESS[field] for field in ("requests", "limits", "container_overlay")},
    "groups": [["lone"]],
}
WORKLOAD: dict[str, list[object]] = {
    "kind": [],
    "gang": ["kueue", "native", "coscheduling", "volcano"],
    "gang_scope": ["group"],
    "gang_version": ["v1alpha2", "v1beta1"],
    "queue": ["q"],
    "queue_priority": ["high"],
    "priority": [3],
    "priority_class": ["high"],
    "scheduler_name": ["other"],
    "retries": [2],
    "run_key": ["again"],
    "jobset": [{"max_restarts": 2}],
    "appwrapper": [{"version": "v1beta1"}, {"annotations": {"a": "b"}}],
    "volcano": [{"plugins": {"ssh": []}}],
    "dijob": [
        {"operator": "v1.1.0"},
        {"clean_pod_policy": "All"},
        {"tasks": {"collector": "none"}},
        {"containers": {"learner": "c"}},
        {"group": "g"},
        {"priority": "high"},
        {"topology": "mesh"},
        {"parallel_workers": 2},
        {"max_replicas": 3},
    ],
    "argo": [
        {"schedules": ["0 0 * * *"]},
        {"timezone": "Europe/Berlin"},
        {"concurrency": "Replace"},
        {"submit": False},
        {"needs": {"other": []}},
        {"retries": 2},
        {"service_account": "robot"},
    ],
}
EXPOSE: dict[str, list[object]] = {
    "type": [],
    "host": ["other.example"],
    "class_name": ["c"],
    "gateway": ["infra/other"],
    "source_ranges": [["10.0.0.0/8"]],
    "annotations": [{"a": "b"}],
}
PLACEMENT: dict[str, list[object]] = {
    "pools": [],
    "formula": [],
    "spot": [True],
    "flex_start": [True],
    "reservation": ["mine"],
    "compact": [True],
    "topology": ["block"],
    "exclusive": ["rack"],
    "tpu_topology": ["2x4"],
}
SECURITY: dict[str, list[object]] = {
    "level": ["restricted", "privileged"],
    "run_as_user": [5],
    "run_as_group": [5],
    "fs_group": [5],
    "read_only_root": [True],
    "network_policy": [True],
    "service_account_token": [True],
}
SOURCE: dict[str, list[object]] = {
    "source": ["external"],
    "scope": ["cluster-wide"],
    "store": ["vault"],
    "is_cluster_store": [True],
    "refresh": ["2h"],
}
# Records of the fields above, and their places in the spec.
SAID: list[tuple[type[Record], dict[str, list[object]], list[Path]]] = [
    (model.PodSettings, POD, [("processes", "learner"), ("processes", "lone"), ("groups", "pair")]),
    (model.Process, {**POD, **PROCESS, "local": []}, [("processes", "learner"), ("processes", "server")]),
    (model.Step, STEP, [("prepare", "step")]),
    (workload.Workload, WORKLOAD, [("workload",)]),
    (model.Placement, PLACEMENT, [("placement",)]),
    (model.SecuritySettings, SECURITY, [("security",)]),
    (SecretSource, SOURCE, [("secret_source",)]),
]
# Settings that equal the default, or request a part of nothing.
SAME: list[tuple[str, str, object]] = [
    ("learner", "restart", "never"),
    ("learner", "lifecycle", "finite"),
    ("server", "restart", "always"),
    ("server", "lifecycle", "service"),
    ("lone", "restart", "always"),
    ("pair", "restart", "always"),
    ("lone", "until", "run"),
    ("pair", "until", "run"),
    ("server", "until", "run"),
    ("learner", "reserve", True),
    ("server", "reserve", True),
    # Changes only the digits of a run, which are ignored here.
    ("workload", "run_key", "again"),
    # All processes get the addresses; only NetworkPolicies and restarts of services depend on the connections.
    ("server", "connects", ["dialled"]),
    # The kind is itself a gang.
    ("workload", "gang", "volcano"),
]


def spec_of(kind: str) -> dict[str, Any]:
    """Return an experiment with finite processes, services of a run, and services without clients."""
    service = {"command": ["x"], "lifecycle": "service", "replicas": 2}
    return {
        "name": "exp",
        "image": "python:3.12-slim",
        "processes": {
            "learner": {
                "command": ["x"],
                "connects": ["replay"],
                "replicas": 3,
                "mounts": [{"volume": "w", "at": "/w"}],
            },
            "collector": {"command": ["x"], "connects": ["replay"]},
            "server": {**service, "binds": {"replay": 7100, "dialled": 7101}, "exposes": {"web": 7200}},
            "lone": service,
        },
        "groups": {
            "pair": {"replicas": 3, "processes": {name: {"command": ["x"], "lifecycle": "service"} for name in "ab"}}
        },
        "prepare": {"step": {"command": ["x"]}},
        "volumes": {"v": {"type": "empty_dir"}, "w": {"type": "empty_dir"}},
        "secrets": [{"file": "key"}],
        "workload": {"kind": kind},
    }


def put(spec: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    """Return a copy of the spec with `value` at `path`."""
    whole = part = copy.deepcopy(spec)
    for step in path[:-1]:
        part = part.setdefault(step, {})
    is_map = isinstance(value, dict) and isinstance(part.get(path[-1]), dict)
    part[path[-1]] = {**part[path[-1]], **value} if is_map else value  # type: ignore[dict-item]
    return whole


def seen(prepared: Prepared) -> str:
    """Return the objects, with the digits of their run masked."""
    text = yaml_write.dumps(list(prepared.objects))
    for run in set(re.findall('"symph.dev/run":"([0-9a-f]{8})"', text)):
        text = text.replace(run, "run")
    return text


def findings_of(prepared: Prepared) -> list[Finding]:
    """Return the findings about settings, with paths in the spec."""
    chart, values = prepared.own.chart, prepared.values
    found = [*check_release(chart, values), *check_unread(chart, values)]
    return [replace(finding, path=spec_path(finding.path, prepared.experiment)) for finding in found]


def said_unread(prepared: Prepared) -> set[str]:
    """Return the paths in the spec that are reported as unused."""
    return {finding.path for finding in findings_of(prepared)} | {loss.path for loss in prepared.losses}


def unheard(spec: dict[str, Any], said: Iterable[tuple[Path, object]]) -> list[tuple[Path, object]]:
    """Return the settings that change nothing although no finding reports them as unused."""
    prepared = prepare_experiment(from_data(spec))
    before = seen(prepared), said_unread(prepared)
    return [(path, value) for path, value in said if not is_heard(spec, before, path, value)]


def is_heard(spec: dict[str, Any], before: tuple[str, set[str]], path: Path, value: object) -> bool:
    """Return True if setting `value` at `path` changes the objects or the findings."""
    try:
        after = prepare_experiment(from_data(put(spec, path, value)))
    except SymphError:
        return True
    if isinstance(value, dict) and path[0] == "workload":
        places = {".".join(path), *(".".join([*path, field]) for field in value)}
    else:
        places = {".".join(path)}
    return seen(after) != before[0] or bool(places & (said_unread(after) - before[1]))


def everything() -> Iterator[tuple[Path, object]]:
    for _, said, places in SAID:
        for place, (field, values) in itertools.product(places, said.items()):
            for value in values:
                if (place[-1], field, value) not in SAME:
                    yield (*place, field), value


def test_everything_that_can_be_said_is_said_here() -> None:
    said: dict[type[Record], set[str]] = {record: set(fields) for record, fields, _ in SAID}
    said[model.ExposeSettings] = set(EXPOSE)
    assert not {record: odd for record, fields in said.items() if (odd := fields ^ set(record.__struct_fields__))}


@pytest.mark.parametrize("kind", [name for name in KINDS if name])
def test_whatever_a_spec_says_is_seen_or_refused_or_said_to_be_unread(kind: str) -> None:
    assert unheard(spec_of(kind), everything()) == []


@pytest.mark.parametrize("gang", ["kueue", "native", "coscheduling", "volcano"])
@pytest.mark.parametrize("kind", ["jobs", "appwrapper"])
def test_what_a_gang_does_not_read_is_said(kind: str, gang: str) -> None:
    needs = {"kueue": {"queue": "mine"}, "native": {"gang_version": "v1beta1"}, "coscheduling": {"scheduler_name": "s"}}
    spec = put(spec_of(kind), ("workload",), {"gang": gang, **needs.get(gang, {})})
    said: list[tuple[Path, object]] = [
        (("workload", "gang_scope"), "group"),
        (("workload", "gang_version"), "v1alpha2"),
        (("workload", "queue_priority"), "high"),
        (("workload", "queue"), "other"),
        (("processes", "learner", "min_replicas"), 1),
        (("processes", "server", "min_replicas"), 1),
        (("processes", "lone", "min_replicas"), 1),
    ]
    assert unheard(spec, said) == []


@pytest.mark.parametrize("type_", ["LoadBalancer", "ClusterIP", "NodePort", "Ingress", "Gateway"])
def test_what_a_way_in_does_not_read_is_said(type_: str) -> None:
    way = {"type": type_, **({"host": "h.example"} if type_ in ("Ingress", "Gateway") else {})}
    spec = put(spec_of("jobs"), ("expose", "web"), {**way, **({"gateway": "gw"} if type_ == "Gateway" else {})})
    said = [(("expose", "web", field), value) for field, values in EXPOSE.items() for value in values]
    assert unheard(spec, said) == []


def test_the_class_of_a_load_balancer_is_that_of_its_service() -> None:
    spec = put(spec_of("jobs"), ("expose", "web"), {"type": "LoadBalancer", "class_name": "example.com/internal"})
    found = [sub(item, "spec").get("loadBalancerClass") for item in prepare_experiment(from_data(spec)).objects]
    assert list(filter(None, found)) == ["example.com/internal"]


def test_source_ranges_of_values_that_nothing_enforces_are_an_error() -> None:
    overrides = set_values(["services.web.type=NodePort", "services.web.sourceRanges={10.0.0.0/8}"])
    found = findings_of(prepare_experiment(from_data(spec_of("jobs")), overrides=overrides))
    assert [one.rule for one in found if one.severity == "error"] == ["source-ranges"]


@pytest.mark.parametrize("setting", ["nodePort=30000", "externalTrafficPolicy=Local", "loadBalancerClass=c"])
def test_values_that_the_type_of_a_service_does_not_read_are_said(setting: str) -> None:
    prepared = prepare_experiment(from_data(spec_of("jobs")), overrides=set_values([f"services.web.{setting}"]))
    assert f"services.web.{setting.partition('=')[0]}" in said_unread(prepared)


def test_what_no_chart_carries_is_said() -> None:
    spec = put(spec_of("jobs"), ("secrets",), [{"file": "key", "remote": "vault/key"}])
    learner = put(spec, ("processes", "learner", "after"), ["lone"])
    paths = [loss.path for loss in prepare_experiment(from_data(learner)).losses]
    assert paths == ["processes.learner.after", "volumes.v", "secrets[0].remote"]


def test_nothing_is_unread_of_what_is_turned_off() -> None:
    spec = put(spec_of("jobs"), ("expose", "web"), {"host": "h.example"})
    overrides: dict[str, object] = {"groups": {"server": {"replicas": 0}}}
    assert "expose.web.host" in said_unread(prepare_experiment(from_data(spec)))
    assert "expose.web.host" not in said_unread(prepare_experiment(from_data(spec), overrides=overrides))
