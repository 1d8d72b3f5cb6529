"""All or nothing: Kubernetes' own gang scheduling, as it is switched on in 1.36."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.programs import Programs, eventually
from tests.e2e.release import describe

GANG = """\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: all}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: small}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      schedulingGroup: {podGroupName: all}
      containers: [{name: a, image: busybox, command: [sleep, "1"], resources: {requests: {cpu: "1"}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: large}
spec:
  backoffLimit: 0
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      schedulingGroup: {podGroupName: all}
      containers: [{name: a, image: busybox, command: [sleep, "1"], resources: {requests: {cpu: "5"}}}]
"""
"""A small pod and two that need a node each."""


@pytest.fixture
def one_node(programs: Programs) -> Iterator[str]:
    """Leaves one node that takes pods; the name of the other."""
    name = "standard-1"
    programs.kubectl("cordon", name)
    yield name
    programs.kubectl("uncordon", name)


def nodes_of(programs: Programs, namespace: str) -> list[str]:
    """Where the pods of a namespace are; empty for each that is nowhere."""
    pods = json.loads(programs.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    return [pod["spec"].get("nodeName", "") for pod in pods]


def condition(programs: Programs, namespace: str, group: str) -> str:
    """What the scheduler says of a pod group."""
    path = "jsonpath={.status.conditions[?(@.type=='PodGroupScheduled')].reason}"
    return programs.kubectl("-n", namespace, "get", "podgroup.scheduling.k8s.io", group, "-o", path)


def test_pods_of_several_jobs_are_placed_all_or_not_at_all(programs: Programs, namespace: str, one_node: str) -> None:
    programs.kubectl("-n", namespace, "apply", "--server-side", "--validate=strict", "-f", "-", stdin=GANG)
    eventually(lambda: condition(programs, namespace, "all") == "Unschedulable", 20, "the scheduler has looked at it")
    assert nodes_of(programs, namespace) == ["", "", ""]
    programs.kubectl("uncordon", one_node)
    eventually(lambda: all(nodes_of(programs, namespace)), 20, lambda: describe(programs, namespace))
    assert condition(programs, namespace, "all") == "Scheduled"
