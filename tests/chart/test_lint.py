"""Lint finds its documented faults, and none in correct charts."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.chart.lint import Finding, lint_release
from symphony_charts.chart.lint.finding import to_sarif
from symphony_charts.chart.lint.kubernetes import VERSIONS, check_schemas
from symphony_charts.chart.lint.security import check_security, violations
from symphony_charts.chart.lint.workload_rules import check_references
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from tests.chart.harness import (
    EXAMPLE_NAMES,
    built_of,
    chart_of,
    example_chart,
    experiment_of,
    native_objects,
    set_values,
)
from tests.chart.strategies import experiments
from tests.damage import ODD, places, spoil
from tests.linting import lint, lint_objects

# Every feature once.
_RICH: dict[str, object] = {
    "groups": {
        "mixed": {
            "processes": {
                "first": {"command": ["a"], "args": ["b"], "cwd": "/w", "binds": {"data": 7001}},
                "beside": {"lifecycle": "service", "binds": "side", "exposes": "web", "connects": "data"},
            },
            "annotations": {"note": "x"},
            "labels": {"tier": "x"},
        }
    },
    "processes": {
        "many": {
            "command": ["m"],
            "replicas": 3,
            "retries": 2,
            "deadline": 60,
            "binds": "peers",
            "connects": ["data"],
            "requests": {"memory": "1Gi", "rdma/ib": "1"},
            "mounts": [{"volume": "scratch", "at": "/s", "read_only": True, "sub_path": "x"}],
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "node_selector": {"pool": "x"},
            "image_pull_policy": "Always",
            "service_account": "runner",
            "env": {"FROM": {"field": "spec.nodeName"}, "REF": "$(SYMPH_EXPERIMENT)", "PLAIN": "1"},
        },
        "serve": {"lifecycle": "service", "replicas": 2, "binds": "api", "restart": "always"},
        "keep": {"lifecycle": "service", "until": "uninstall", "binds": "state"},
    },
    "volumes": {"scratch": {"type": "empty_dir"}},
    "configs": {"a.yaml": {"text": "x", "mode": "0600"}, "b.bin": {"base64": "AAE="}},
    "secrets": [{"file": "/tmp/token"}, {"file": "/tmp/key", "only": ["many"], "also_at": "/run/secrets/key"}],
    "prepare": {"fetch": {"command": ["get"], "groups": ["many"]}},
    "networks": ["macvlan"],
    "image_pull_secrets": ["pull"],
    "security": {"network_policy": True},
    "labels": {"cost": "x"},
    "annotations": {"every": "pod"},
    "workload": {"gang": "kueue", "queue": "q", "run_key": "7"},
    "done_when": ["many"],
}


@cache
def rich() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects of an experiment that uses every feature."""
    return native_objects(chart_of(experiment_of(**_RICH)))


def every_object() -> list[dict[str, Any]]:
    """Return a copy of the objects of `rich`."""
    return copy.deepcopy(list(rich().values()))


def rules(experiment: Experiment, *sets: str) -> set[str]:
    return {finding.rule for finding in lint(chart_of(experiment), overrides=set_values(sets))}


