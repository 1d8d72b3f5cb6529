"""The objects that a chart makes of an experiment."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.errors import SpecError
from symphony_charts.placement.assign import add_launch_features
from symphony_charts.spec import files as specfile
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from tests.chart.harness import EXAMPLES, experiment_of, run_helm
from tests.chart.judge import write
from tests.chart.objects import Item, pod_templates, reachable, wrapped_jobs
from tests.tools import HELM_VERSIONS


def chart(experiment: Experiment) -> BuiltChart:
    return build(experiment, allocate(experiment))


def objects_of(experiment: Experiment) -> list[Item]:
    """Return its objects under the default values, with all Secrets sealed that have to be."""
    built = chart(experiment)
    values = json.loads(json.dumps(built.values))
    if "encryptedData" in values.get("secrets", {}):
        values["secrets"]["encryptedData"] = dict.fromkeys(("token", "key"), "AgB1")
    return json.loads(json.dumps(built.objects(values, Release(name="r1"))))  # type: ignore[no-any-return]


def one(objects: list[Item], kind: str, name: str = "") -> Item:
    """Return the only object of a kind whose name has this ending."""
    (found,) = [item for item in objects if item["kind"] == kind and item["metadata"]["name"].endswith(name)]
    return found


def environment(objects: list[Item], group: str, container: str = "") -> dict[str, Any]:
    """Return the environment of a container: the ConfigMap, then its own variables."""
    spec = pod_templates(objects)[group]["spec"]
    every = [*spec.get("initContainers", []), *spec["containers"]]
    found = next(each for each in every if each["name"] == (container or group))
    shared = next(
        item["data"] for item in objects if item["kind"] == "ConfigMap" and "SYMPH_EXPERIMENT" in item["data"]
    )
    return {**shared, **{item["name"]: item.get("value", item.get("valueFrom")) for item in found["env"]}}


def ask_and_serve(**server: Any) -> dict[str, Any]:
    """Return two processes: `server` binds `api`, `client` connects to it."""
    return {
        "server": {"command": ["serve"], "binds": "api", **server},
        "client": {"command": ["ask"], "connects": "api"},
    }


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper", "volcano"])
@pytest.mark.parametrize("lifecycle", ["finite", "service"])
def test_hosts_are_pods_that_a_headless_service_names(kind: str, lifecycle: str) -> None:
    stays = {"until": "uninstall"} if lifecycle == "service" else {}
    processes = ask_and_serve(replicas=2, lifecycle=lifecycle, **stays)
    objects = objects_of(experiment_of(processes=processes, workload={"kind": kind}))
    hosts = environment(objects, "client")["SYMPH_API_HOSTS"].split(",")

    def in_set() -> str:
        return f"{one(objects, 'JobSet')['metadata']['name']}-server-0"

    def alone() -> str:
        return str(one(objects, "Job", f"server-{run_of(objects)}")["metadata"]["name"])

    workloads: dict[tuple[str, str], Callable[[], str]] = {
        ("jobs", "finite"): alone,
        ("jobset", "finite"): in_set,
        ("appwrapper", "finite"): lambda: str(wrapped_jobs(one(objects, "AppWrapper"))[1]["metadata"]["name"]),
        ("volcano", "finite"): lambda: f"{one(objects, 'Job')['metadata']['name']}-server",
    }
    workload = workloads.get((kind, lifecycle), lambda: str(one(objects, "StatefulSet")["metadata"]["name"]))()
    headless = one(objects, "Service", "server-pods")
    domain = headless["metadata"]["name"]
    assert hosts == [f"{workload}-{index}.{domain}:7000" for index in range(2)]
    labels = pod_templates(objects)["server"]["metadata"]["labels"]
    assert headless["spec"]["selector"].items() <= labels.items()
    spec = pod_templates(objects)["server"]["spec"]
    assert (
        spec.get("subdomain", one(objects, "StatefulSet")["spec"]["serviceName"] if "subdomain" not in spec else "")
        == domain
    )


def run_of(objects: list[Item]) -> str:
    return str(pod_templates(objects)["client"]["metadata"]["labels"]["symph.dev/run"])


def test_attempts_are_counted_by_kubernetes_without_a_shell() -> None:
    objects = objects_of(experiment_of(processes={"a": {"command": ["x"], "retries": 3}}))
    assert "job-index-failure-count" in environment(objects, "a")["SYMPH_ATTEMPT"]["fieldRef"]["fieldPath"]
    assert pod_templates(objects)["a"]["spec"]["containers"][0]["command"] == ["x"]
    job = one(objects, "Job")["spec"]
    assert (job["completionMode"], job["backoffLimitPerIndex"], job["maxFailedIndexes"]) == ("Indexed", 3, 0)


@pytest.mark.parametrize(
    ("server", "is_published"),
    [
        ({}, True),
        ({"ready": "none"}, True),
        ({"ready": {"http": {"port": "api", "path": "/health"}}}, False),
        ({"exposes": "api"}, False),
    ],
)
def test_services_publish_unready_addresses_only_without_a_declared_probe(server: Item, is_published: bool) -> None:
    objects = objects_of(experiment_of(processes=ask_and_serve(lifecycle="service", **server)))
    assert one(objects, "Service", "-api")["spec"].get("publishNotReadyAddresses", False) == is_published
    assert one(objects, "Service", "-pods")["spec"]["publishNotReadyAddresses"]


@pytest.mark.parametrize(("service", "port"), [("db", "db"), ("parameter-server", "parameter-serve")])
def test_a_service_in_a_finite_group_is_a_sidecar_with_a_startup_probe(service: str, port: str) -> None:
    group = {"processes": {"db": {"binds": service, "lifecycle": "service"}, "main": {"connects": service}}}
    spec = pod_templates(objects_of(experiment_of(groups={"g": group})))["g"]["spec"]
    (sidecar,) = spec["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["tcpSocket"] == sidecar["readinessProbe"]["tcpSocket"] == {"port": port}


def test_labels_and_annotations_of_the_experiment_are_on_every_object() -> None:
    experiment = experiment_of(
        processes=ask_and_serve(lifecycle="service", exposes="web"),
        labels={"cost": "7"},
        annotations={"owner": "me"},
        service_account="sa",
        security={"network_policy": True},
        secrets=[{"file": "token"}],
        secret_source={"source": "external", "store": "vault"},
        expose={"web": {"type": "Ingress", "annotations": {"a": "b"}}},
    )
    built = chart(experiment)
    values = {**built.values, "serviceAccount": {"create": True, "name": "", "annotations": {"c": "d"}}}
    objects = built.objects(values, Release(name="r1"))
    assert {"Ingress", "ServiceAccount", "NetworkPolicy", "ExternalSecret", "Pod"} <= {item["kind"] for item in objects}
    for item in objects:
        assert item["metadata"]["labels"]["cost"] == "7"
        assert item["metadata"]["annotations"]["owner"] == "me", item["kind"]
    for template in pod_templates(objects).values():
        assert template["metadata"]["labels"]["cost"] == "7"
        assert template["metadata"]["annotations"]["owner"] == "me"


def test_exclusive_placement_is_written_on_the_job_set() -> None:
    experiment = experiment_of(processes={"a": {}}, workload={"kind": "jobset"}, placement={"exclusive": "rack"})
    job_set = one(objects_of(add_launch_features(experiment, None)), "JobSet")
    assert job_set["metadata"]["annotations"] == {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}


@pytest.mark.parametrize(
    ("replicas", "least", "minimum"), [({"a": 4, "b": 3}, 2, 5), ({"a": 1, "b": 3}, 2, 4), ({"a": 0, "b": 3}, 2, 3)]
)
def test_a_gang_needs_all_of_a_run_and_no_more_than_there_are(
    replicas: dict[str, int], least: int, minimum: int
) -> None:
    experiment = experiment_of(
        processes={
            "a": {"replicas": 4, "min_replicas": least, "connects": "b"},
            "b": {"replicas": 3, "lifecycle": "service", "binds": "b"},
        },
        workload={"gang": "volcano", "queue": "q"},
    )
    built = chart(experiment)
    values = json.loads(json.dumps(built.values))
    for name, count in replicas.items():
        values["groups"][name]["replicas"] = count
    (group,) = [item for item in built.objects(values, Release(name="r1")) if item["kind"] == "PodGroup"]
    assert group["spec"] == {"minMember": minimum, "queue": "q"}


def sealed(**secrets: Any) -> tuple[BuiltChart, dict[str, Any]]:
    """Return a chart whose Secret is sealed, and its values with `secrets`."""
    experiment = experiment_of(
        processes={"a": {}}, secrets=[{"file": "token"}, {"file": "key"}], secret_source={"source": "sealed"}
    )
    built = chart(experiment)
    return built, {**built.values, "secrets": {**built.values["secrets"], **secrets}}


@pytest.mark.parametrize(
    ("secrets", "fault"),
    [
        ({}, "no sealed value"),
        ({"encryptedData": {"key": "x"}}, "no sealed value for token"),
        ({"encryptedData": {"key": "x", "token": "y"}, "sealedFor": "default/other"}, "sealed for default/other"),
        ({"encryptedData": {"key": "x", "token": "y"}, "sealedFor": "default/r1-exp-secrets"}, ""),
        ({"name": "own"}, ""),
    ],
)
def test_secrets_that_are_not_sealed_for_the_release_are_refused(secrets: Item, fault: str, tmp_path: Path) -> None:
    built, values = sealed(**secrets)
    write(built, tmp_path)
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    results = [run_helm(version, "template", "r1", tmp_path, check=False) for version in HELM_VERSIONS]
    if not fault:
        assert [item["kind"] for item in built.objects(values, Release(name="r1"))]
        assert not any(result.returncode for result in results)
        return
    with pytest.raises(SpecError, match=fault):
        built.objects(values, Release(name="r1"))
    assert all(result.returncode for result in results)
    assert fault.split()[-1] in results[0].stderr


def test_a_finite_process_is_held_up_only_for_tests() -> None:
    built = chart(experiment_of(processes={"a": {"command": ["x"], "args": ["y"], "binds": "s"}}))
    usual, held = (
        pod_templates(
            built.objects({**built.values, "tests": {**built.values["tests"], "hold": hold}}, Release(name="r1"))
        )["a"]
        for hold in (False, True)
    )
    assert usual["spec"]["containers"][0]["command"] == ["x"]
    command = held["spec"]["containers"][0]["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[3:] == ["x"]
    assert held["spec"]["containers"][0]["args"] == ["y"]


def test_a_held_process_listens_on_the_ports_of_its_services_after_its_end() -> None:
    script = chart(experiment_of(processes={"a": {"command": ["x"]}})).frame.files["scripts/hold.sh"].decode()
    assert "$(" not in script
    script = script.replace("$$", "$")  # as Kubernetes does
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"PATH": os.environ["PATH"], "SYMPH_MY_API_BIND_HOST": "127.0.0.1", "SYMPH_MY_API_PORT": str(port)}
    with subprocess.Popen(["/bin/sh", "-c", script, "true"], env=env, stdout=subprocess.DEVNULL) as held:
        try:
            _dial(port)
        finally:
            held.terminate()
    failed = subprocess.run(["/bin/sh", "-c", script, "sh", "-c", "exit 3"], env=env, check=False)
    assert failed.returncode == 3


def _dial(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("nothing listens")


def test_the_connection_test_dials_every_bound_service() -> None:
    objects = objects_of(experiment_of(processes=ask_and_serve(exposes="web")))
    pod = one(objects, "Pod")
    assert pod["spec"]["containers"][0]["args"] == ["r1-exp-api:7001"]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert not [item for item in objects_of(experiment_of(processes={"a": {}})) if item["kind"] == "Pod"]


def test_policies_let_in_callers_and_tests_and_nothing_else() -> None:
    processes = ask_and_serve(exposes={"web": 80}) | {"other": {"command": ["x"]}}
    objects = objects_of(experiment_of(processes=processes, security={"network_policy": True}))
    everyone = {"client", "server", "other", "(test)", "(outside)"}
    assert reachable(objects) == {("client", "server", 7000), ("(test)", "server", 7000)} | {
        (caller, "server", 80) for caller in everyone
    }


def test_closed_egress_stays_inside_of_the_release() -> None:
    built = chart(experiment_of(processes=ask_and_serve(), security={"network_policy": True}))
    extra = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    policy = {"enabled": True, "egress": True, "egressRules": [extra]}
    objects = built.objects({**built.values, "networkPolicy": policy}, Release(name="r1"))
    closing = next(item["spec"] for item in objects if item["kind"] == "NetworkPolicy" and "egress" in item["spec"])
    assert closing["policyTypes"] == ["Ingress", "Egress"]
    assert closing["egress"][0]["ports"][0]["port"] == 53
    assert closing["egress"][1:] == [{"to": [{"podSelector": closing["podSelector"]}]}, extra]


def test_extra_objects_are_printed_as_they_are() -> None:
    built = chart(experiment_of(processes={"a": {}}))
    extra = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}]
    assert built.objects({**built.values, "extraObjects": extra}, Release(name="r1"))[-1] == extra[0]


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper", "volcano"])
def test_files_are_no_larger_than_their_budget(kind: str) -> None:
    texts = chart(experiment_of(processes=ask_and_serve(lifecycle="service"), workload={"kind": kind})).texts()
    assert sum(text.count("\n") for text in texts.values()) <= 560


def test_nodes_of_di_engine_are_told_ranks_and_peers() -> None:
    experiment = experiment_of(
        compat="di-engine",
        processes={"learner": {"command": ["x"], "replicas": 2}, "collector": {"command": ["x"], "replicas": 3}},
    )
    objects = objects_of(experiment)
    first, second = environment(objects, "learner"), environment(objects, "collector")
    assert first["DI_RANK"]["fieldRef"]["fieldPath"].endswith("['batch.kubernetes.io/job-completion-index']")
    assert second["DI_FIRST_RANK"] == "2"
    assert first["DI_NODES"] == second["DI_NODES"] == f"{first['DI_LEARNER_NODES']},{second['DI_COLLECTOR_NODES']}"
    assert len(first["DI_NODES"].split(",")) == 5
    assert {item["metadata"]["name"] for item in objects if item["kind"] == "Service"} == {
        "r1-exp-learner-pods",
        "r1-exp-collector-pods",
    }
    with pytest.raises(SpecError, match="needs a command"):
        chart(experiment_of(compat="di-engine", processes={"learner": {}, "collector": {}}))


def test_configs_that_were_not_read_are_refused() -> None:
    experiment = experiment_of(processes={"a": {}}, configs={"c": {"file": "missing"}})
    with pytest.raises(SpecError, match="still names the file missing"):
        chart(experiment)


def test_the_templates_of_a_larger_example_are_within_their_budget() -> None:
    path = next(path for path in EXAMPLES if path.parent.name == "surreal")
    texts = chart(finish(specfile.read(path).experiment, for_cluster=True)).texts()
    assert sum(text.count("\n") for text in texts.values()) <= 1120


@pytest.mark.parametrize("is_privileged", [True, False])
def test_a_container_with_a_device_is_as_privileged_as_its_overlay_says(is_privileged: bool) -> None:
    process = {
        "command": ["x"],
        "mounts": [{"volume": "ib", "at": "/m"}],
        "container_overlay": {"securityContext": {"privileged": is_privileged}},
    }
    volumes = {"ib": {"type": "device", "path": "/dev/infiniband"}}
    objects = objects_of(experiment_of(processes={"a": process}, volumes=volumes))
    security = pod_templates(objects)["a"]["spec"]["containers"][0]["securityContext"]
    forbidden = {} if is_privileged else {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert security == {"privileged": is_privileged, **forbidden}


def gang(**workload: object) -> Experiment:
    """Return an experiment of kind appwrapper or volcano with retries, a minimum, a deadline and a sidecar."""
    actor = {"main": {"command": ["x"]}, "cache": {"lifecycle": "service", "binds": "cache"}}
    return experiment_of(
        processes={
            "learner": {"command": ["x"], "replicas": 4, "min_replicas": 2, "retries": 2, "deadline": 60},
            "tuner": {"command": ["x"], "restart": "on-failure", "retries": 3},
        },
        groups={"actor": {"replicas": 3, "retries": 1, "processes": actor}},
        done_when=["learner"],
        workload=workload,
    )


def test_an_app_wrapper_starts_the_whole_again_and_no_pod() -> None:
    wrapper = one(objects_of(gang(kind="appwrapper", appwrapper={"annotations": {"example.org/a": "n"}})), "AppWrapper")
    annotations = wrapper["metadata"]["annotations"]
    assert annotations["workload.codeflare.dev.appwrapper/retryLimit"] == "2"
    assert annotations["example.org/a"] == "n"
    jobs = {job["metadata"]["labels"]["symph.dev/group"]: job["spec"] for job in wrapped_jobs(wrapper)}
    assert {group: job["backoffLimit"] for group, job in jobs.items()} == {"actor": 0, "learner": 0, "tuner": 4}
    assert all("backoffLimitPerIndex" not in job for job in jobs.values())
    assert [part["podSets"] for part in wrapper["spec"]["components"]] == [
        [{"path": "template.spec.template", "replicas": count}] for count in (3, 4, 1)
    ]


def test_no_label_inside_an_app_wrapper_changes_with_the_release() -> None:
    built = chart(gang(kind="appwrapper"))
    values = {**built.values, "commonLabels": {"team": "a"}, "commonAnnotations": {"a": "b"}}
    before, after = (
        built.objects(built.values, Release(name="r1")),
        built.objects(values, Release(name="r1", version="9.9.9")),
    )
    assert one(before, "AppWrapper")["spec"] == one(after, "AppWrapper")["spec"]
    assert one(before, "AppWrapper")["metadata"] != one(after, "AppWrapper")["metadata"]


def test_mcad_gets_a_priority_a_minimum_and_the_resources_of_all_that_runs() -> None:
    experiment = gang(kind="appwrapper", appwrapper={"version": "v1beta1"}, priority=7)
    spec = one(objects_of(experiment), "AppWrapper")["spec"]
    assert spec["priority"] == 7
    assert spec["schedulingSpec"] == {"minAvailable": 3 + 2 + 1}
    items = spec["resources"]["GenericItems"]
    assert [[part["replicas"] for part in item["custompodresources"]] for item in items] == [[3, 3], [4], [1]]
    assert all(part["requests"] for item in items for part in item["custompodresources"])
    assert {item["completionstatus"] for item in items} == {"Complete,Failed"}
    assert [job["spec"].get("backoffLimitPerIndex") for job in wrapped_jobs({"spec": spec})] == [1, 2, None]


@pytest.mark.parametrize("workload", [{"gang": "kueue", "queue": "q"}, {"priority": 100_000}])
def test_mcad_is_neither_queued_by_kueue_nor_told_huge_numbers(workload: Item) -> None:
    experiment = gang(kind="appwrapper", appwrapper={"version": "v1beta1"}, **workload)
    with pytest.raises(SpecError, match=r"Kueue admits|priority is not between"):
        chart(experiment)


def test_a_volcano_job_has_a_minimum_a_budget_of_failures_and_policies_for_each_task() -> None:
    job = one(objects_of(gang(kind="volcano", queue="q", priority_class="high")), "Job")["spec"]
    assert (job["queue"], job["priorityClassName"], job["minAvailable"], job["maxRetry"]) == ("q", "high", 6, 3)
    tasks = {task["name"]: task for task in job["tasks"]}
    assert {name: task["minAvailable"] for name, task in tasks.items()} == {"actor": 3, "learner": 2, "tuner": 1}
    restart, stop = ({"event": "PodFailed", "action": action} for action in ("RestartPod", "CompleteJob"))
    assert tasks["actor"]["policies"] == [restart]
    assert tasks["learner"]["policies"] == [restart, {**stop, "event": "TaskCompleted"}]
    assert tasks["tuner"]["policies"] == [{"events": ["PodFailed", "TaskFailed"], "action": "TerminateJob"}]
    assert tasks["tuner"]["maxRetry"] == 4
    assert tasks["learner"]["template"]["spec"]["activeDeadlineSeconds"] == 60


def test_a_volcano_job_has_no_class_if_its_pods_have_two() -> None:
    built = chart(gang(kind="volcano", priority_class="high"))
    groups = {**built.values["groups"], "tuner": {**built.values["groups"]["tuner"], "priorityClassName": "low"}}
    assert (
        "priorityClassName"
        not in one(built.objects({**built.values, "groups": groups}, Release(name="r1")), "Job")["spec"]
    )


@pytest.mark.parametrize("kind", ["appwrapper", "volcano"])
def test_a_task_that_is_never_retried_ends_the_whole(kind: str) -> None:
    objects = objects_of(experiment_of(processes={"a": {"command": ["x"]}}, workload={"kind": kind}))
    whole = next(item for item in objects if item["kind"] in ("AppWrapper", "Job"))
    if kind == "volcano":
        assert whole["spec"]["tasks"][0]["policies"] == [{"event": "PodFailed", "action": "TerminateJob"}]
        assert whole["spec"]["maxRetry"] == 1
    else:
        assert whole["metadata"]["annotations"]["workload.codeflare.dev.appwrapper/retryLimit"] == "0"


def test_a_step_with_the_name_of_a_process_of_its_pod_is_refused() -> None:
    steps = {"a": {"command": ["fetch"], "groups": ["a"]}, "b": {"command": ["fetch"], "groups": ["a"]}}
    with pytest.raises(SpecError) as caught:
        chart(experiment_of(processes={"a": {}, "b": {}}, prepare=steps))
    assert [problem.path for problem in caught.value.problems] == ["prepare.a"]
