"""Outcomes of groups whose Jobs are missing, from JobSets, AppWrappers and Volcano Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.kinds.registry import parts_of, verdict_of
from symphony_charts.kubernetes.status import status_of
from tests.kubernetes.test_status import NOW, container, job, pod

Object = dict[str, Any]

META = {"name": "rl-r1", "namespace": "ml", "uid": "u1", "creationTimestamp": "2026-03-01T11:00:00Z"}
LABELS = {"symph.dev/experiment": "rl", "app.kubernetes.io/instance": "rl", "symph.dev/run": "r1"}


def template(group: str, replicas: int = 1) -> Object:
    """Return the template of a Job of one process that has the name of its group."""
    labels = {**LABELS, "symph.dev/group": group}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": group}]}}
    return {"metadata": {"labels": labels}, "spec": {"completions": replicas, "template": pods}}


def job_set(*, suspend: bool = False, marks: Object | None = None, **status: Any) -> Object:
    """Return the JobSet of a learner and two agents."""
    groups = [{"name": "learner", "template": template("learner")}, {"name": "agent", "template": template("agent", 2)}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**META, "labels": LABELS, **(marks or {})},
        "spec": {"suspend": suspend, "replicatedJobs": groups},
        "status": status,
    }


def states(*workloads: Object, pods: Any = ()) -> dict[str, str]:
    return {one.name: one.state for one in status_of("rl", list(workloads), list(pods), now=NOW).instances}


def test_a_set_that_has_made_no_job_shows_all_its_replicas() -> None:
    assert states(job_set()) == dict.fromkeys(("learner", "agent-0", "agent-1"), "pending: no pod yet")


def test_what_a_set_took_away_at_its_end_was_stopped_and_did_not_fail() -> None:
    found = states(job_set(terminalState="Completed"))
    assert found["learner"] == "stopped: its JobSet has succeeded"


def test_a_job_that_is_there_is_believed_before_its_set() -> None:
    done = container({"terminated": {"exitCode": 0}})
    found = states(job_set(terminalState="Completed"), job(completions=2), pods=[pod(**done), pod("b", 1, **done)])
    assert (found["agent-0"], found["agent-1"], found["learner"][:7]) == ("succeeded", "succeeded", "stopped")


@pytest.mark.parametrize(("word", "phase"), [("Completed", "succeeded"), ("Failed", "failed")])
def test_the_set_says_how_the_experiment_ended(word: str, phase: str) -> None:
    running = pod(**container({"running": {"startedAt": "2026-03-01T11:59:56Z"}}))
    assert status_of("rl", [job_set(terminalState=word), job()], [running], now=NOW).phase == phase


def test_a_set_that_begins_again_has_not_failed_with_its_first_failure() -> None:
    gave_up = job(conditions=[{"type": "Failed", "status": "True"}])
    again = job_set()
    again["spec"]["failurePolicy"] = {"maxRestarts": 1}
    ended = pod(**container({"terminated": {"exitCode": 3}}))
    assert status_of("rl", [again, gave_up], [ended], now=NOW).phase == "running"
    assert status_of("rl", [job_set(), gave_up], [ended], now=NOW).phase == "failed"
    assert status_of("rl", [{**again, "status": {"terminalState": "Failed"}}], [ended], now=NOW).phase == "failed"


def test_the_attempts_of_a_set_are_restarts_of_its_processes() -> None:
    second = pod(**container({"running": {"startedAt": "2026-03-01T11:59:56Z"}}))
    second["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = "2"
    found = status_of("rl", [job_set(), job()], [second], now=NOW)
    assert {one.name: one.restarts for one in found.instances}["agent-0"] == 2


def test_a_set_that_goes_away_says_nothing_of_the_next_run() -> None:
    going = job_set(marks={"deletionTimestamp": "2026-03-01T11:59:00Z"}, terminalState="Failed")
    assert (parts_of(going), verdict_of([going, job()])) == ([], None)


def test_a_wrapped_job_shows_its_replicas() -> None:
    inner = {"apiVersion": "batch/v1", "kind": "Job", **template("agent", 2)}
    inner["metadata"] = {**inner["metadata"], "name": "rl-agent"}
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {**META, "labels": LABELS},
        "spec": {"suspend": True, "components": [{"template": inner}]},
        "status": {"phase": "Suspended"},
    }
    assert states(wrapper) == dict.fromkeys(("agent-0", "agent-1"), "pending: suspended until it is resumed")


def mcad(state: str, **more: object) -> dict[str, object]:
    inner = {"apiVersion": "batch/v1", "kind": "Job", **template("agent", 2)}
    inner["metadata"] = {**inner["metadata"], "name": "rl-agent"}
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {**META, "labels": LABELS},
        "spec": {"resources": {"GenericItems": [{"generictemplate": inner}]}, **more},
        "status": {"state": state},
    }


def test_a_job_that_mcad_has_not_dispatched_shows_its_replicas() -> None:
    assert states(mcad("Pending")) == dict.fromkeys(("agent-0", "agent-1"), "pending: no pod yet")
    assert [part["metadata"]["name"] for part in parts_of(mcad("Pending"))] == ["rl-agent"]


def test_a_run_that_mcad_calls_complete_has_failed_where_a_job_has() -> None:
    bad = job(conditions=[{"type": "Failed", "status": "True"}])
    assert verdict_of([mcad("Completed"), job()]) == "succeeded"
    assert verdict_of([mcad("Completed"), bad]) == "failed"
    assert verdict_of([mcad("Running"), bad]) is None


@pytest.mark.parametrize(
    ("word", "phase"), [("Running", "running"), ("Resetting", "running"), ("Failed", "failed"), ("Deleted", "failed")]
)
def test_a_failed_job_is_not_the_end_of_what_may_start_again(word: str, phase: str) -> None:
    bad = job(conditions=[{"type": "Failed", "status": "True"}])
    ended = pod(**container({"terminated": {"exitCode": 3, "reason": "Error"}}))
    gang = mcad(word, schedulingSpec={"minAvailable": 2})
    assert status_of("rl", [gang, bad], [ended], now=NOW).phase == phase
    assert status_of("rl", [mcad(word), bad], [ended], now=NOW).phase == "failed"


def test_a_run_that_recovered_under_mcad_has_succeeded() -> None:
    item = {**mcad("Completed"), "status": {"state": "Completed", "failed": 1}}
    assert verdict_of([item]) == "failed"
    item["spec"]["resources"]["GenericItems"][0]["generictemplate"]["spec"]["backoffLimit"] = 2  # type: ignore[index]  # parsed JSON
    assert verdict_of([item]) == "succeeded"


def test_the_tasks_of_a_volcano_job_show_their_replicas() -> None:
    task = {"name": "agent", "replicas": 2, "template": template("agent")["spec"]["template"]}
    volcano = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {**META, "labels": LABELS},
        "spec": {"tasks": [task]},
        "status": {"state": {"phase": "Aborted"}},
    }
    assert set(states(volcano)) == {"agent-0", "agent-1"}
    assert verdict_of([volcano]) == "failed"


def test_jobs_that_end_the_experiment_decide_where_no_set_does() -> None:
    mark = {"symph.dev/done-when": "true"}
    deciding = job(conditions=[{"type": "Complete", "status": "True"}], annotations=mark)
    assert verdict_of([deciding, job()]) == "succeeded"
    assert verdict_of([deciding, job(annotations=mark)]) is None
    assert verdict_of([deciding, job(conditions=[{"type": "Failed", "status": "True"}])]) is None
    assert verdict_of([job()]) is None
