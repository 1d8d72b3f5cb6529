"""DIJobs that kubectl made are seen by their operator's labels, and go only when they are named with their kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.programs import Programs, eventually

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
        "versions": [_VERSION],
    },
}
POD = {"containers": [{"name": "di-container", "image": "busybox:1.37.0", "command": ["sleep", "300"]}]}
JOB = {
    "apiVersion": "diengine.opendilab.org/v2alpha1",
    "kind": "DIJob",
    "metadata": {"name": "cart"},
    "spec": {"tasks": [{"name": "learner", "type": "learner", "replicas": 2, "template": {"spec": POD}}]},
}


@pytest.fixture
def job(programs: Programs, namespace: str) -> None:
    """A DIJob and one of its pods, as its operator makes it."""
    programs.kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
    programs.establish("dijobs.diengine.opendilab.org")
    labels = {"diengine/operator": "di-operator", "diengine/job": "cart", "diengine/task-name": "learner"}
    metadata = {"name": "cart-learner-0", "labels": labels, "annotations": {"diengine/rank": "0"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": POD}
    for item in (JOB, pod):
        programs.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(item))


def symph(programs: Programs, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **programs.environment(), "HOME": str(programs.home)}
    argv = [sys.executable, "-m", "symphony_charts", *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)


def said(programs: Programs, *words: str) -> Any:
    done = symph(programs, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("job")
def test_a_job_that_kubectl_made_is_listed_described_and_removed_by_its_kind(
    programs: Programs, namespace: str
) -> None:
    eventually(lambda: "cart" in symph(programs, "ls", "-n", namespace).stdout, 60, "the job is listed")
    (learner,) = said(programs, "describe", "cart", "-n", namespace)["processes"]
    assert (learner["name"], learner["active"]) == ("learner", 2)
    refused = symph(programs, "delete", "cart", "-n", namespace, "--yes")
    assert refused.returncode == 7, refused.stderr
    assert "symph delete dijob/cart" in refused.stderr
    assert symph(programs, "delete", "dijob/cart", "-n", namespace, "--dry-run").returncode == 0
    assert "cart" in programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name")
    assert symph(programs, "delete", "dijob/cart", "-n", namespace).returncode != 0  # nobody answers the question
    assert "cart" in programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name")
    done = symph(programs, "delete", "dijob/cart", "-n", namespace, "--yes")
    assert done.returncode == 0, done.stderr
    eventually(lambda: not programs.kubectl("-n", namespace, "get", "dijobs", "-o", "name").split(), 60, "it goes")
