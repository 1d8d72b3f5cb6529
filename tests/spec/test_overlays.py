"""`finish` converts overlays into fields; parts that no field can express remain overlays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.clusters.base import ExperimentSpec
from symphony_charts.errors import SpecError
from symphony_charts.prepare import prepare
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.files import read
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.sources import EmptyDirVolume, EnvSource, HostPathVolume, HttpProbe, Mount, Probe, Toleration
from symphony_charts.spec.variable_names import DEFAULT_SHELL, shell_argv
from tests.spec.overlay_strategies import container_overlays, pod_overlays

SOME = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def made(container: object = None, pod: object = None, **fields: Any) -> Process:
    """Return the one process of a finished experiment, a container named `p`, under these overlays."""
    return experiment(container, pod, **fields).processes["p"]


def experiment(container: object = None, pod: object = None, **fields: Any) -> Experiment:
    start = {} if "cmds" in fields else {"command": ["run"]}
    overlays = {"container_overlay": container or {}, "pod_overlay": pod or {}}
    return from_data({"name": "e", "image": "u:1", "processes": {"p": {**start, **overlays, **fields}}})


def spec(**fields: object) -> dict[str, object]:
    """Return an overlay of a pod's spec."""
    return {"spec": fields}


def own(**fields: object) -> dict[str, object]:
    """Return an overlay of a pod for its own container `p`."""
    return spec(containers=[{"name": "p", **fields}])


