"""DIJobs on a cluster: their pods have only the operator's labels, and counts that it forgets are recomputed."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.integrations.dijob.pods import adopted, dressed, pods_of_jobs
from symphony_charts.kubernetes.status import status_of
from tests.chart.harness import chart_of, experiment_of, native_objects

RUN = {"command": ["x"]}


def job_of(operator: str = "v1.1", phase: str = "Running") -> dict[str, Any]:
    """Return the live DIJob of a learner and two collectors."""
    processes: dict[str, object] = {"learner": RUN, "collector": {**RUN, "replicas": 2}}
    if operator == "v0":
        processes = {"coordinator": RUN, "collector": {**RUN, "lifecycle": "service"}}
    workload = {"kind": "dijob", "dijob": {"operator": operator}}
    objects = native_objects(chart_of(experiment_of(processes=processes, workload=workload)))
    (job,) = [item for (kind, _), item in objects.items() if kind == "DIJob"]
    job["metadata"] |= {"namespace": "ml", "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}  # type: ignore[operator]  # a map
    return {**job, "status": {"phase": phase}}


def pod_of(job: dict[str, Any], task: str, index: int, *, code: int | None = None) -> dict[str, Any]:
    """Return a pod as operator v1.1 makes it, running or ended with `code`."""
    (spec,) = [one["template"]["spec"] for one in job["spec"]["tasks"] if one["name"] == task]
    name = job["metadata"]["name"]
    state: dict[str, object] = {"running": {"startedAt": "2026-01-01T00:00:01Z"}}
    if code is not None:
        state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:02Z"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{task}-{index}",
            "namespace": "ml",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"diengine/job": name, "diengine/task-name": task},
            "annotations": {"diengine/task-rank": str(index), "diengine/rank": "9"},
            "ownerReferences": [{"kind": "DIJob", "name": name}],
        },
        "spec": spec,
        "status": {
            "phase": "Running" if code is None else "Succeeded" if code == 0 else "Failed",
            "containerStatuses": [{"name": spec["containers"][0]["name"], "state": state, "ready": code is None}],
        },
    }


def counted(job: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Return active, succeeded and failed replicas of each process."""
    status = status_of("r1", [job], pods_of_jobs([job], lambda _labels: pods), now=1767225700.0)
    return {one.name: (one.active, one.succeeded, one.failed) for one in status.processes}


def test_pods_are_found_by_the_operators_labels() -> None:
    asked: list[str] = []

    def listed(labels: str) -> list[dict[str, Any]]:
        asked.append(labels)
        return []

    pods_of_jobs([job_of()], listed)
    assert asked == [f"diengine/job in ({job_of()['metadata']['name']})"]


def test_pods_of_operator_v0_are_found_by_its_own_and_counted_by_age() -> None:
    job = job_of("v0")
    spec = job["spec"]["collector"]["template"]["spec"]
    pods = [
        {
            "metadata": {"name": f"c-{n}", "namespace": "ml", "labels": {"dijob-name": job["metadata"]["name"]}},
            "spec": spec,
        }
        for n in "ab"
    ]
    found = list(dressed([job], pods, "dijob-name"))
    assert [one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for one in found] == ["0", "1"]
    assert {one["metadata"]["labels"]["symph.dev/group"] for one in found} == {"collector"}


def test_a_pod_of_a_job_of_that_name_elsewhere_is_not_ours() -> None:
    job = job_of()
    pod = pod_of(job, "learner", 0)
    pod["metadata"]["namespace"] = "other"
    assert list(dressed([job], [pod], "diengine/job")) == []


def test_while_it_runs_every_replica_is_counted_there_or_not_there_yet() -> None:
    job = job_of()
    pods = [pod_of(job, "learner", 0), pod_of(job, "collector", 1)]
    assert counted(job, pods) == {"learner": (1, 0, 0), "collector": (2, 0, 0)}


@pytest.mark.parametrize("are_left", [True, False])
def test_after_the_end_the_status_of_replicas_is_still_there(are_left: bool) -> None:
    job = job_of(phase="Succeeded")
    pods = [pod_of(job, "learner", 0, code=0), *(pod_of(job, "collector", index, code=0) for index in (0, 1))]
    assert counted(job, pods if are_left else []) == {"learner": (0, 1, 0), "collector": (0, 2, 0)}