def process(**fields: object) -> Experiment:
    return experiment_of(processes={"p": {"command": ["x"], **fields}})


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_the_examples_have_no_error(name: str) -> None:
    assert not [finding for finding in lint(example_chart(name)) if finding.severity == "error"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_passes_the_schemas_of_every_version(version: str) -> None:
    assert not list(check_schemas(every_object(), version))


def without_overlays(data: Any) -> Any:
    """Return `data` without the overlays in it, at any depth."""
    if not isinstance(data, dict):
        return data
    return {key: without_overlays(value) for key, value in data.items() if not key.endswith("_overlay")}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_generated_experiments_make_objects_that_kubernetes_takes(data: dict[str, object]) -> None:
    # Overlays may hold misspelt fields and half an object.
    objects = list(native_objects(chart_of(from_data(without_overlays(data)))).values())
    assert not list(check_schemas(objects))


@pytest.mark.parametrize(("replicas", "is_found"), [(0, True), (1, False)])
def test_a_connection_to_what_runs_nowhere_is_warned_of(replicas: int, is_found: bool) -> None:
    actor = {"cmds": ["x"], "binds": "frames", "lifecycle": "service", "replicas": replicas}
    board = {"cmds": ["x"], "connects": ["frames"]}
    assert ("no-listener" in rules(experiment_of(processes={"actor": actor, "board": board}))) == is_found


@pytest.mark.parametrize(("replicas", "is_found"), [(0, True), (1, False)])
def test_a_release_that_runs_nothing_is_warned_of(replicas: int, is_found: bool) -> None:
    assert ("no-replicas" in rules(process(replicas=replicas))) == is_found


@pytest.mark.parametrize("level", ["container_overlay", "pod_overlay"])
def test_an_overlay_that_takes_the_addresses_away_is_warned_of(level: str) -> None:
    sources = {"envFrom": [{"secretRef": {"name": "keys"}}]}
    overlay = sources if level == "container_overlay" else {"spec": {"containers": [{"name": "p", **sources}]}}
    assert "addresses" in rules(process(**{level: overlay}))
    assert "addresses" not in rules(process())


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_manifests_hold_is_judged(data: st.DataObject) -> None:
    objects: Any = every_object()
    for _ in range(data.draw(st.integers(1, 3))):
        item = data.draw(st.sampled_from(objects))
        holder, key = data.draw(st.sampled_from(places(item)))
        if holder is not item or key not in ("apiVersion", "kind"):
            spoil(holder, key, data.draw(st.sampled_from(ODD)))
    assert isinstance([*lint_objects(objects), *check_security(objects, "restricted")], list)


def test_the_pods_of_an_aggregator_are_found_by_its_service_and_checked() -> None:
    aggregator = {"command": ["x"], "lifecycle": "service", "binds": {"aggregator": 22272}, "image": "i"}
    experiment = experiment_of(
        processes={"coordinator": {"command": ["x"]}, "aggregator": aggregator},
        workload={"kind": "dijob", "dijob": {"operator": "v0"}},
    )
    found = rules(experiment)
    assert "selector" not in found
    assert "image-latest" in found


_PAIR: dict[str, dict[str, object]] = {"a": {"command": ["x"], "retries": 1}, "b": {"command": ["y"]}}


@pytest.mark.parametrize(("operator", "what"), [("v0", "without a limit"), ("v1.1", "never restarts a container")])
def test_what_an_operator_does_of_restarts_in_place_is_said(operator: str, what: str) -> None:
    experiment = experiment_of(
        processes={"coordinator": {"command": ["x"], "restart": "on-failure"}},
        workload={"kind": "dijob", "dijob": {"operator": operator}},
    )
    assert what in next(one.what for one in lint(chart_of(experiment)) if one.rule == "dijob-restart")


@pytest.mark.parametrize(("version", "is_found"), [("v1beta1", False), ("v1beta2", True)])
def test_a_priority_that_no_queue_reads_is_warned_of(version: str, is_found: bool) -> None:
    workload = {"kind": "appwrapper", "appwrapper": {"version": version}, "priority": 3}
    assert ("priority" in rules(experiment_of(processes=_PAIR, workload=workload))) == is_found


_OPEN = experiment_of(processes={"p": {"exposes": "web"}}, expose={"web": {"type": "LoadBalancer"}})


def test_what_is_exposed_has_no_address_outside_of_the_cluster_unless_the_spec_says_so() -> None:
    services = [item for item in native_objects(chart_of(process(exposes="web"))).values() if item["kind"] == "Service"]
    assert {sub(item, "spec").get("type", "ClusterIP") for item in services} == {"ClusterIP"}
    assert "load-balancer-open" not in rules(process(exposes="web"))


_NATIVE: dict[str, object] = {"gang": "native", "gang_version": "v1alpha2"}


@pytest.mark.parametrize(("lifecycle", "is_found"), [("service", False), ("finite", True)])
def test_a_service_that_is_kept_in_vain_is_warned_of(lifecycle: str, is_found: bool) -> None:
    actor = {"cmds": ["sleep 9"], "binds": "frames", "lifecycle": lifecycle}
    board = {"cmds": ["sleep 9"], "lifecycle": "service", "until": "uninstall", "connects": ["frames"]}
    assert ("kept-in-vain" in rules(experiment_of(processes={"actor": actor, "board": board}))) == is_found


@pytest.mark.parametrize(
    ("fields", "workload", "is_found"),
    [
        ({}, {}, True),
        ({}, {"gang_scope": "group"}, False),
        ({"restart": "on-failure"}, {}, False),
        ({"replicas": 2, "min_replicas": 1}, {}, False),
        ({"retries": 0}, {}, False),
        ({}, {"gang": "none", "gang_version": None}, False),
    ],
)
def test_a_gang_whose_pods_are_made_again_is_warned_of(
    fields: dict[str, object], workload: dict[str, object], is_found: bool
) -> None:
    pair = {**_PAIR, "a": _PAIR["a"] | fields}
    assert ("gang-retry" in rules(experiment_of(processes=pair, workload=_NATIVE | workload))) == is_found


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_a_gang_passes_the_schemas_of_the_version_that_has_it(version: str) -> None:
    workload, placement = _NATIVE | {"gang_version": version}, {"topology": "block"}
    experiment = experiment_of(processes={"a": {"command": ["x"]}}, workload=workload, placement=placement)
    (gang,) = [item for item in native_objects(chart_of(experiment)).values() if item["kind"] == "PodGroup"]
    assert gang["spec"]["schedulingConstraints"]  # type: ignore[index]  # an object
    found = lint(chart_of(experiment))
    assert not [finding for finding in found if finding.severity == "error"], found


def test_kinds_of_other_projects_are_checked_field_by_field() -> None:
    route: dict[str, object] = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r"},
        "spec": {"parentRefs": [{"name": "g"}], "rules": [{"backendRefs": [{"name": "s", "port": 80}]}]},
    }
    assert not list(check_schemas([route]))
    route["spec"] = {"parentRef": []}
    assert {finding.severity for finding in check_schemas([route])} == {"error"}