FIELDS: list[tuple[dict[str, Any], str, object]] = [
    ({"image": "v:2"}, "image", "v:2"),
    ({"imagePullPolicy": "Always"}, "image_pull_policy", "Always"),
    ({"workingDir": "/w"}, "cwd", "/w"),
    ({"command": ["other", "x"]}, "command", ["other", "x"]),
    ({"command": []}, "command", None),
    ({"args": ["--lr", 1]}, "args", ["--lr", "1"]),
    ({"env": [{"name": "A", "value": "2"}]}, "env", {"A": "2", "B": "1"}),
    ({"env": [{"name": "C"}]}, "env", {"A": "1", "B": "1", "C": ""}),
    (
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k", "optional": True}}}]},
        "env",
        {"A": EnvSource(config="s", key="k", optional=True), "B": "1"},
    ),
    (
        {"env": [{"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}]},
        "env",
        {"A": "1", "B": "1", "C": EnvSource(field="status.podIP")},
    ),
    ({"resources": {"requests": {"cpu": 2}}}, "requests", {"memory": "1Gi", "cpu": "2"}),
    ({"resources": {"limits": {"memory": "2Gi"}}}, "limits", {"memory": "2Gi"}),
    ({"resources": {"limits": {"nvidia.com/gpu": "2"}}}, "gpus", 2),
    (
        {"readinessProbe": {"httpGet": {"port": 80, "path": "/ok"}, "periodSeconds": 3}},
        "ready",
        Probe(http=HttpProbe(port=80, path="/ok"), period=3),
    ),
]


@pytest.mark.parametrize(
    "lay", [lambda over: {"container": over}, lambda over: {"pod": own(**over)}], ids=["own", "pod"]
)
@pytest.mark.parametrize(
    ("over", "field", "value"), FIELDS, ids=[f"{field}-{index}" for index, (_, field, _) in enumerate(FIELDS)]
)
def test_what_is_said_of_a_container_is_the_field(lay: Any, over: Any, field: str, value: object) -> None:
    process = made(**lay(over), env={"A": "1", "B": "1"}, requests={"memory": "1Gi"})
    assert getattr(process, field) == value
    assert process.container_overlay == process.pod_overlay == {}


POD_FIELDS: list[tuple[dict[str, Any], str, object]] = [
    (spec(nodeSelector={"pool": 1}), "node_selector", {"pool": "1", "zone": "a"}),
    (spec(serviceAccountName="runner"), "service_account", "runner"),
    (spec(priorityClassName="high"), "priority_class", "high"),
    (spec(terminationGracePeriodSeconds=5), "grace_period", 5),
    (spec(restartPolicy="OnFailure"), "restart", "on-failure"),
    (
        spec(tolerations=[{"key": "gpu", "operator": "Exists", "effect": ""}]),
        "tolerations",
        [Toleration(key="gpu", operator="Exists")],
    ),
    (spec(tolerations=[]), "tolerations", []),
    ({"metadata": {"labels": {"tier": True}}}, "labels", {"tier": "true"}),
    ({"metadata": {"annotations": {"note": "x"}}}, "annotations", {"note": "x"}),
]


@pytest.mark.parametrize(("over", "field", "value"), POD_FIELDS)
def test_what_is_said_of_a_pod_is_the_field(over: Any, field: str, value: object) -> None:
    process = made(pod=over, node_selector={"pool": "x", "zone": "a"}, tolerations=[{"operator": "Exists"}])
    assert getattr(process, field) == value
    assert process.pod_overlay == {}


def test_a_group_has_the_fields_of_the_pod_and_its_processes_those_of_their_containers() -> None:
    overlay = spec(
        containers=[{"name": "b", "args": ["x"]}, {"name": "other", "image": "s:1"}], priorityClassName="high"
    )
    group = {"processes": {"a": {"command": ["a"]}, "b": {"command": ["b"]}}, "pod_overlay": overlay}
    found = from_data({"name": "e", "image": "u:1", "groups": {"g": group}}).groups["g"]
    assert (found.priority_class, found.processes["a"].args, found.processes["b"].args) == ("high", None, ["x"])
    assert found.pod_overlay == spec(containers=[{"name": "other", "image": "s:1"}])


def test_a_service_beside_finite_processes_is_found_among_the_init_containers() -> None:
    overlay = spec(initContainers=[{"name": "s", "args": ["x"]}, {"name": "f", "args": ["y"]}])
    processes = {"s": {"command": ["s"], "lifecycle": "service"}, "f": {"command": ["f"]}}
    found = from_data({"name": "e", "groups": {"g": {"processes": processes, "pod_overlay": overlay}}}).groups["g"]
    assert (found.processes["s"].args, found.processes["f"].args) == (["x"], None)
    assert found.pod_overlay == spec(initContainers=[{"name": "f", "args": ["y"]}])


def test_the_overlay_of_the_pod_has_the_last_word() -> None:
    process = made({"image": "a", "env": [{"name": "X", "value": "1"}], "tty": True}, own(image="b", stdin=True))
    assert (process.image, process.env, process.container_overlay) == ("b", {"X": "1"}, {"tty": True, "stdin": True})


def test_a_command_takes_the_place_of_shell_lines_and_arguments_are_those_of_the_shell() -> None:
    process = made({"command": ["run"]}, cmds=["echo 1"], preamble=["export A=1"])
    assert (process.command, process.cmds, process.preamble) == (["run"], None, [])
    process = made({"args": ["zero", "one"]}, cmds=['echo "$1"'], preamble=["set -u"])
    assert (process.command, process.args) == ([*shell_argv(DEFAULT_SHELL), 'set -u\necho "$1"'], ["zero", "one"])


def test_what_an_overlay_asks_for_is_not_lowered_by_reserve() -> None:
    process = made({"resources": {"requests": {"cpu": "4"}}}, reserve=True)
    assert (process.requests, process.container_overlay) == ({}, {"resources": {"requests": {"cpu": "4"}}})


KEPT: list[dict[str, Any]] = [
    {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"containerName": "p", "resource": "limits.cpu"}}}]},
    {"env": [{"name": "SYMPH_INDEX", "value": "7"}]},
    {"image": ""},
    {"imagePullPolicy": "Sometimes"},
    {"args": {"a": "b"}, "command": {"a": "b"}},
    {"resources": {"claims": [{"name": "gpu"}]}},
    {"readinessProbe": {"grpc": {"port": 80}}},
    {"readinessProbe": {"httpGet": {"port": "web"}}, "ports": [{"name": "web", "containerPort": 80}]},
    {"readinessProbe": {"periodSeconds": 5}},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "None"}]},
    {"securityContext": {"runAsUser": 1}, "tty": True, "ports": [{"containerPort": 80}]},
]


@pytest.mark.parametrize("over", KEPT, ids=str)
def test_what_no_field_can_hold_stays_an_overlay(over: dict[str, Any]) -> None:
    process = made(over)
    assert process.container_overlay == over
    assert msgspec.structs.replace(process, container_overlay={}) == made()


KEPT_OF_PODS: list[dict[str, Any]] = [
    spec(hostNetwork=True, activeDeadlineSeconds=5, imagePullSecrets=[{"name": "s"}]),
    spec(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]),
    spec(serviceAccountName="", restartPolicy="Sometimes", terminationGracePeriodSeconds="5"),
    spec(volumes=[{"name": "nobody-mounts-it", "emptyDir": {}}]),
    {"metadata": {"labels": {"app.kubernetes.io/version": "1"}, "finalizers": ["a/b"]}},
]


@pytest.mark.parametrize("over", KEPT_OF_PODS, ids=str)
def test_what_no_field_of_a_pod_can_hold_stays_an_overlay(over: dict[str, Any]) -> None:
    assert made(pod=over).pod_overlay == over


