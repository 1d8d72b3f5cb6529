"""The health checks under real Lua 5.1, the language of Argo CD's interpreter, with its libraries base and table only.

The statuses are those that the kinds' own controllers write.
"""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.gitops.bootstrap import health_checks
from symphony_charts.system import package_data

lua51 = pytest.importorskip("lupa.lua51")
CHECKS = health_checks(package_data.folder("gitops"))


def condition(kind: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def health(check: str, item: dict[str, Any], checks: dict[str, str] = CHECKS) -> tuple[str, str]:
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    for library in ("string", "os", "io", "debug", "math", "coroutine", "package", "require", "python"):
        lua.execute(f"{library} = nil")
    lua.globals()["obj"] = lua.table_from(item, recursive=True)
    answer = lua.execute(checks[check])
    return answer["status"], answer["message"]


def conditions(*items: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"conditions": list(items)}}


RESUMED = condition("Suspended", "False", reason="JobResumed", message="Job resumed")
ENDED = {"metadata": {"annotations": {"symph.dev/until": "run", "symph.dev/ended": "true"}}}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("batch_Job", {}, "Progressing"),
    ("batch_Job", {"status": {"active": 2}}, "Progressing"),
    ("batch_Job", conditions(condition("Suspended")), "Suspended"),
    ("batch_Job", conditions(RESUMED), "Progressing"),
    ("batch_Job", conditions(RESUMED, condition("SuccessCriteriaMet"), condition("Complete")), "Healthy"),
    ("batch_Job", conditions(RESUMED, condition("FailureTarget"), condition("Failed")), "Degraded"),
    ("batch_Job", {"metadata": {"annotations": {"symph.dev/until": "run"}}}, "Healthy"),
    ("batch_Job", {**ENDED, **conditions(condition("Suspended"))}, "Healthy"),
    ("batch_Job", {**ENDED, **conditions(condition("Failed"))}, "Degraded"),
    ("jobset.x-k8s.io_JobSet", {}, "Progressing"),
    ("jobset.x-k8s.io_JobSet", {"status": {"terminalState": "Completed"}}, "Healthy"),
    ("jobset.x-k8s.io_JobSet", {"status": {"terminalState": "Failed"}}, "Degraded"),
    ("jobset.x-k8s.io_JobSet", conditions(condition("Suspended")), "Suspended"),
    ("jobset.x-k8s.io_JobSet", conditions(condition("Suspended", "False")), "Progressing"),
    ("jobset.x-k8s.io_JobSet", conditions(condition("Failed")), "Degraded"),
    ("workload.codeflare.dev_AppWrapper", {}, "Progressing"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"phase": "Running"}}, "Progressing"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"phase": "Suspended"}}, "Suspended"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"phase": "Completed"}}, "Healthy"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"phase": "Failed"}}, "Degraded"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"state": "RunningHoldCompletion"}}, "Progressing"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"state": "Completed"}}, "Healthy"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"state": "Failed"}}, "Degraded"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"state": "Completed", "failed": 1}}, "Degraded"),
    ("workload.codeflare.dev_AppWrapper", {"status": {"state": "Completed", "failed": 0}}, "Healthy"),
    ("diengine.opendilab.org_DIJob", {}, "Progressing"),
    ("diengine.opendilab.org_DIJob", {"status": {"phase": "Rescheduling"}}, "Progressing"),
    ("diengine.opendilab.org_DIJob", {"status": {"phase": "Succeeded"}}, "Healthy"),
    ("diengine.opendilab.org_DIJob", {"status": {"phase": "Failed"}}, "Degraded"),
    ("diengine.opendilab.org_DIJob", {"status": {"phase": "Unknown"}}, "Unknown"),
    ("batch.volcano.sh_Job", {"status": {"state": {"phase": "Pending"}}}, "Progressing"),
    ("batch.volcano.sh_Job", {"status": {"state": {"phase": "Completed"}}}, "Healthy"),
    ("batch.volcano.sh_Job", {"status": {"state": {"phase": "Aborted"}}}, "Degraded"),
    ("scheduling.volcano.sh_PodGroup", {"status": {"phase": "Inqueue"}}, "Progressing"),
    ("scheduling.volcano.sh_PodGroup", {"status": {"phase": "Running"}}, "Healthy"),
    ("scheduling.x-k8s.io_PodGroup", {"status": {"phase": "Pending"}}, "Progressing"),
    ("scheduling.x-k8s.io_PodGroup", {"status": {"phase": "Finished"}}, "Healthy"),
]


@pytest.mark.parametrize(("check", "item", "status"), CASES)
def test_a_status_means_this_health_and_says_why(check: str, item: dict[str, Any], status: str) -> None:
    found, message = health(check, item)
    assert found == status
    assert message


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_every_check_takes_an_object_without_status_for_unfinished(check: str) -> None:
    assert health(check, {"status": {}})[0] == "Progressing"


def test_the_controllers_own_words_are_the_message() -> None:
    item = conditions(condition("Failed", message="Job has reached the specified backoff limit"))
    assert health("batch_Job", item)[1] == "Job has reached the specified backoff limit"


@pytest.mark.parametrize(("limit", "status"), [(0, "Degraded"), (2, "Healthy")])
def test_mcads_count_of_failures_means_nothing_where_they_are_made_good(limit: int, status: str) -> None:
    items = [{"generictemplate": {"spec": {"backoffLimit": limit}}}]
    item = {"spec": {"resources": {"GenericItems": items}}, "status": {"state": "Completed", "failed": 1}}
    assert health("workload.codeflare.dev_AppWrapper", item)[0] == status


def test_a_failed_appwrapper_says_why() -> None:
    unhealthy = condition("Unhealthy", message="Found 1 failed components")
    item = {"status": {"phase": "Failed", "conditions": [unhealthy]}}
    assert health("workload.codeflare.dev_AppWrapper", item)[1] == "Failed: Found 1 failed components"


def test_why_a_dijob_has_failed_stands_in_its_condition() -> None:
    why = condition("Failed", message="the number of collector task is more than one")
    item = {"status": {"phase": "Failed", "conditions": [condition("Pending", "False", message="x"), why]}}
    assert health("diengine.opendilab.org_DIJob", item) == ("Degraded", f"Failed: {why['message']}")