def test_a_kind_of_another_version_of_kubernetes_is_refused_with_the_version_that_has_it() -> None:
    item: dict[str, object] = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
    }
    (finding,) = check_schemas([item], "1.34")
    assert (finding.severity, finding.next) == ("error", "Kubernetes 1.36 has it: --kube-version 1.36")


def test_an_object_is_right_that_an_operator_of_some_version_takes() -> None:
    task = {"name": "a", "type": "collector", "template": {"spec": {"containers": []}}}
    dijob: dict[str, object] = {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": "d"},
        "spec": {"tasks": [task]},
    }
    usual = list(check_schemas([dijob]))
    old: dict[str, object] = {**dijob, "spec": {"engineFields": {}, "template": {"spec": {"containers": []}}}}
    assert not usual
    assert not list(check_schemas([old]))
    assert list(check_schemas([{**dijob, "spec": {"engineField": {}}}]))


def leaves(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the paths of all map keys below a value."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in [(*path, key), *leaves(item, (*path, key))]]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in leaves(item, (*path, index))]
    return []


def test_any_misspelt_field_is_found() -> None:
    free = {
        "labels",
        "annotations",
        "matchLabels",
        "selector",
        "nodeSelector",
        "data",
        "binaryData",
        "requests",
        "limits",
    }
    objects = every_object()
    unnoticed = []
    for number, item in enumerate(objects):
        for path in leaves(item):
            if not free.isdisjoint(path[:-1]) or path[-1] in ("apiVersion", "kind"):
                continue
            broken = copy.deepcopy(item)
            node: object = broken
            for step in path[:-1]:
                node = node[step]  # type: ignore[index]  # parsed objects
            node[f"{path[-1]}x"] = node.pop(path[-1])  # type: ignore[index, attr-defined]  # a map
            if not list(check_schemas([broken])):
                unnoticed.append((number, path))
    assert not unnoticed


def test_a_version_without_schemas_is_refused() -> None:
    with pytest.raises(SpecError, match=r"no schemas of Kubernetes"):
        list(check_schemas([], "1.11"))


def test_a_kind_that_kubernetes_does_not_have_is_found() -> None:
    findings = lint_objects([{"apiVersion": "batch/v2", "kind": "Job", "metadata": {"name": "x"}}])
    assert "no such kind in Kubernetes 1.34: batch/v2 Job" in findings[0].what


@pytest.mark.parametrize(
    ("experiment", "rule"),
    [
        (process(image="ubuntu:16,04"), "image-syntax"),
        (process(image="ubuntu"), "image-latest"),
        (process(image="ubuntu:latest"), "image-latest"),
        (process(env={"API_TOKEN": "abc"}), "secret-in-env"),
        (_OPEN, "load-balancer-open"),
        (process(env={"X": "y" * 131072}), "env-size"),
        (process(pod_overlay={"spec": {"hostNetwork": True}}), "pod-security"),
        (process(pod_overlay={"spec": {"nonsense": True}}), "schema"),
        (process(mounts=[{"device": "/dev/kvm", "at": "/dev/kvm"}]), "privileged-device"),
        (process(container_overlay={"volumeMounts": [{"name": "gone", "mountPath": "/x"}]}), "reference"),
        (process(lifecycle="service"), "runs-on"),
    ],
)
def test_each_rule_finds_its_fault(experiment: Experiment, rule: str) -> None:
    assert rule in rules(experiment)
    assert rule not in rules(process())


def test_what_restricted_would_need_is_said_once_and_fails_nothing() -> None:
    two = experiment_of(processes={"p": {"command": ["x"]}, "q": {"command": ["y"], "replicas": 2}})
    (need,) = [one for one in lint(chart_of(two)) if one.rule == "pod-security-restricted"]
    assert (need.severity, need.what) == ("info", "Pod Security restricted would not take them: it may run as root")
    restricted = experiment_of(processes={"p": {"command": ["x"]}}, security={"level": "restricted"})
    assert not {one.rule for one in lint(chart_of(restricted))} & {"pod-security", "pod-security-restricted"}


def test_a_pod_that_is_less_than_baseline_is_said_also_where_that_was_promised() -> None:
    overlay = {"spec": {"hostNetwork": True}}
    of_level = {
        level: experiment_of(processes={"p": {"command": ["x"], "pod_overlay": overlay}}, security={"level": level})
        for level in ("privileged", "baseline", "restricted")
    }
    severities = {
        level: [one.severity for one in lint(chart_of(experiment)) if one.rule == "pod-security"]
        for level, experiment in of_level.items()
    }
    assert severities == {"privileged": ["info"], "baseline": ["warning"], "restricted": ["error"]}


@pytest.mark.parametrize(
    "image",
    [
        "busybox:1.37.0",
        "gcr.io/a/b:1",
        "localhost:5000/x:y",
        "x@sha256:" + "0" * 64,
        "a/b__c/d-e:v1.2_3",
        "R.example.org/x:1",
    ],
)
def test_images_that_registries_serve_are_taken(image: str) -> None:
    assert not {"image-syntax", "image-latest"} & rules(process(image=image))


def test_a_load_balancer_with_source_ranges_is_not_open() -> None:
    settings = {"type": "LoadBalancer", "source_ranges": ["10.0.0.0/8"]}
    experiment = experiment_of(processes={"p": {"exposes": "web"}}, expose={"web": settings})
    assert "load-balancer-open" not in rules(experiment)


@pytest.mark.parametrize(
    ("mount", "limit", "is_found"),
    [
        ({"shm": "1Gi"}, "2Gi", False),
        ({"shm": "1Gi"}, "1Gi", True),
        ({"shm": True}, "1Gi", False),
        ({"at": "/s", "empty_dir": "1Gi"}, "1Gi", False),
        ({"shm": "1Gi"}, None, False),
    ],
)
def test_volumes_in_memory_count_against_the_memory_limit(
    mount: dict[str, object], limit: str | None, is_found: bool
) -> None:
    limits = {} if limit is None else {"limits": {"memory": limit}}
    assert ("memory-volumes" in rules(process(mounts=[mount], **limits))) == is_found


def test_what_must_exist_outside_of_the_chart_is_said() -> None:
    experiment = experiment_of(processes={"p": {}}, secrets=[{"file": "/tmp/token"}])
    said = [finding.what for finding in lint(chart_of(experiment)) if finding.rule == "needs"]
    assert said == ["Secret exp-secrets must exist in the namespace, with token"]


def test_a_fault_of_an_init_container_is_placed_there() -> None:
    objects = every_object()
    (pod,) = [
        item["spec"]["template"]["spec"]
        for item in objects
        if item["kind"] == "Job" and "many" in item["metadata"]["name"]
    ]
    (step,) = pod["initContainers"]
    step["volumeMounts"] = [{"name": "gone", "mountPath": "/x"}] * 2
    places = {
        one.path.partition("/")[2].partition(".")[2] for one in (*check_references(objects), *check_schemas(objects))
    }
    place = f"spec.template.spec.initContainers.{step['name']}"
    assert places >= {place, f"{place}.volumeMounts"}


def _broken(**changes: object) -> list[Finding]:
    objects = every_object()
    for item in objects:
        spec = item.get("spec")
        if item["kind"] == "Service" and isinstance(spec, dict) and "ports" in spec:
            spec.update(changes)
    return list(check_references(objects))


def test_a_selector_without_pods_is_found() -> None:
    assert "selector" in {finding.rule for finding in _broken(selector={"symph.dev/group": "nobody"})}


def test_a_target_port_on_which_nobody_listens_is_found() -> None:
    ports = [{"port": 1, "targetPort": 2}]
    assert "target-port" in {finding.rule for finding in _broken(ports=ports)}


def test_a_restricted_experiment_passes_the_restricted_standard() -> None:
    experiment = experiment_of(
        processes={"p": {"binds": "x", "requests": {"cpu": "1"}}, "q": {"lifecycle": "service"}},
        prepare={"fetch": {"command": ["get"]}},
        configs={"a": {"text": "x"}},
        secrets=[{"file": "/tmp/token"}],
        security={"level": "restricted"},
    )
    objects = list(native_objects(chart_of(experiment)).values())
    assert not list(check_security(objects, "restricted"))


def test_the_test_pod_meets_the_restricted_standard() -> None:
    (pod,) = [item for item in rich().values() if item["kind"] == "Pod"]
    assert not list(violations(pod))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hostPID", True),
        ("hostIPC", True),
        ("volumes", [{"name": "x", "hostPath": {"path": "/"}}]),
        ("securityContext", {"seccompProfile": {"type": "Unconfined"}}),
        ("securityContext", {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        ("containers", [{"name": "c", "securityContext": {"privileged": True}}]),
        ("containers", [{"name": "c", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]),
        ("containers", [{"name": "c", "securityContext": {"procMount": "Unmasked"}}]),
        ("containers", [{"name": "c", "ports": [{"hostPort": 80}]}]),
    ],
)
def test_the_baseline_standard_is_known(field: str, value: object) -> None:
    pod: dict[str, object] = {"spec": {"containers": [{"name": "c"}], field: value}}
    assert "baseline" in {broken for broken, _, _ in violations(pod)}


def test_a_file_that_helm_does_not_read_as_a_template_is_found() -> None:
    chart = chart_of(experiment_of(processes={"a": {}}))
    built = built_of(experiment_of(processes={"a": {}}))
    odd = dataclasses.replace(chart, files={**chart.files, "templates/extra-readme.md": b"x\n"})
    found = {finding.rule: finding.path for finding in lint_release(odd, built, built.values, [])}
    assert found["chart-templates"] == "templates/extra-readme.md"


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_files_of_charts_have_the_style_that_chart_testing_wants(name: str) -> None:
    for path, content in example_chart(name).files.items():
        if path == "Chart.yaml" or path.endswith("values.yaml"):
            assert content.endswith(b"\n")
            assert not re.search(rb"[ \t]+$|\r", content, re.MULTILINE), path


def test_sarif_carries_every_finding_and_its_line() -> None:
    finding = Finding(rule="runs-on", severity="warning", path="processes.p", what="x", next="y")
    log = to_sarif([("a.yaml", finding)], "1.0", lambda _file, _path: 7)
    (result,) = log["runs"][0]["results"]  # type: ignore[index]  # a log, just made
    assert result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert json.dumps(log)