def test_a_variable_has_the_value_of_the_last_overlay_in_one_place() -> None:
    entry = {"name": "A", "valueFrom": {"fileKeyRef": {"path": "f", "key": "k", "volumeName": "v"}}}
    process = made({"env": [entry]}, env={"A": "1", "B": "2"})
    assert (process.env, process.container_overlay) == ({"B": "2"}, {"env": [entry]})
    process = made({"env": [entry]}, own(env=[{"name": "A", "value": "1"}]))
    assert (process.env, process.container_overlay) == ({"A": "1"}, {})


@pytest.mark.parametrize(
    ("probe", "ready"),
    [
        ({"timeoutSeconds": 9}, {"tcp": 80, "period": 3, "timeout": 9}),
        ({"exec": {"command": ["true"]}}, {"exec": ["true"], "period": 3}),
    ],
)
def test_a_probe_laid_on_ready_changes_what_it_says_alone(probe: object, ready: object) -> None:
    process = made({"readinessProbe": probe}, ready={"tcp": 80, "period": 3})
    assert process.ready == made(ready=ready).ready


def test_a_volume_that_a_container_mounts_is_the_experiments() -> None:
    overlay = spec(volumes=[{"name": "v", "hostPath": {"path": "/x"}}, {"name": "w", "emptyDir": {}}])
    found = experiment({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, overlay)
    assert found.volumes == {"v": HostPathVolume(path="/x")}
    assert found.processes["p"].mounts == [Mount(volume="v", at="/v")]
    assert found.processes["p"].pod_overlay == spec(volumes=[{"name": "w", "emptyDir": {}}])


def test_a_mount_at_a_known_path_changes_that_mount() -> None:
    mounts = [{"at": "/v", "empty_dir": {}, "name": "v"}]
    found = made({"volumeMounts": [{"mountPath": "/v", "readOnly": True}]}, mounts=mounts)
    assert found.mounts == [Mount(volume="v", at="/v", read_only=True)]


def test_two_contents_of_a_volume_of_one_name_are_kept_apart() -> None:
    def pod(path: str) -> dict[str, object]:
        volumes = [{"name": "v", "hostPath": {"path": path}}]
        return {
            "command": ["x"],
            "pod_overlay": spec(volumes=volumes),
            "container_overlay": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        }

    found = from_data({"name": "e", "processes": {"a": pod("/a"), "b": pod("/b"), "c": pod("/a")}})
    assert found.volumes == {"v": HostPathVolume(path="/a")}
    assert [len(process.mounts) for process in found.processes.values()] == [1, 0, 1]
    assert found.processes["b"].pod_overlay == pod("/b")["pod_overlay"]
    assert found.processes["b"].container_overlay == pod("/b")["container_overlay"]


def test_a_volume_of_the_experiment_can_be_mounted_by_an_overlay() -> None:
    data = {
        "name": "e",
        "volumes": {"v": {"type": "empty_dir"}},
        "processes": {
            "p": {"command": ["x"], "container_overlay": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}}
        },
    }
    found = from_data(data)
    assert (found.volumes, found.processes["p"].mounts) == ({"v": EmptyDirVolume()}, [Mount(volume="v", at="/v")])


