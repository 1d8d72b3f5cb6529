"""The health in Argo CD and the phase in `describe` agree for each status."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.kinds.registry import verdict_of
from symphony_charts.kubernetes.container_phase import phase_of_workload
from tests.gitops.samples import example_objects
from tests.gitops.test_health import CASES, health

# Our charts write these, and no project calls one of its states unknown.
_KINDS = {
    "batch_Job": "jobs",
    "jobset.x-k8s.io_JobSet": "jobset",
    "workload.codeflare.dev_AppWrapper": "appwrapper",
    "batch.volcano.sh_Job": "volcano",
    "diengine.opendilab.org_DIJob": "dijob",
}
_ENDS = {"Healthy": "succeeded", "Degraded": "failed"}
_OURS = [
    (check, item) for check, item, status in CASES if check in _KINDS and status != "Unknown" and "metadata" not in item
]


def workload(kind: str) -> dict[str, Any]:
    names = {"Job", "JobSet", "AppWrapper", "DIJob"}
    return next(item for item in example_objects("integrate", f"kind={kind}") if item["kind"] in names)


@pytest.mark.parametrize(("check", "status"), _OURS)
def test_an_end_is_an_end_for_both(check: str, status: dict[str, Any]) -> None:
    item = {**workload(_KINDS[check]), **status}
    shown = phase_of_workload(item)[0] if check == "batch_Job" else verdict_of([item])
    ended = shown if shown in _ENDS.values() else None
    assert ended == _ENDS.get(health(check, item)[0])