def test_the_one_template_of_operator_v1_0_is_told_by_its_group() -> None:
    workload = {"kind": "dijob", "dijob": {"operator": "v1.0"}}
    experiment = experiment_of(processes={"worker": {**RUN, "replicas": 2}}, workload=workload)
    (job,) = [item for (kind, _), item in native_objects(chart_of(experiment)).items() if kind == "DIJob"]
    live: dict[str, Any] = {**job, "status": {"phase": "Succeeded"}}
    live["metadata"] |= {"namespace": "ml", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert counted(live, []) == {"worker": (0, 2, 0)}


def test_of_operator_v0_the_coordinator_alone_has_succeeded() -> None:
    assert counted(job_of("v0", "Succeeded"), []) == {"coordinator": (0, 1, 0), "collector": (0, 0, 0)}


def test_a_failed_pod_fails_the_experiment_when_its_job_says_so() -> None:
    job = job_of(phase="Failed")
    pods = pods_of_jobs([job], lambda _labels: [pod_of(job, "learner", 0, code=3)])
    status = status_of("r1", [job], pods, now=1767225700.0)
    assert (status.phase, status.instances[-1].status) == ("failed", 3)
    assert status.run == job["metadata"]["labels"]["symph.dev/run"]


def test_what_operator_v0_counted_is_counted_here() -> None:
    job = job_of("v0", "Succeeded")
    counts = {"Coordinator": {"succeeded": 1}, "Collector": {"succeeded": 2, "failed": 1}, "Aggregator": {}}
    job["status"]["replicaStatus"] = counts
    assert counted(job, []) == {"coordinator": (0, 1, 0), "collector": (0, 2, 1)}


def test_a_failed_job_says_why() -> None:
    job = job_of(phase="Failed")
    why = {"type": "Failed", "status": "True", "message": "the number of collector task is more than one"}
    job["status"]["conditions"] = [{"type": "Pending", "status": "False", "message": "x"}, why]
    status = status_of("r1", [job], [], now=1767225700.0)
    assert {one.reason for one in status.instances} == {f"its DIJob has failed: {why['message']}"}


def test_a_failed_coordinator_of_operator_v0_has_failed() -> None:
    job = job_of("v0", "Failed")
    job["status"]["replicaStatus"] = {"Coordinator": {"failed": 1}}
    assert counted(job, []) == {"coordinator": (0, 0, 1), "collector": (0, 0, 0)}


def pod_of_v0(job: dict[str, Any], name: str, role: str, code: int | None = None) -> dict[str, Any]:
    """Return a pod of a role of operator v0, running or ended with `code`."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "di-container", "image": "i"}]}
    state = {"running": {"startedAt": "2026-01-01T00:00:01Z"}} if code is None else {"terminated": {"exitCode": code}}
    labels = {"dijob-name": job["metadata"]["name"], "replica-type": role}
    moment = "2026-01-01T00:00:00Z"
    return {
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": moment, "labels": labels},
        "spec": spec,
        "status": {"containerStatuses": [{"name": "di-container", "state": state}]},
    }


def test_a_job_of_operator_v0_goes_on_without_the_learner_that_failed() -> None:
    job = job_of("v0")
    learners = [pod_of_v0(job, "qbert-learner-a", "learner", 3), pod_of_v0(job, "qbert-learner-b", "learner")]
    pods = pods_of_jobs([job], lambda _labels: [pod_of_v0(job, "qbert-coordinator", "coordinator"), *learners])
    status = status_of("r1", [job], pods, now=1767225700.0)
    assert {one.name: (one.active, one.failed) for one in status.processes}["learner"] == (1, 1)
    assert status.phase == "running"


def test_learners_of_several_gpus_are_learners_and_the_aggregator_is_counted() -> None:
    job = job_of("v0")
    pods = [
        pod_of_v0(job, "qbert-aggregator", "aggregator"),
        *(pod_of_v0(job, f"qbert-ddp-learner-{n}", "ddp-learner") for n in "ab"),
    ]
    counts = counted(job, pods)
    assert (counts["aggregator"], counts["learner"]) == ((1, 0, 0), (2, 0, 0))
    ended = {**job, "status": {"phase": "Succeeded", "replicaStatus": {"Aggregator": {"succeeded": 1}}}}
    assert counted(ended, [])["aggregator"] == (0, 1, 0)


def test_a_job_that_kubectl_made_is_seen_by_its_operators_labels() -> None:
    job = job_of()
    job["metadata"] = {**job["metadata"], "name": "cart", "labels": {}}
    for task in job["spec"]["tasks"]:
        task["template"]["spec"]["containers"] = [{"name": "di-container", "image": "i"}]
    known = adopted(job)
    assert known is not None
    assert counted(known, [pod_of(job, "learner", 0)]) == {"learner": (1, 0, 0), "collector": (2, 0, 0)}
    pods = pods_of_jobs([known], lambda _labels: [pod_of(job, "learner", 0)])
    learner = next(one for one in status_of("cart", [known], pods, now=1767225700.0).instances if one.pod)
    assert (learner.path, learner.container, learner.pod) == ("learner", "di-container", "cart-learner-0")


def test_a_job_of_ours_is_nobody_elses() -> None:
    assert adopted(job_of()) is None
