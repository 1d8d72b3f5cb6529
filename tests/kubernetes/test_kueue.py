"""Why an experiment waits in a queue, of Kueue's records as Kueue 0.19 writes them."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.kubernetes.kueue import QUEUE, wait_reason
from symphony_charts.kubernetes.status import status_of
from tests.kinds.test_outcome import job_set
from tests.kubernetes.test_status import LABELS, NOW, job

NO_ROOM = "couldn't assign flavors to pod set agent: insufficient unused quota for cpu in flavor any, 2 more needed"


def record(owner: str = "u1", spec: Any = None, **conditions: tuple[str, str]) -> dict[str, Any]:
    """A record of Kueue; conditions as ``(status, message)``."""
    held = [{"type": kind, "status": status, "message": said} for kind, (status, said) in conditions.items()]
    return {
        "metadata": {"ownerReferences": [{"kind": "Job", "name": "rl-agent-r1", "uid": owner}]},
        "spec": {"queueName": "mine", "active": True, **(spec or {})},
        "status": {"conditions": held, "admissionChecks": [{"name": "nodes", "state": "Pending"}]},
    }


def queued_job() -> dict[str, Any]:
    """A Job that Kueue holds back."""
    item = job(uid="u1", labels={**LABELS, QUEUE: "mine"})
    item["spec"]["suspend"] = True
    return item


def status(workloads: list[dict[str, Any]], *admissions: dict[str, Any]) -> ExperimentStatus:
    """The state of `rl`."""
    return status_of("rl", workloads, [], admissions=admissions, now=NOW)


def test_a_queued_job_says_what_its_queue_says() -> None:
    found = status([queued_job()], record(QuotaReserved=("False", NO_ROOM)))
    assert (found.phase, found.instances[0].state) == ("queued", f"queued in mine: {NO_ROOM}")
    assert found.instances[0].reason == NO_ROOM


def test_whoever_may_not_read_kueues_records_sees_the_queue() -> None:
    found = status([queued_job()])
    assert (found.phase, found.instances[0].state) == ("queued", "queued in mine: it has not admitted it")


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
        (record(), "in mine: not looked at yet"),
        (record(QuotaReserved=("True", "")), "in mine: it has room, and waits for nodes"),
        (record(spec={"active": False}, Evicted=("True", "too slow")), "in mine: turned away: too slow"),
        (record(QuotaReserved=("True", ""), Admitted=("True", "")), ""),
        (record(Finished=("True", "done")), ""),
    ],
)
def test_each_step_of_the_way_through_a_queue_has_its_words(what: dict[str, Any], said: str) -> None:
    assert wait_reason(what) == said
