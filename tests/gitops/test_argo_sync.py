"""Sync states of an Application of Argo CD 3.5, as a reason with a next step."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.gitops.argocd_sync import why_unsynced

IMMUTABLE = (
    'Job.batch "rl-agent-1a2b3c4d" is invalid: spec.template: Invalid value: {"metadata":{}}: field is immutable'
)


def application(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "dev-ml-rl", "namespace": "argocd"},
        "spec": {"destination": {"namespace": "ml"}},
        "status": status,
    }


def failed(message: str, *resources: str, phase: str = "Failed") -> dict[str, Any]:
    listed = [{"kind": "Job", "name": "x", "status": "SyncFailed", "message": text} for text in resources]
    return {"operationState": {"phase": phase, "message": message, "syncResult": {"resources": listed}}}


@pytest.mark.parametrize(
    "status",
    [
        failed("one or more objects failed to apply", IMMUTABLE),
        failed("one or more objects failed to apply. Retrying attempt #1", IMMUTABLE, phase="Running"),
        failed(f"one or more objects failed to apply, reason: {IMMUTABLE}"),
    ],
    ids=["resource", "retrying", "message"],
)
def test_a_field_that_cannot_be_changed_names_the_object_to_remove(status: dict[str, Any]) -> None:
    why = why_unsynced(application(**status))
    assert why
    assert (why.cause, why.is_bad) == ("immutable", True)
    assert why.text == "Argo CD cannot apply it: spec.template of Job/rl-agent-1a2b3c4d is immutable"
    assert why.next == "kubectl -n ml delete job/rl-agent-1a2b3c4d"


@pytest.mark.parametrize(
    "status",
    [
        failed("failed to perform"),
        {"conditions": [{"type": "ComparisonError", "message": "failed to perform\nand more"}]},
    ],
)
def test_any_other_failure_is_told_in_argo_cds_words(status: dict[str, Any]) -> None:
    why = why_unsynced(application(**status))
    assert why
    assert (why.cause, why.text) == ("sync", "Argo CD cannot apply it: failed to perform")
    assert why.next == "kubectl -n argocd describe application dev-ml-rl"


OTHER = {"kind": "Job", "name": "a", "status": "OutOfSync"}


def test_what_is_not_as_git_says_has_drifted() -> None:
    why = why_unsynced(application(sync={"status": "OutOfSync"}, resources=[OTHER, {**OTHER, "name": "b"}]))
    assert why
    assert (why.cause, why.text) == ("drift", "it differs from Git: Job/a and 1 more")


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"sync": {"status": "Synced"}, "operationState": {"phase": "Succeeded"}},
        {"sync": {"status": "OutOfSync"}, "resources": [OTHER], "operationState": {"phase": "Running"}},
        {"conditions": [{"type": "OrphanedResourceWarning", "message": "one"}]},
    ],
    ids=["new", "synced", "syncing", "warned"],
)
def test_what_is_synced_or_being_synced_needs_nothing(status: dict[str, Any]) -> None:
    assert why_unsynced(application(**status)) is None
