"""All or nothing: Kubernetes' own gang scheduling, enabled as in 1.36, and the coscheduling plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.programs import Programs, Symph
from tests.e2e.release import Release, Releases
from tests.e2e.rig.cluster import Cluster
from tests.e2e.scheduling.coscheduler import NAME, start_coscheduler
from tests.waiting import eventually

AS_GANG = ("workload.gang=native", "workload.gang_version=v1alpha2")


@pytest.fixture
def one_node(programs: Programs) -> Iterator[str]:
    """Leave one node that takes pods; yield the name of the other."""
    name = "standard-1"
    programs.kubectl("cordon", name)
    yield name
    programs.kubectl("uncordon", name)


def whole() -> dict[str, object]:
    """Return an experiment of a small pod and of two that need a node each."""
    large = {"cmds": ["echo done"], "requests": {"cpu": 5, "memory": "64Mi"}}
    small = {**large, "requests": {"cpu": 1, "memory": "64Mi"}}
    processes = {"master": small, "worker": {**large, "replicas": 2}}
    return {"name": "whole", "image": "busybox:1.37.0", "processes": processes}


def nodes_of(programs: Programs, namespace: str) -> list[str]:
    """Return the nodes of the pods of experiments in a namespace; empty for each unbound pod."""
    ours = ("-l", "app.kubernetes.io/component=experiment")
    pods = json.loads(programs.kubectl("-n", namespace, "get", "pods", *ours, "-o", "json"))["items"]
    return [pod["spec"].get("nodeName", "") for pod in pods]


def sizes(run: Release) -> list[int]:
    groups = run.objects("podgroups.scheduling.k8s.io")
    return [group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in groups]


def condition(programs: Programs, namespace: str, group: str) -> str:
    path = "jsonpath={.status.conditions[?(@.type=='PodGroupScheduled')].reason}"
    return programs.kubectl("-n", namespace, "get", "podgroup.scheduling.k8s.io", group, "-o", path)


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_an_experiment_starts_with_all_its_pods_or_none(
    release: Releases, symph: Symph, tmp_path: Path, programs: Programs, namespace: str, one_node: str, kind: str
) -> None:
    run = release("whole")
    run.install(package_data(whole(), tmp_path, *AS_GANG, f"workload.kind={kind}"))
    (group,) = (item["metadata"]["name"] for item in run.objects("podgroups.scheduling.k8s.io"))
    eventually(lambda: condition(programs, namespace, group) == "Unschedulable", 60, "the scheduler has looked at it")
    assert nodes_of(programs, namespace) == ["", "", ""]
    waited = symph("wait", "whole", "--on", "kube", "--timeout", "1s")
    assert (waited.code, "pod group is unschedulable" in waited.err) == (6, True), waited.err
    programs.kubectl("uncordon", one_node)
    assert symph("wait", "whole", "--on", "kube", "--timeout", "60s").code == 0
    run.uninstall()
    eventually(lambda: not run.objects("podgroups.scheduling.k8s.io"), 60, "the pod group is gone")


@pytest.fixture(scope="session")
def coscheduler(cluster: Cluster, programs: Programs) -> Iterator[str]:
    """Yield the name of a second scheduler that supports gangs."""
    daemon = start_coscheduler(cluster.folder, programs)
    yield NAME
    daemon.stop()


def test_a_coscheduler_starts_all_pods_or_none(
    release: Releases, symph: Symph, tmp_path: Path, programs: Programs, namespace: str, one_node: str, coscheduler: str
) -> None:
    run = release("whole")
    as_gang = ("workload.gang=coscheduling", f"workload.scheduler_name={coscheduler}")
    chart = package_data(whole(), tmp_path, *as_gang)
    run.install(chart)
    waited = symph("wait", "whole", "--on", "kube", "--for", "running", "--timeout", "4s")
    assert (waited.code, nodes_of(programs, namespace)) == (6, ["", "", ""]), waited.out
    run.uninstall()
    programs.kubectl("uncordon", one_node)
    # Again from the start: the plugin retries a rejected gang only after some time, not for a new node.
    run.install(chart)
    assert symph("wait", "whole", "--on", "kube", "--timeout", "60s").code == 0


def test_another_number_of_replicas_is_another_gang(release: Releases, charts: ExampleCharts) -> None:
    run = release("rl")
    chart = charts.changed("rl", *AS_GANG)
    run.install(chart)
    run.wait_finished()
    assert ("update 20" in run.log("learner"), sizes(run)) == (True, [3])
    run.upgrade(chart, "--set", "groups.agent.replicas=3")
    run.wait_finished()
    eventually(lambda: sizes(run) == [4], 60, lambda: f"the gang of four alone: {sizes(run)}")


def test_a_gang_that_lacks_a_pod_says_so(symph: Symph, programs: Programs, namespace: str) -> None:
    labels = dict.fromkeys(("symph.dev/experiment", "app.kubernetes.io/instance", "symph.dev/group"), "lone")
    labels["app.kubernetes.io/component"] = "experiment"
    container = {"name": "a", "image": "busybox", "command": ["true"]}
    spec = {"schedulingGroup": {"podGroupName": "none"}, "containers": [container], "restartPolicy": "Never"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone", "labels": labels}, "spec": spec}
    programs.apply(pod, namespace=namespace)
    said = symph("p", "lone", "--on", "kube")
    assert "pending: its gang is incomplete" in said.out, said.err
    (there,) = json.loads(symph("status", "lone", "-o", "json").out)["items"]
    assert there["why"]["cause"] == "gang"