REFUSED = [
    (spec(restartPolicy="Always"), "restart a finite process forever", "pod_overlay.spec.restartPolicy"),
    (spec(terminationGracePeriodSeconds=-1), "too low", "pod_overlay.spec.terminationGracePeriodSeconds"),
    (spec(nodeSelector={"a b": "x"}), "is not a valid key", "pod_overlay.spec.nodeSelector.a b"),
    (
        spec(tolerations=[{"operator": "Exists", "value": "x"}]),
        "cannot have a value",
        "pod_overlay.spec.tolerations[0].value",
    ),
    (
        own(env=[{"name": "B", "value": "1"}, {"name": "A", "value": "$(A)"}]),
        "refers to itself",
        "pod_overlay.spec.containers[0].env[1]",
    ),
    (
        own(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        "above its limit",
        "pod_overlay.spec.containers[0].resources.requests.cpu",
    ),
]


@pytest.mark.parametrize(("over", "words", "path"), REFUSED, ids=[path for _, _, path in REFUSED])
def test_what_a_field_refuses_is_refused_where_the_overlay_says_it(over: object, words: str, path: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        made(pod=over)
    assert [problem.path for problem in caught.value.problems] == [f"processes.p.{path}"]


OF_CHART = [
    ("pod_overlay: {spec: {priorityClassName: '${PRIO}'}}", "pod_overlay.spec.priorityClassName"),
    ("pod_overlay: {spec: {tolerations: [{key: a, operator: '${OP}'}]}}", "pod_overlay.spec.tolerations[0].operator"),
    ("pod_overlay: {spec: {nodeSelector: {a: '${X}'}}}", "pod_overlay.spec.nodeSelector.a"),
    ("pod_overlay: {spec: {containers: [{name: a, image: ' '}]}}", "pod_overlay.spec.containers[0].image"),
    ("priority_class: '${PRIO}'", "priority_class"),
]


@pytest.mark.parametrize(("field", "path"), OF_CHART, ids=[path for _, path in OF_CHART])
def test_a_fault_that_the_chart_finds_names_the_path_in_the_spec(field: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(f"name: e\nimage: u:1\nprocesses:\n  a:\n    command: [run]\n    {field}\n")
    with pytest.raises(SpecError) as caught:
        prepare(read(file))
    assert caught.value.at.endswith(f", processes.a.{path}")
    assert "groups." not in str(caught.value)


def test_a_fault_of_a_field_is_told_of_the_field_beside_an_overlay() -> None:
    with pytest.raises(SpecError) as caught:
        made({"env": [{"name": "B", "value": "1"}]}, spec(priorityClassName="x"), env={"A": "$(A)"}, replicas=-1)
    assert {problem.path for problem in caught.value.problems} == {"processes.p.env.A", "processes.p.replicas"}


def test_a_fault_of_a_grouped_process_is_told_of_its_own_overlay() -> None:
    processes = {"a": {"command": ["a"], "container_overlay": {"env": [{"name": "A", "value": "$(A)"}]}}}
    with pytest.raises(SpecError) as caught:
        from_data({"name": "e", "groups": {"g": {"processes": processes}}})
    assert [problem.path for problem in caught.value.problems] == ["groups.g.processes.a.container_overlay.env[0]"]


def test_an_edit_in_python_and_an_overlay_in_yaml_are_the_same_experiment() -> None:
    over: Any = {"args": ["x"], "env": [{"name": "A", "value": "1"}], "workingDir": "/w", "tty": True}
    pod: Any = spec(priorityClassName="high", hostNetwork=True, volumes=[{"name": "v", "emptyDir": {}}])
    builder = ExperimentSpec("e", image="u:1")
    agent = builder.new_process("p", command="run")
    agent.container_yml.set_attr({**over, "volumeMounts": [{"name": "v", "mountPath": "/v"}]})
    agent.pod_yml.set_attr(pod)
    assert builder.finish() == experiment({**over, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}, pod)


@st.composite
def overlaid(draw: st.DrawFn) -> dict[str, Any]:
    """Draw data of an experiment with overlays of every sort, two of which may declare the same volumes."""
    process: dict[str, Any] = {"command": ["run"], "env": {"A": "1"}, "container_overlay": draw(container_overlays)}
    lines: dict[str, Any] = {"cmds": ["run"], "preamble": ["x"], "container_overlay": draw(container_overlays)}
    members = {"q": {"command": ["q"], "lifecycle": "service"}, "r": lines}
    return {
        "name": "e",
        "image": "u:1",
        "processes": {"p": {**process, "pod_overlay": draw(pod_overlays("p"))}},
        "groups": {"g": {"processes": members, "pod_overlay": draw(pod_overlays("q", "r"))}},
    }


# Keys that readers of overlays know, at any place and with anything below.
WORDS = ["name", "value", "valueFrom", "env", "args", "containers", "volumes", "volumeMounts", "mountPath", "spec"]
WORDS += ["metadata", "labels", "resources", "limits", "tolerations", "key", "effect", "secretKeyRef", "emptyDir", "p"]
WORDS += ["readinessProbe", "exec", "command", "tcpSocket", "port", "image", "nodeSelector", "hostPath", "path", "n"]
anything = st.recursive(
    st.one_of(st.sampled_from(["p", "", "x", "1", "Exists"]), st.integers(-1, 2**60), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)),
    max_leaves=12,
)
odd = st.dictionaries(st.sampled_from(WORDS), anything, max_size=4)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(odd, st.fixed_dictionaries({}, optional={"spec": odd, "metadata": odd}))
def test_anything_in_an_overlay_is_taken_or_refused(container: dict[str, Any], pod: dict[str, Any]) -> None:
    with suppress(SpecError):
        once = experiment(container, pod, mounts=[{"at": "/p", "empty_dir": {}, "name": "p"}])
        assert finish(once) == from_data(to_data(once)) == once


def test_the_times_of_a_probe_are_joined_with_the_question_of_a_later_overlay() -> None:
    pod = {"spec": {"containers": [{"name": "p", "readinessProbe": {"httpGet": {"port": 80}}}]}}
    once = experiment({"readinessProbe": {"timeoutSeconds": 7}}, pod)
    (process,) = once.processes.values()
    assert (process.ready, process.container_overlay) == (Probe(http=HttpProbe(port=80), timeout=7), {})
    assert finish(once) == once


@SOME
@given(overlaid())
def test_text_and_back_is_the_same_experiment(data: dict[str, Any]) -> None:
    once = from_data(data)
    assert from_data(to_data(once)) == once
