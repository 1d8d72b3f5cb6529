"""Progress of a workload in `--wait` and `symph status`."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.kubernetes.releases.wait import progress_of, run_in, services_of_run
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data

Object = dict[str, Any]


def workload(kind: str, status: Object, **spec: object) -> Object:
    return {"kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status}


def held(kind: str, reason: str = "", message: str = "") -> Object:
    return {"conditions": [{"type": kind, "status": "True", "reason": reason, "message": message}]}


def pod(state: Object, **more: object) -> Object:
    status: Object = {"containerStatuses": [{"name": "c", "ready": False, "state": state}], **more}
    return {"metadata": {"name": "x-1"}, "status": status}


@pytest.mark.parametrize(
    ("live", "state"),
    [
        (workload("Job", {"ready": 2}, parallelism=2), "ready"),
        (workload("Job", {"ready": 1, "succeeded": 1}, parallelism=2), "ready"),
        (workload("Job", {"ready": 1}, parallelism=2), "waiting"),
        (workload("Job", {"ready": 2}, parallelism=4, completions=2), "ready"),
        (workload("Job", held("Complete"), parallelism=1), "finished"),
        (workload("Job", {**held("Complete"), "ready": 0}), "finished"),
        (workload("Job", held("Failed", "BackoffLimitExceeded", "too often")), "failed"),
        (workload("Job", held("FailureTarget", "PodFailurePolicy", "no"), parallelism=1), "failed"),
        (workload("JobSet", held("Completed")), "finished"),
        (workload("JobSet", held("Failed", "FailedJobs", "one failed")), "failed"),
        (
            workload("StatefulSet", {"readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 2}, replicas=2),
            "ready",
        ),
        (
            workload("StatefulSet", {"readyReplicas": 2, "updatedReplicas": 1, "observedGeneration": 2}, replicas=2),
            "waiting",
        ),
        (
            workload("StatefulSet", {"readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1}, replicas=2),
            "waiting",
        ),
        (workload("StatefulSet", {}, replicas=0), "waiting"),
        (None, "waiting"),
    ],
)
def test_a_workload_is_as_far_as_its_status_says(live: Object | None, state: str) -> None:
    wanted = live or workload("Job", {})
    assert progress_of(wanted, live, []).state == state


def test_a_queued_workload_says_what_its_queue_says() -> None:
    live = workload("JobSet", {}, suspend=True)
    live["metadata"]["uid"] = "u1"
    found = progress_of(live, live, [], {"u1": "in mine: no room"})
    assert (found.state, found.why) == ("queued", "in mine: no room")
    assert progress_of(live, live, []).why == "suspended until it is resumed"


VOLCANO = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"}}
TASKS = {"tasks": [{"replicas": 2}, {"replicas": 1}]}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "waiting"),
        ({"state": {"phase": "Running"}, "running": 2}, "waiting"),
        ({"state": {"phase": "Running"}, "running": 2, "succeeded": 1}, "ready"),
        ({"state": {"phase": "Completed"}, "conditions": [{"status": "Completed"}]}, "finished"),
        ({"state": {"phase": "Terminated", "message": "a pod failed"}}, "failed"),
    ],
)
def test_a_volcano_job_is_as_far_as_its_phase_says(status: Object, state: str) -> None:
    found = progress_of(VOLCANO, {**VOLCANO, "spec": TASKS, "status": status}, [])
    assert found.state == state
    assert state != "failed" or found.why == "a pod failed"


FAILED_POD = {"terminated": {"exitCode": 3}}


@pytest.mark.parametrize(
    ("status", "pods", "state"),
    [
        ({"phase": "Suspended"}, [], "waiting"),
        ({"phase": "Running"}, [pod({"running": {}}, conditions=[{"type": "Ready", "status": "True"}])], "ready"),
        ({"phase": "Succeeded"}, [], "finished"),
        ({"phase": "Failed", **held("Unhealthy", "FailedComponent", "Found 1 failed components")}, [], "failed"),
        ({"state": "Completed"}, [], "finished"),
        ({"state": "Completed"}, [pod(FAILED_POD)], "failed"),
    ],
)
def test_an_appwrapper_is_as_far_as_its_phase_says(status: Object, pods: list[Object], state: str) -> None:
    assert progress_of(workload("AppWrapper", status), workload("AppWrapper", status), pods).state == state


def test_a_failure_that_was_made_good_is_no_failure_under_mcad() -> None:
    first, second = pod(FAILED_POD), pod({"terminated": {"exitCode": 0}})
    first["metadata"]["creationTimestamp"], second["metadata"]["creationTimestamp"] = "2026-01-01", "2026-01-02"
    live = workload("AppWrapper", {"state": "Completed", "failed": 1})
    assert progress_of(live, live, [second, first]).state == "finished"


def test_a_condition_that_does_not_hold_counts_for_nothing() -> None:
    live = workload("Job", {"conditions": [{"type": "Failed", "status": "False"}], "ready": 1}, parallelism=1)
    assert progress_of(live, live, []).state == "ready"


def test_a_failure_names_reason_container_exit_status_and_last_words() -> None:
    live = workload("Job", held("Failed", "BackoffLimitExceeded", "Job has reached the limit"))
    ended = pod({"terminated": {"exitCode": 3, "reason": "Error", "message": "a\nlast words\n"}})
    said = progress_of(live, live, [ended]).why
    assert said == "BackoffLimitExceeded: Job has reached the limit; c exited with 3 (Error): last words"


def test_a_sidecar_that_ended_with_its_pod_is_no_failure() -> None:
    live = workload("Job", held("Failed", "BackoffLimitExceeded", "too often"))
    ended = pod({"terminated": {"exitCode": 3}}, phase="Failed")
    ended["spec"] = {"initContainers": [{"name": "step"}, {"name": "side", "restartPolicy": "Always"}]}
    ended["status"]["initContainerStatuses"] = [
        {"name": "step", "state": {"terminated": {"exitCode": 0}}},
        {"name": "side", "state": {"terminated": {"exitCode": 143}}},
    ]
    found = progress_of(live, live, [ended])
    assert (found.status, found.why) == (3, "BackoffLimitExceeded: too often; c exited with 3 (Error)")


def test_a_sidecar_that_fails_while_its_pod_runs_is_named() -> None:
    live = workload("Job", {}, parallelism=1)
    starting = pod({"waiting": {"reason": "PodInitializing"}}, phase="Pending")
    starting["spec"] = {"initContainers": [{"name": "side", "restartPolicy": "Always"}]}
    broken = {"waiting": {"reason": "CrashLoopBackOff"}}
    starting["status"]["initContainerStatuses"] = [
        {"name": "side", "state": broken, "lastState": {"terminated": {"exitCode": 7}}}
    ]
    assert "side exited with 7" in progress_of(live, live, [starting]).why


def test_a_release_names_its_run_and_the_services_that_the_run_restarts() -> None:
    processes = {
        "main": {"command": ["m"], "connects": ["new", "kept"]},
        "new": {"command": ["s"], "binds": "new", "lifecycle": "service"},
        "kept": {"command": ["s"], "binds": "kept", "lifecycle": "service", "until": "uninstall"},
        "apart": {"command": ["s"], "exposes": "apart", "lifecycle": "service"},
    }
    objects = prepare_experiment(from_data({"name": "rl", "image": "a:1", "processes": processes})).objects
    job = next(item for item in objects if item["kind"] == "Job")
    assert job["metadata"]["labels"]["symph.dev/run"] == run_in(objects)  # type: ignore[index]  # an object
    assert services_of_run(objects) == ("new",)


def test_a_wait_names_the_schedulers_reason_or_the_containers() -> None:
    live = workload("Job", {}, parallelism=1)
    unplaced = {
        "metadata": {"name": "x-1"},
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: Insufficient cpu"}]
        },
    }
    assert progress_of(live, live, [unplaced]).why == "x-1 pending: 0/3 nodes: Insufficient cpu"
    pulling = pod({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})
    assert progress_of(live, live, [pulling]).why == "c is waiting: ImagePullBackOff no such image"
    assert progress_of(live, live, [pod({"running": {}})]).why == "c is running, but not ready"


def test_pods_of_other_kinds_are_ready_when_all_of_them_are() -> None:
    live = workload("JobSet", {})
    ready = {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    done = {"metadata": {"name": "b"}, "status": {"phase": "Succeeded"}}
    assert progress_of(live, live, [ready, done]).state == "ready"
    assert progress_of(live, live, [ready, pod({"running": {}})]).state == "waiting"
    assert progress_of(live, live, []).state == "waiting"


def of_group(index: int, state: Object, *, is_ready: bool = False) -> Object:
    conditions = [{"type": "Ready", "status": "True"}] if is_ready else []
    labels = {"symph.dev/group": "actor", "batch.kubernetes.io/job-completion-index": str(index)}
    status = {"containerStatuses": [{"name": "actor", "ready": is_ready, "state": state}], "conditions": conditions}
    return {"metadata": {"name": f"x-{index}", "labels": labels}, "status": status}


def test_of_several_pods_the_ready_are_counted_and_who_failed_is_named() -> None:
    live = workload("JobSet", {})
    pods = [of_group(index, {"running": {}}, is_ready=True) for index in (0, 2, 3)]
    pods.append(of_group(1, {"terminated": {"exitCode": 9}}))
    assert progress_of(live, live, pods).why == "3 of 4 pods ready; actor-1 exited with 9 (Error)"


ACTORS = {"template": {"metadata": {}, "spec": {}}, "parallelism": 4, "completions": 4}
FOUR: dict[str, Object] = {
    "JobSet": {"replicatedJobs": [{"name": "actor", "replicas": 1, "template": {"spec": ACTORS}}]},
    "AppWrapper": {"components": [{"template": {"kind": "Job", "metadata": {"name": "x-actor"}, "spec": ACTORS}}]},
}


@pytest.mark.parametrize("kind", FOUR)
def test_a_whole_is_ready_once_as_many_pods_are_as_its_jobs_want(kind: str) -> None:
    live = workload(kind, {}, **FOUR[kind])
    pods = [of_group(index, {"running": {}}, is_ready=True) for index in range(4)]
    found = progress_of(live, live, pods[:1])
    assert (found.state, found.why) == ("waiting", "1 of 4 pods ready")
    assert progress_of(live, live, pods).state == "ready"


def test_who_failed_is_named_also_while_it_is_tried_again() -> None:
    live = workload("JobSet", {}, **FOUR["JobSet"])
    pods = [at("2026-01-01", of_group(index, {"running": {}}, is_ready=True)) for index in (0, 2, 3)]
    first = at("2026-01-01", of_group(1, {"terminated": {"exitCode": 9}}))
    second = at("2026-01-02", of_group(1, {"waiting": {"reason": "ContainerCreating"}}))
    made_good = at("2025-12-31", of_group(0, {"terminated": {"exitCode": 3}}))
    said = progress_of(live, live, [made_good, *pods, first, second]).why
    assert said == "3 of 4 pods ready; actor is waiting: ContainerCreating; actor-1 exited with 9 (Error)"


def at(moment: str, item: Object, **more: object) -> Object:
    return {**item, "metadata": {**item["metadata"], "creationTimestamp": moment, **more}}


def test_a_pod_that_was_replaced_keeps_nothing_from_being_ready() -> None:
    live = workload("JobSet", {}, **FOUR["JobSet"])
    pods = [of_group(index, {"running": {}}, is_ready=True) for index in range(4)]
    failed = at("2026-01-01", of_group(1, {"terminated": {"exitCode": 9}}))
    assert progress_of(live, live, [failed, *(at("2026-01-02", one) for one in pods)]).state == "ready"


def test_a_pod_that_is_being_deleted_is_not_ready() -> None:
    live = workload("JobSet", {}, **FOUR["JobSet"])
    pods = [of_group(index, {"running": {}}, is_ready=True) for index in range(4)]
    going = at("2026-01-01", pods[3], deletionTimestamp="2026-01-02")
    assert progress_of(live, live, [*pods[:3], going]).state == "waiting"


@pytest.mark.parametrize(
    ("limit", "phase", "state"),
    [
        ("0", "Running", "failed"),
        ("2", "Running", "waiting"),
        # The last try is counted before the Jobs of the previous one are gone.
        ("0", "Resetting", "waiting"),
        ("0", "Resuming", "waiting"),
    ],
)
def test_an_appwrapper_whose_job_failed_for_good_has_failed_before_its_controller_says_so(
    limit: str, phase: str, state: str
) -> None:
    live = workload("AppWrapper", {"phase": phase}, components=[])
    live["metadata"]["annotations"] = {"workload.codeflare.dev.appwrapper/retryLimit": limit}
    job = workload("Job", held("Failed", "BackoffLimitExceeded", "too often")) | {"apiVersion": "batch/v1"}
    job["metadata"]["name"] = "x-actor"
    found = progress_of(live, live, [pod(FAILED_POD)], None, [job])
    assert (found.state, "Job/x-actor: too often" in found.why) == (state, state == "failed")
