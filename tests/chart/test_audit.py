"""Faults of hand-written charts that a platform team would refuse; each test prevents one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.chart.release import render_release
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.spec.checks.finish import finish
from tests.chart.harness import (
    assert_same,
    built_of,
    chart_of,
    experiment_of,
    helm_objects,
    native_objects,
    object_in,
    run_helm,
    write_chart,
)
from tests.chart.objects import Item, pod_templates
from tests.linting import lint
from tests.tools import HELM_VERSIONS

PAIR: Item = {
    "server": {"command": ["serve"], "binds": "data", "lifecycle": "service", "replicas": 2},
    "client": {"command": ["work"], "connects": "data", "retries": 2},
}


def errors(data: Item, *, release: str = "r1", values: Item | None = None) -> dict[str, str]:
    try:
        built = built_of(finish(experiment_of(**data), for_cluster=True))
        render_release(built, {**built.values, **(values or {})}, Release(name=release))
    except SpecError as error:
        return {problem.path: problem.what for problem in error.problems}
    return {}


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["UPPER", "-x", "a_b", "a.", "x" * 54, ""])
def test_names_that_no_release_can_have_are_refused(release: str) -> None:
    named = {"fullnameOverride": "fine"}
    assert (
        f'"{release}" cannot be the name of a release' in errors({"processes": PAIR}, release=release, values=named)[""]
    )


@pytest.mark.parametrize("release", ["rl.v1", "1x"])
def test_releases_after_which_no_service_can_be_called_need_another_full_name(release: str) -> None:
    assert "cannot name a Service" in errors({"processes": PAIR}, release=release)[""]
    assert not errors({"processes": PAIR}, release=release, values={"fullnameOverride": "fine"})


@pytest.mark.parametrize(
    ("name", "release", "is_refused"),
    [
        ("exp-data", "exp", True),
        ("r1-exp-data", "r1", True),
        ("r1-exp-server-pods", "r1", True),
        ("r1-exp-data", "r2", False),
        ("data", "r1", False),
    ],
)
def test_a_name_of_pods_that_is_the_name_of_another_service_is_refused(
    name: str, release: str, is_refused: bool
) -> None:
    processes = {**PAIR, "server": {**PAIR["server"], "names": [name]}}
    found = errors({"processes": processes}, release=release)
    assert list(found) == [f"Service/{name}"] * is_refused


# --- traffic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["NodePort", "Ingress", "Gateway"])
def test_ranges_of_clients_that_nothing_enforces_are_refused(type_: str) -> None:
    expose = {"web": {"type": type_, "source_ranges": ["10.0.0.0/8"], "gateway": "g" if type_ == "Gateway" else None}}
    assert list(errors({"processes": {"a": {"exposes": "web"}}, "expose": expose})) == ["expose.web.source_ranges"]


def test_an_overlay_that_asks_for_another_name_server_on_the_host_network_has_it() -> None:
    overlay = {"spec": {"hostNetwork": True, "dnsPolicy": "Default"}}
    objects = native_objects(chart_of(experiment_of(processes={"a": {"pod_overlay": overlay}})))
    assert pod_templates(list(objects.values()))["a"]["spec"]["dnsPolicy"] == "Default"


@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe", "startupProbe"])
@pytest.mark.parametrize(
    ("handler", "is_refused"),
    [
        ({"tcpSocket": {"port": "dota"}}, True),
        ({"httpGet": {"port": "dota"}}, True),
        ({"tcpSocket": {"port": "other"}}, True),
        ({"tcpSocket": {"port": "data"}}, False),
        ({"tcpSocket": {"port": "beside"}}, True),
        ({"tcpSocket": {"port": "metrics"}}, False),
        ({"httpGet": {"port": 9000, "path": "/"}}, False),
    ],
)
def test_a_probe_of_an_overlay_asks_a_port_of_its_own_container(probe: str, handler: Item, is_refused: bool) -> None:
    ports = [{"name": "metrics", "containerPort": 9100}]
    group = {
        "processes": {
            "a": {"binds": "data", "container_overlay": {probe: handler, "ports": ports}},
            "b": {"binds": "beside"},
        }
    }
    found = errors({"groups": {"g": group}, "processes": {"c": {"binds": "other"}}})
    (kind, asked) = next(iter(handler.items()))
    path = f"groups.g.processes.a.container_overlay.{probe}.{kind}.port"
    assert found == ({path: f'process "g/a" does not listen on a service "{asked["port"]}"'} if is_refused else {})


@pytest.mark.parametrize(
    ("port", "security", "context", "is_found"),
    [
        (80, {}, {}, True),
        (1024, {}, {}, False),
        (80, {"level": "privileged"}, {}, False),
        (80, {}, {"capabilities": {"add": ["NET_BIND_SERVICE"]}}, False),
    ],
)
def test_a_low_port_without_the_capability_for_it_is_said(
    port: int, security: Item, context: Item, is_found: bool
) -> None:
    process = {"exposes": {"web": port}, "container_overlay": {"securityContext": context} if context else {}}
    found = lint(chart_of(experiment_of(processes={"p": process}, security=security)))
    assert ("low-port" in {finding.rule for finding in found}) == is_found


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_of_pod", [True, False])
def test_what_an_overlay_says_of_a_step_can_be_changed_by_values(is_of_pod: bool, tmp_path: Path) -> None:
    over: Item = {
        "image": "other:1",
        "command": ["y"],
        "args": ["z"],
        "env": [{"name": "B", "value": "2"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "tty": True,
    }
    step = {"command": ["get"], "env": {"A": "1"}, "container_overlay": {} if is_of_pod else over}
    overlay = {"spec": {"initContainers": [{"name": "fetch", **over}]}} if is_of_pod else {}
    experiment = experiment_of(processes={"p": {"command": ["x"], "pod_overlay": overlay}}, prepare={"fetch": step})
    chart = chart_of(experiment)
    ours, changed = (_step(chart, sets) for sets in ([], ["groups.p.initContainers.fetch.args={w}"]))
    assert (ours["image"], ours["command"], ours["args"], ours["tty"]) == ("other:1", ["y"], ["z"], True)
    assert ours["resources"]["limits"] == {"memory": "1Gi"}
    assert {"A", "B", "SYMPH_GROUP"} <= {item["name"] for item in ours["env"]}
    assert changed == {**ours, "args": ["w"]}
    assert_same(chart, tmp_path)


def _step(chart: Chart, sets: list[str]) -> Item:
    pods = pod_templates(list(native_objects(chart, sets).values()))
    step: Item = pods["p"]["spec"]["initContainers"][0]
    step["env"] = [item for item in step["env"] if item["name"] != "SYMPH_RUN"]
    return step


@pytest.mark.parametrize("place", ["processes.p", "prepare.fetch"])
@pytest.mark.parametrize("key", ["command", "args"])
def test_words_of_an_overlay_are_a_list_of_texts(place: str, key: str) -> None:
    data: Item = {"processes": {"p": {"command": ["x"]}}, "prepare": {"fetch": {"command": ["get"]}}}
    section, name = place.split(".")
    data[section][name]["container_overlay"] = {key: {"a": "b"}}
    assert list(errors(data)) == [f"{place}.container_overlay.{key}"]


def test_operator_v0_starts_one_coordinator_whatever_values_ask_for(tmp_path: Path) -> None:
    roles = {name: {"command": ["x"]} for name in ("coordinator", "collector", "learner")}
    chart = chart_of(experiment_of(processes=roles, workload={"kind": "dijob", "dijob": {"operator": "v0"}}))
    with pytest.raises(SpecError, match=r"2 does not fit in groups\.coordinator\.replicas"):
        native_objects(chart, ["groups.coordinator.replicas=2"])
    native_objects(chart, ["groups.collector.replicas=2"])
    folder = write_chart(chart, tmp_path)
    for version in HELM_VERSIONS:
        shown = run_helm(version, "template", "r", folder, "--set", "groups.coordinator.replicas=2", check=False)
        assert shown.returncode


# --- values ----------------------------------------------------------------------------------------------------------


_CLIENT = "groups.client.containers.client"


@pytest.mark.parametrize(
    "values",
    [
        {"env": {"POD_IP": {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}}},
        {"env": {"KEY": {"secretKeyRef": {"name": "s", "key": "k"}, "fieldRef": {"fieldPath": "status.podIP"}}}},
        {"image": "a b"},
        {"image": {"repository": 'a"b'}},
    ],
)
def test_values_that_make_impossible_objects_are_refused_by_all(values: Item, tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes=PAIR))
    whole = {"groups": {"client": {"containers": {"client": values}}}}
    with pytest.raises(SpecError, match=rf"does not fit in {_CLIENT}\.(env|image)"):
        native_objects(chart, values=whole)
    folder = write_chart(chart, tmp_path)
    (folder / "over.json").write_text(json.dumps(whole))
    for version in HELM_VERSIONS:
        assert run_helm(version, "template", "r", folder, "-f", folder / "over.json", check=False).returncode


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({"image": {"tag": 20261124}}, "busybox:20261124"),
        ({"image": {"registry": "r.example.org", "digest": "sha256:1"}}, "r.example.org/busybox:1.37.0@sha256:1"),
        ({"groups": {"client": {"containers": {"client": {"image": {"tag": "v2"}}}}}}, "busybox:v2"),
        ({"groups": {"client": {"containers": {"client": {"image": "other"}}}}}, "other"),
        ({"global": {"imageRegistry": "mirror"}}, "mirror/busybox:1.37.0"),
    ],
)
def test_tools_change_a_part_of_an_image_or_the_whole(values: Item, image: str, tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes=PAIR))
    objects = list(native_objects(chart, values=values).values())
    assert pod_templates(objects)["client"]["spec"]["containers"][0]["image"] == image
    assert_same(chart, tmp_path, values=values)


def test_numbers_and_keys_of_a_values_file_are_printed_as_they_are_written(tmp_path: Path) -> None:
    env = {"STEPS": 1000000, "BIG": 9007199254740992, "HALF": 0.5, "ON": True, "n": "1"}
    values: Item = {
        "groups": {"client": {"replicas": 10000, "retries": "3", "containers": {"client": {"env": env}}}},
        "podAnnotations": {"n": 1000000, "on": "off"},
    }
    chart = chart_of(experiment_of(processes=PAIR))
    assert_same(chart, tmp_path, values=values)
    template = pod_templates(list(native_objects(chart, values=values).values()))["client"]
    told = {item["name"]: item.get("value") for item in template["spec"]["containers"][0]["env"]}
    assert [told[name] for name in env] == ["1000000", "9007199254740992", "0.5", "true", "1"]


@pytest.mark.parametrize("none", [0, "0"])
def test_nothing_leads_to_a_group_without_replicas(none: object, tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes=PAIR, security={"network_policy": True}))
    values: Item = {"groups": {"server": {"replicas": none}}}
    assert_same(chart, tmp_path, values=values)
    objects = native_objects(chart, values=values)
    rights = {"ServiceAccount", "Role", "RoleBinding"}
    assert {kind for kind, _ in objects} - rights == {"ConfigMap", "Job", "NetworkPolicy"}
    assert "DATA" not in json.dumps(list(objects.values()))
    assert [name for kind, name in objects if kind == "NetworkPolicy"] == ["r1-exp"]


def test_what_users_set_of_ours_is_there_once(tmp_path: Path) -> None:
    processes = {"a": {"exposes": "web", "labels": {"team": "x"}}}
    chart = chart_of(experiment_of(processes=processes, annotations={"note": "spec"}))
    values: Item = {
        "podAnnotations": {"other": "values"},
        "commonLabels": {"team": "y"},
        "commonAnnotations": {"note": "values"},
        "services": {"web": {"annotations": {"note": "service"}}},
        "groups": {"a": {"containers": {"a": {"env": {"SYMPH_INDEX": "7"}}}}},
    }
    folder = write_chart(chart, tmp_path)
    (folder / "over.json").write_text(json.dumps(values))
    for version in HELM_VERSIONS:
        text = run_helm(version, "template", "r1", folder, "-f", folder / "over.json").stdout
        made = [item for document in re.split(r"^---\n", text, flags=re.MULTILINE) if (item := object_in(document))]
        names = [item["name"] for item in maps(_containers(made)[0], "env")]
        assert len(names) == len(set(names))
        told = {item["name"]: item.get("value") for item in maps(_containers(made)[0], "env")}
        assert told["SYMPH_INDEX"] == "7"


def _containers(objects: list[Item]) -> list[Item]:
    return [member for pod in pod_templates(objects).values() for member in maps(pod["spec"], "containers")]


def test_a_run_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes=PAIR))
    built = built_of(experiment_of(processes=PAIR))
    keys = (str(number) for number in range(10_000))
    key = next(key for key in keys if re.fullmatch(r"\d+(e\d+)?", _run(built, key)))
    assert_same(chart, tmp_path, [f"runKey={key}"])


def _run(built: Any, key: str) -> str:
    return str(built.text("{run}", {**built.values, "runKey": key}, Release(name="r1")))


# --- charts ----------------------------------------------------------------------------------------------------------


def test_a_chart_has_no_file_that_it_does_not_need() -> None:
    chart = chart_of(experiment_of(processes={"a": {"command": ["x"]}}))
    templates = sorted(path for path in chart.files if path.startswith("templates/"))
    assert templates == [f"templates/{name}" for name in ("NOTES.txt", "_helpers.tpl", "a.yaml", "config.yaml")]
    text = b"".join(content for path, content in chart.files.items() if path.startswith("templates/")).decode()
    defined = set(re.findall(r'define "([^"]+)"', text))
    assert defined - set(re.findall(r'include "([^"]+)"', text)) == set()


_KEYS = ("apiVersion", "kind", "metadata", "immutable", "spec", "data")


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "jobset"},
        {"kind": "appwrapper"},
        {"kind": "volcano"},
        {"kind": "argo"},
        {"gang": "kueue", "queue": "q"},
        {"gang": "coscheduling", "scheduler_name": "s"},
        {"gang": "native", "gang_version": "v1beta1"},
    ],
)
def test_objects_of_every_kind_have_their_keys_in_the_usual_order(workload: Item) -> None:
    for item in native_objects(chart_of(experiment_of(processes=PAIR, workload=workload))).values():
        assert [key for key in item if key in _KEYS] == [key for key in _KEYS if key in item], item["kind"]


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_templates_of_users_find_names_labels_and_images(version: str, tmp_path: Path) -> None:
    folder = write_chart(chart_of(experiment_of(processes=PAIR)), tmp_path)
    (folder / "templates" / "extra-a.yaml").write_text(
        """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "exp.fullname" . }}-mine
  labels: {{- include "exp.labels" . | nindent 4 }}
data:
  run: {{ include "exp.run" . | quote }}
  selector: |
    {{- include "exp.selectorLabels" . | nindent 4 }}
  image: |
    {{- include "exp.image" (dict "root" . "image" .Values.tests.image) | nindent 4 }}
"""
    )
    objects = helm_objects(version, folder)
    mine: Any = objects["ConfigMap", "r1-exp-mine"]
    job = next(item for (kind, _), item in objects.items() if kind == "Job")
    assert mine["data"]["run"] == sub(job, "metadata", "labels")["symph.dev/run"]
    assert mine["data"]["image"].strip() == 'image: "busybox:1.37.0"'
    assert mine["metadata"]["labels"].items() <= sub(job, "metadata", "labels").items()


def test_commands_of_the_notes_select_pods_of_the_release_alone(tmp_path: Path) -> None:
    folder = write_chart(chart_of(experiment_of(processes=PAIR)), tmp_path)
    notes = run_helm("4.3", "install", "r1", folder, "--dry-run=client").stdout.partition("NOTES:")[2]
    selectors = re.findall(r" -l (\S+)", notes)
    assert len(selectors) == 2
    assert all(text.startswith("app.kubernetes.io/instance=r1,") for text in selectors)
