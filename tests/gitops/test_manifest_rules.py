"""Each rule for what Argo CD syncs: the fault is found, and without it there is none."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from symphony_charts.gitops.argocd.objects import ArgoSetup, application_set
from symphony_charts.gitops.flux import helm_release
from symphony_charts.gitops.lint.manifests import check_manifest
from symphony_charts.gitops.operations.pointer import Pointer

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {"backoffLimit": 0, "template": {"spec": {"containers": []}}},
}
APP: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "a", "annotations": {"argocd.argoproj.io/manifest-generate-paths": "."}},
    "spec": {
        "source": {"targetRevision": "refs/heads/main"},
        "syncPolicy": {"automated": {"prune": True}, "syncOptions": []},
    },
}
SETUP = ArgoSetup(url="https://git.example.org/x.git")
POINTER = Pointer(name="e", team="t", env="dev", version="1.0.0", digest="sha256:0", chart="charts/t/e/1.0.0")


def rules(item: object) -> list[str]:
    assert isinstance(item, dict)
    return [finding.rule for finding in check_manifest(item)]


def edited(item: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with `value` at the dotted path; None takes it away. A slash stands for a dot within a key."""
    made = copy.deepcopy(item)
    node: Any = made
    *steps, last = [step.replace("|", ".") for step in path.split(".")]
    for step in steps:
        node = node[int(step)] if step.isdigit() else node.setdefault(step, {})
    if value is None:
        node.pop(last)
    else:
        node[last] = value
    return made


@pytest.mark.parametrize("item", [JOB, APP, application_set(SETUP), helm_release(POINTER)])
def test_what_is_right_has_no_finding(item: dict[str, Any]) -> None:
    assert rules(item) == []


OPTIONS = "metadata.annotations.argocd|argoproj|io/sync-options"


@pytest.mark.parametrize(
    ("item", "path", "value", "rule"),
    [
        (JOB, "spec.ttlSecondsAfterFinished", 60, "ttl"),
        ({**JOB, "kind": "Workflow"}, "spec.ttlStrategy", {"secondsAfterCompletion": 1}, "ttl"),
        (JOB, "metadata", {"generateName": "j-"}, "generate-name"),
        (JOB, "metadata.annotations.helm|sh/hook", "post-install", "hook"),
        (JOB, "metadata.annotations.argocd|argoproj|io/hook", "Sync", "hook"),
        (JOB, OPTIONS, "Force=true,Replace=true", "replace"),
        (JOB, "spec.suspend", True, "kueue-suspend"),
        (JOB, "spec.backoffLimit", None, "backoff"),
        (APP, "spec.syncPolicy.syncOptions", ["PruneLast=true"], "prune-last"),
        (APP, "spec.syncPolicy.syncOptions", ["Force=true", "Replace=true"], "replace"),
        (APP, "spec.syncPolicy.automated.selfHeal", True, "self-heal"),
        (APP, "metadata.annotations", None, "generate-paths"),
        (APP, "spec.source.targetRevision", "main", "revision"),
        (application_set(SETUP), "spec.template.spec.project", "{{ .project }}", "templated-project"),
        (application_set(SETUP), "spec.template.spec.syncPolicy.automated.selfHeal", True, "self-heal"),
        (application_set(SETUP), "spec.template.metadata.annotations", None, "generate-paths"),
        (application_set(SETUP), "spec.generators.0.git.revision", "HEAD", "revision"),
        (application_set(SETUP), "spec.generators.0.git.files", [{"path": "envs/*/*.yaml"}], "greedy-glob"),
        (helm_release(POINTER), "spec.upgrade", {"disableWait": False}, "flux-wait"),
        ({"kind": "Secret", "metadata": {"name": "s"}}, "data.key", "dmFsdWU=", "secret-in-git"),
    ],
)
def test_a_fault_is_found_by_its_rule(item: dict[str, Any], path: str, value: object, rule: str) -> None:
    assert rules(edited(item, path, value)) == [rule]


def test_a_pod_of_its_own_is_found_unless_it_is_a_hook() -> None:
    pod: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "p"}}
    assert rules(pod) == ["bare-pod"]
    assert rules(edited(pod, "metadata.annotations.helm|sh/hook", "test")) == []


def test_the_items_of_a_list_are_looked_at() -> None:
    assert rules({"kind": "List", "items": [edited(JOB, "spec.ttlSecondsAfterFinished", 1)]}) == ["ttl"]
