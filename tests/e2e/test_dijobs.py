"""DIJobs made by kubectl are found by their operator's labels, and deleted only when named with their kind."""

from __future__ import annotations

import json

import pytest

from tests.e2e.programs import Programs
from tests.waiting import eventually

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_VERSION = {
    "name": "v2alpha1",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "dijobs.diengine.opendilab.org"},
    "spec": {
        "group": "diengine.opendilab.org",
        "names": {"kind": "DIJob", "plural": "dijobs"},
        "scope": "Namespaced",
        "versions": [_VERSION, {**_VERSION, "name": "v1alpha1", "storage": False}],
    },
}
POD = {"containers": [{"name": "di-container", "image": "busybox:1.37.0", "command": ["sleep", "300"]}]}
JOB = {
    "apiVersion": "diengine.opendilab.org/v2alpha1",
    "kind": "DIJob",
    "metadata": {"name": "cart"},
    "spec": {"tasks": [{"name": "learner", "type": "learner", "replicas": 2, "template": {"spec": POD}}]},
}


def define(programs: Programs) -> None:
    programs.apply(DEFINITION)
    programs.establish("dijobs.diengine.opendilab.org")


@pytest.fixture
def job(programs: Programs, namespace: str) -> None:
    define(programs)
    labels = {"diengine/operator": "di-operator", "diengine/job": "cart", "diengine/task-name": "learner"}
    metadata = {"name": "cart-learner-0", "labels": labels, "annotations": {"diengine/rank": "0"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": POD}
    programs.apply(JOB, pod, namespace=namespace)


@pytest.mark.usefixtures("job")
def test_a_job_that_kubectl_made_is_listed_described_and_removed_by_its_kind(
    programs: Programs, namespace: str
) -> None:
    eventually(lambda: "cart" in programs.symph("ls", "-n", namespace).out, 60, "the job is listed")
    (learner,) = json.loads(programs.symph("describe", "cart", "-n", namespace, "-o", "json").out)["processes"]
    assert (learner["name"], learner["active"]) == ("learner", 2)
    refused = programs.symph("delete", "cart", "-n", namespace, "--yes")
    assert refused.code == 7, refused.err
    assert f"symph rm -n {namespace} dijob/cart" in refused.err
    assert programs.symph("delete", "dijob/cart", "-n", namespace, "--dry-run").code == 0
    assert "cart" in programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name")
    assert programs.symph("delete", "dijob/cart", "-n", namespace).code != 0  # the prompt gets no answer
    assert "cart" in programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name")
    done = programs.symph("delete", "dijob/cart", "-n", namespace, "--yes")
    assert done.code == 0, done.err
    eventually(lambda: not programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name").split(), 60, "it goes")


QBERT = {
    "apiVersion": "diengine.opendilab.org/v1alpha1",
    "kind": "DIJob",
    "metadata": {"name": "qbert-dqn"},
    "spec": {role: {"template": {"spec": POD}} for role in ("coordinator", "collector", "learner")},
}
# The pods of the overview, and the types that operator v0 gives them.
PODS = {
    "qbert-dqn-aggregator": "aggregator",
    "qbert-dqn-collector-pm5gv": "collector",
    "qbert-dqn-coordinator": "coordinator",
    "qbert-dqn-learner-rcwmc": "ddp-learner",
    "qbert-dqn-learner-txjks": "ddp-learner",
}
# The status that operator v0 writes when the job of its overview has ended.
ENDED = {
    "phase": "Succeeded",
    "replicaStatus": {
        "Aggregator": {},
        "Collector": {"succeeded": 2},
        "Coordinator": {"succeeded": 1},
        "Learner": {"succeeded": 1},
    },
}


def pod_of_qbert(name: str, role: str) -> dict[str, object]:
    labels = {"controller-name": "di-operator", "dijob-name": "qbert-dqn", "pod-name": name, "replica-type": role}
    container = {**POD["containers"][0], "command": ["sh", "-c", f"echo {name}; exec sleep 300"]}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_the_job_of_the_overview_is_shown_as_the_overview_shows_it(programs: Programs, namespace: str) -> None:
    define(programs)
    programs.apply(QBERT, *(pod_of_qbert(name, role) for name, role in PODS.items()), namespace=namespace)
    where = ("-n", namespace)

    # kubectl get pod
    def shown() -> list[str]:
        return sorted(row[1] for row in rows(programs.symph("process", "qbert-dqn", *where).out)[1:] if "1" in row)

    eventually(lambda: shown() == ["aggregator", "collector", "coordinator", "learner-0", "learner-1"], 90, "all run")
    # kubectl logs qbert-dqn-coordinator
    assert programs.symph("logs", "coordinator", "qbert-dqn", *where).out == "qbert-dqn-coordinator\n"
    # The job ends, and the operator deletes its pods.
    status = json.dumps({"status": ENDED})
    resource = "dijobs.v1alpha1.diengine.opendilab.org"
    patch = ("patch", resource, "qbert-dqn", "--subresource=status", "--type=merge", "-p", status)
    programs.kubectl(*where, *patch)
    programs.kubectl(*where, "delete", "pods", "--all", "--now")

    # kubectl get dijob: NAME PHASE AGE
    def listed() -> list[list[str]]:
        return [row[:2] for row in rows(programs.symph("ls", "--all", *where).out)]

    eventually(lambda: listed() == [["NAME", "PHASE"], ["qbert-dqn", "succeeded"]], 60, "the job has ended")
    # kubectl describe dijob: Phase, Replica Status
    described = rows(programs.symph("describe", "qbert-dqn", *where).out)
    assert described[0][:2] == ["qbert-dqn", "succeeded"]
    counts = {row[1]: row[4] for row in described if row[0] == "-"}
    assert counts == {"collector": "2", "coordinator": "1", "learner": "1"}
    # kubectl delete dijob qbert-dqn
    done = programs.symph("delete", "dijob/qbert-dqn", *where, "--yes")
    assert rows(done.out)[1:] == [["dijob/qbert-dqn", "DIJob/qbert-dqn"]], done.err
    eventually(lambda: not programs.kubectl(*where, "get", "dijobs", "-o", "name").split(), 60, "it goes")
