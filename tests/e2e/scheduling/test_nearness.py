"""`placement.topology`: pods of an experiment on nodes near each other, by Kubernetes' own gangs and by Kueue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.charts import package_data
from tests.e2e.programs import Programs, Symph
from tests.e2e.release import Releases
from tests.e2e.scheduling.queues import make_objects, make_queue
from tests.waiting import eventually

NEAR = {"topology": "required:kubernetes.io/hostname"}
GANGS = {
    "native": {"kind": "jobs", "gang": "native", "gang_version": "v1alpha2"},
    "kueue": {"kind": "jobset", "gang": "kueue", "queue": "mine"},
}
"""Each way to ask for nearness."""
NO_ROOM = {"native": "unschedulable", "kueue": "topology"}
"""A word of the reason if no node has room for all."""


@pytest.fixture
def flavor(programs: Programs, namespace: str) -> None:
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    spec = {"nodeLabels": {"kubernetes.io/arch": "amd64"}, "topologyName": "nodes"}
    make_objects(
        programs,
        {"kind": "Topology", "metadata": {"name": "nodes"}, "spec": {"levels": levels}},
        {"kind": "ResourceFlavor", "metadata": {"name": "near"}, "spec": spec},
    )
    make_queue(programs, namespace, "100", flavor="near")


def pair(name: str, gang: str, cpu: int) -> dict[str, object]:
    process = {"cmds": ["sleep 1"], "requests": {"cpu": cpu, "memory": "64Mi"}, "replicas": 2}
    return {
        "name": name,
        "image": "busybox:1.37.0",
        "workload": GANGS[gang],
        "placement": NEAR,
        "processes": {"half": process},
    }


@pytest.mark.usefixtures("flavor")
@pytest.mark.parametrize("gang", GANGS)
def test_pods_that_must_be_near_share_a_node_or_wait_while_none_has_room_for_all(
    release: Releases, symph: Symph, tmp_path: Path, gang: str
) -> None:
    near, large = release("near"), release("large")
    near.install(package_data(pair("near", gang, 3), tmp_path))
    near.wait_finished()
    places = {pod["spec"]["nodeName"] for pod in near.pods()}
    assert (len(near.pods()), len(places)) == (2, 1)
    large.install(package_data(pair("large", gang, 5), tmp_path / "large"))
    eventually(lambda: NO_ROOM[gang] in symph("p", "large", "--on", "kube").out, 60, "the reason is told")
    assert not [pod for pod in large.pods() if pod["spec"].get("nodeName")]
