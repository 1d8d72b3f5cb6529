"""Each rule for objects of Argo CD and Flux finds its fault, and nothing without the fault."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.gitops.argocd import ArgoSetup, application_set
from symphony_charts.gitops.flux import helm_release
from symphony_charts.gitops.lint import check_manifest
from symphony_charts.gitops.pointer import Pointer
from tests.damage import ODD, places, spoil

POINTER = Pointer(name="e", team="t", env="dev", version="1.0.0", digest="sha256:0", chart="charts/t/e/1.0.0")
APPS = application_set(ArgoSetup(url="https://git.example.org/x.git"))
RELEASE = helm_release(POINTER)
OPTIONS = "spec.template.spec.syncPolicy.syncOptions"


def rules(item: object) -> list[str]:
    assert isinstance(item, dict)
    return [finding.rule for finding in check_manifest(item)]


def edited(item: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    made = copy.deepcopy(item)
    node: Any = made
    *steps, last = path.split(".")
    for step in steps:
        node = node[int(step)] if step.isdigit() else node.setdefault(step, {})
    if value is None:
        node.pop(last)
    else:
        node[last] = value
    return made


@pytest.mark.parametrize("item", [APPS, RELEASE])
def test_what_is_right_has_no_finding(item: dict[str, Any]) -> None:
    assert rules(item) == []


@pytest.mark.parametrize(
    ("item", "path", "value", "rule"),
    [
        (APPS, OPTIONS, ["PruneLast=true"], "prune-last"),
        (APPS, OPTIONS, ["Force=true", "Replace=true"], "replace"),
        (APPS, "spec.template.spec.project", "{{ .project }}", "templated-project"),
        (APPS, "spec.template.spec.syncPolicy.automated.selfHeal", True, "self-heal"),
        (APPS, "spec.template.metadata.annotations", None, "generate-paths"),
        (RELEASE, "spec.upgrade", {"disableWait": False}, "flux-wait"),
    ],
)
def test_a_fault_is_found_by_its_rule(item: dict[str, Any], path: str, value: object, rule: str) -> None:
    assert rules(edited(item, path, value)) == [rule]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_object_of_any_shape_is_checked(data: st.DataObject) -> None:
    item: Any = copy.deepcopy(data.draw(st.sampled_from([APPS, RELEASE])))
    holder, key = data.draw(st.sampled_from(places(item)))
    spoil(holder, key, data.draw(st.sampled_from(ODD)))
    assert isinstance(rules(item), list)
