"""Reasons for waiting in a queue, from Kueue's records as Kueue 0.19 writes them."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.kubernetes.container_phase import QUEUE, Queue, reasons_of, wait_reason
from symphony_charts.kubernetes.status import status_of
from tests.kinds.test_outcome import job_set
from tests.kubernetes.test_status import LABELS, NOW, job

NO_ROOM = "couldn't assign flavors to pod set agent: insufficient unused quota for cpu in flavor any, 2 more needed"


def record(owner: str = "u1", spec: Any = None, **conditions: tuple[str, str]) -> dict[str, Any]:
    held = [{"type": kind, "status": status, "message": said} for kind, (status, said) in conditions.items()]
    return {
        "metadata": {"ownerReferences": [{"kind": "Job", "name": "rl-agent-r1", "uid": owner}]},
        "spec": {"queueName": "mine", "active": True, **(spec or {})},
        "status": {"conditions": held, "admissionChecks": [{"name": "nodes", "state": "Pending"}]},
    }


def queued_job() -> dict[str, Any]:
    item = job(uid="u1", labels={**LABELS, QUEUE: "mine"})
    item["spec"]["suspend"] = True
    return item


def status(workloads: list[dict[str, Any]], *admissions: dict[str, Any]) -> ExperimentStatus:
    return status_of("rl", workloads, [], queue=Queue(records=admissions), now=NOW)


def test_a_queued_job_says_what_its_queue_says() -> None:
    found = status([queued_job()], record(QuotaReserved=("False", NO_ROOM)))
    assert (found.phase, found.instances[0].state) == ("queued", f"queued in mine: {NO_ROOM}")
    assert found.instances[0].reason == NO_ROOM


def test_whoever_may_not_read_kueues_records_sees_the_queue() -> None:
    found = status([queued_job()])
    assert (found.phase, found.instances[0].state) == ("queued", "queued in mine: not admitted yet")


def test_the_jobs_of_a_queued_set_are_queued_with_it() -> None:
    child = job(completions=2, ownerReferences=[{"kind": "JobSet", "uid": "u1"}])
    child["spec"]["suspend"] = True
    found = status([job_set(suspend=True), child], record(QuotaReserved=("False", NO_ROOM)))
    assert {one.state for one in found.instances} == {f"queued in mine: {NO_ROOM}"}
    assert len(found.instances) == 3


def test_a_record_of_another_job_says_nothing_of_this_one() -> None:
    found = status([queued_job()], record(owner="other", QuotaReserved=("False", NO_ROOM)))
    assert NO_ROOM not in found.instances[0].state


def test_an_experiment_of_which_a_part_runs_is_running() -> None:
    done = job(conditions=[{"type": "Complete", "status": "True"}])
    done["metadata"]["labels"] = {**LABELS, "symph.dev/group": "learner"}
    assert status([queued_job(), done]).phase == "running"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (record(), "in mine: not considered yet"),
        (record(QuotaReserved=("True", "")), "in mine: quota reserved, waiting for nodes"),
        (record(spec={"active": False}, Evicted=("True", "too slow")), "in mine: turned away: too slow"),
        (record(QuotaReserved=("True", ""), Admitted=("True", "")), ""),
        (record(Finished=("True", "done")), ""),
    ],
)
def test_each_step_of_the_way_through_a_queue_has_its_words(what: dict[str, Any], said: str) -> None:
    assert wait_reason(what) == said


def waiting(name: str, priority: int = 0, since: str = "11:00", **more: Any) -> dict[str, Any]:
    item = record(owner=name, spec={"priority": priority}, QuotaReserved=("False", NO_ROOM))
    item["metadata"] |= {"namespace": "ml", "creationTimestamp": f"2026-03-01T{since}:00Z", **more}
    item["metadata"]["ownerReferences"][0]["name"] = f"{name}-x"
    return item


def place(*others: dict[str, Any], **known: Any) -> str:
    queue = Queue(records=[waiting("u1", since="12:00"), *others], **known)
    return reasons_of([queued_job()], queue)["u1"].partition(":")[0]


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "in mine"),
        ([waiting("a", since="13:00")], "in mine"),
        ([waiting("a", since="13:00", priority=1)], "in mine, second behind ml/a-x"),
        ([waiting("b"), waiting("a", since="10:00")], "in mine, third behind ml/a-x, ml/b-x"),
        ([record(owner="r", QuotaReserved=("True", ""), Admitted=("True", ""))], "in mine"),
        ([waiting(name) for name in "abcdef"], "in mine, number 7 behind ml/a-x, ml/b-x, ml/c-x and 3 more"),
    ],
    ids=["alone", "later", "priority", "two", "admitted", "many"],
)
def test_a_queued_job_says_who_is_before_it(others: list[dict[str, Any]], said: str) -> None:
    for number, other in enumerate(others):
        other["metadata"]["uid"] = f"{number}"
    assert place(*others) == said


def test_jobs_of_one_experiment_are_one_in_the_queue_and_never_before_themselves() -> None:
    names = {"a": "ml/ppo", "b": "ml/ppo", "u2": "ml/rl", "u1": "ml/rl"}
    others = [waiting("a"), waiting("b"), waiting("u2", since="09:00")]
    assert place(*others, experiments=names) == "in mine, second behind ml/ppo"


def test_queues_of_other_namespaces_lead_to_the_same_line() -> None:
    queues = [
        {"metadata": {"namespace": space, "name": "mine"}, "spec": {"clusterQueue": "all"}}
        for space in ("ml", "vision")
    ]
    assert place(waiting("a", namespace="vision")) == "in mine"
    assert place(waiting("a", namespace="vision"), locals=queues) == "in mine, second behind vision/a-x"
