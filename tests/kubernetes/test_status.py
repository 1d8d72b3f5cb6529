"""States on Kubernetes, from objects as the API server returns them, for cases that are too slow on a rig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.kinds.base import WAITING, is_conductor
from symphony_charts.kinds.registry import workload_kind
from symphony_charts.kubernetes.container_phase import moment_of
from symphony_charts.kubernetes.status import event_of, explained, lacks_reason, status_of
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data

NOW = moment_of("2026-03-01T12:00:00Z")
LABELS = {
    "symph.dev/experiment": "rl",
    "app.kubernetes.io/instance": "rl",
    "symph.dev/group": "agent",
    "symph.dev/run": "r1",
}


def pod(name: str = "rl-agent-r1-0-x", index: int = 0, **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": "2026-03-01T11:00:00Z",
            "labels": {**LABELS, "batch.kubernetes.io/job-completion-index": str(index)},
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "agent"}]},
        "status": status,
    }


def container(state: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "agent", "state": state, "ready": False, "restartCount": 0, **more}]}


def job(completions: int = 1, conditions: Any = (), **marks: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "agent"}]}}
    meta = {"name": "rl-agent-r1", "namespace": "ml", "creationTimestamp": "2026-03-01T11:00:00Z", "labels": LABELS}
    return {
        "kind": "Job",
        "metadata": {**meta, **marks},
        "spec": {"completions": completions, "template": template},
        "status": {"conditions": list(conditions)},
    }


def status(workloads: list[dict[str, Any]], pods: list[dict[str, Any]], releases: Any = ()) -> ExperimentStatus:
    return status_of("rl", workloads, pods, releases=releases, now=NOW)


def only(found: ExperimentStatus) -> InstanceStatus:
    (one,) = found.instances
    return one


def test_a_pending_pod_shows_its_process_and_the_schedulers_reason() -> None:
    message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available."
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    one = only(status([job()], [pod(phase="Pending", conditions=[waiting])]))
    assert (one.name, one.phase) == ("agent", "pending")
    assert one.state == "pending: 0/3 nodes are available: 3 Insufficient cpu"


def test_an_image_that_cannot_be_pulled_is_the_reason() -> None:
    state = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "no:1"\nmore'}}
    one = only(status([job()], [pod(**container(state))]))
    assert one.state == 'waiting: ImagePullBackOff Back-off pulling image "no:1"'


def test_replicas_without_a_pod_are_listed_from_their_workload() -> None:
    found = status([job(completions=3)], [pod(**container({"running": {"startedAt": "2026-03-01T11:59:56Z"}}))])
    assert [(one.name, one.state) for one in found.instances] == [
        ("agent-0", "running: 4s"),
        ("agent-1", "pending: no pod yet"),
        ("agent-2", "pending: no pod yet"),
    ]


def warning(kind: str, name: str, message: str, minute: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"creationTimestamp": f"2026-03-01T11:{minute:02}:00Z"},
        "involvedObject": {"kind": kind, "name": name},
        "type": "Warning",
        "message": message,
    }


@pytest.mark.parametrize(
    ("pods", "events", "said"),
    [
        ([], [warning("Job", "rl-agent-r1", "quota")], "quota"),
        ([], [warning("Job", "rl-agent-r1", "quota", 2), warning("Job", "rl-agent-r1", "older", 1)], "quota"),
        ([], [warning("Job", "rl-agent-r2", "of another")], "no pod yet"),
        ([], [warning("Pod", "rl-agent-r1-0-gone", "of a pod that is gone")], "no pod yet"),
        ([pod()], [warning("Pod", "rl-agent-r1-0-x", "no secret")], "no secret"),
        ([pod()], [warning("Job", "rl-agent-r1", "before it was made")], ""),
    ],
)
def test_what_has_not_begun_says_the_last_warning_about_it(pods: Any, events: Any, said: str) -> None:
    seen = explained(status([job()], pods), [job()], events, [])
    assert only(seen).reason == said


RUNNING = container({"running": {"startedAt": "2026-03-01T11:59:56Z"}})


@pytest.mark.parametrize(
    ("place", "message", "said"),
    [
        ("spec.containers{agent}", "Readiness probe failed: Connection refused\nmore", "not ready: Connection refused"),
        ("", "Startup probe failed: ", "not ready: its probe failed"),
        ("spec.containers{agent}", "Readiness probe errored and resulted in unknown state: no", "not ready: no"),
        ("spec.containers{side}", "Readiness probe failed: of another", ""),
        ("spec.containers{agent}", "Liveness probe failed: it starts again", ""),
    ],
)
def test_what_runs_and_is_not_ready_says_what_its_probe_found(place: str, message: str, said: str) -> None:
    found = warning("Pod", "rl-agent-r1-0-x", message)
    found["involvedObject"]["fieldPath"] = place
    unready = status([job()], [pod(**RUNNING)])
    assert lacks_reason(unready)
    seen = only(explained(unready, [job()], [found], []))
    assert (seen.state, seen.reason) == ("running: 4s", said)


@pytest.mark.parametrize(
    ("name", "held", "said"),
    [
        ("rl-secrets", "False", "SealedSecret rl-secrets: no key could decrypt secret (token)"),
        ("rl-secrets", "True", 'MountVolume.SetUp failed for volume "secrets" : secret "rl-secrets" not found'),
        ("other", "False", 'MountVolume.SetUp failed for volume "secrets" : secret "rl-secrets" not found'),
    ],
)
def test_a_secret_that_its_controller_cannot_open_says_why(name: str, held: str, said: str) -> None:
    condition = {"type": "Synced", "status": held, "message": "no key could decrypt secret (token)"}
    sealed = {"metadata": {"name": name}, "status": {"conditions": [condition]}}
    message = 'MountVolume.SetUp failed for volume "secrets" : secret "rl-secrets" not found'
    events = [warning("Pod", "rl-agent-r1-0-x", message)]
    seen = explained(status([job()], [pod()]), [job()], events, [sealed])
    assert only(seen).reason == said


def test_a_finished_job_whose_pods_are_gone_has_succeeded() -> None:
    done = {"type": "Complete", "status": "True"}
    assert status([job(conditions=[done])], []).phase == "succeeded"


ENDED = {"exitCode": 3, "reason": "Error", "startedAt": "2026-03-01T11:00:00Z", "finishedAt": "2026-03-01T11:00:02Z"}


def test_a_failure_that_its_job_will_retry_is_not_final() -> None:
    one = only(status([job()], [pod(**container({"terminated": ENDED}))]))
    assert (one.phase, one.state) == ("pending", "failed 3 after 2s: Error, restarting")


def test_a_failure_of_a_job_that_gave_up_is_final() -> None:
    gave_up = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    found = status([job(conditions=[gave_up])], [pod(**container({"terminated": ENDED}))])
    assert (found.phase, only(found).status, found.is_final) == ("failed", 3, True)


def test_a_pod_that_replaces_a_failed_one_counts_as_a_restart() -> None:
    second = pod("rl-agent-r1-0-y", **container({"running": {"startedAt": "2026-03-01T11:59:56Z"}}, ready=True))
    second["metadata"]["creationTimestamp"] = "2026-03-01T11:30:00Z"
    one = only(status([job()], [pod(**container({"terminated": ENDED})), second]))
    assert (one.pod, one.restarts, one.ready) == ("rl-agent-r1-0-y", 1, True)


def of_run(run: str, item: dict[str, Any], **marks: Any) -> dict[str, Any]:
    meta = item["metadata"]
    return {**item, "metadata": {**meta, "labels": {**meta["labels"], "symph.dev/run": run}, **marks}}


DONE = {"exitCode": 0, "startedAt": "2026-03-01T11:00:00Z", "finishedAt": "2026-03-01T11:00:02Z"}


def test_a_pod_of_the_former_run_says_nothing_of_the_new_one() -> None:
    former = pod(phase="Succeeded", **container({"terminated": DONE}))
    found = status([of_run("r2", job(), name="rl-agent-r2")], [former])
    assert (found.phase, only(found).state) == ("pending", "pending: no pod yet")


def test_a_job_that_is_being_deleted_is_not_asked_where_another_one_is() -> None:
    gone = job(conditions=[{"type": "Complete", "status": "True"}], deletionTimestamp="2026-03-01T11:30:00Z")
    new = of_run("r2", job(), name="rl-agent-00")
    for workloads in ([gone, new], [new, gone]):
        assert only(status(workloads, [])).state == "pending: no pod yet"


def test_what_a_set_says_counts_more_than_its_job_that_is_being_deleted() -> None:
    gone = job(deletionTimestamp="2026-03-01T11:30:00Z")
    member = {"name": "agent", "replicas": 1, "template": {"metadata": {"labels": LABELS}, "spec": gone["spec"]}}
    meta = {"name": "rl-r1", "namespace": "ml", "creationTimestamp": "2026-03-01T11:00:00Z", "labels": LABELS}
    whole = {"kind": "JobSet", "metadata": meta, "spec": {"replicatedJobs": [member]}}
    whole["status"] = {"terminalState": "Completed"}
    assert only(status([gone, whole], [])).state == "stopped: its JobSet has succeeded"


def stateful_set(generation: int = 2, run: str = "r1", **spec: Any) -> dict[str, Any]:
    """Return the StatefulSet of the agents, with observed generation 2 and the update revision `new`.

    As in our charts, only its pods have the label of a run.
    """
    item = job()
    seen = {"observedGeneration": 2, "updateRevision": "new"}
    labels = {key: text for key, text in LABELS.items() if key != "symph.dev/run"}
    metadata = {**item["metadata"], "generation": generation, "labels": labels}
    template = of_run(run, item["spec"]["template"])
    return {"kind": "StatefulSet", "metadata": metadata, "spec": {"template": template, **spec}, "status": seen}


@pytest.mark.parametrize(
    ("workload", "revision", "is_ready"),
    [
        (stateful_set(), "new", True),
        (stateful_set(), "old", False),
        (stateful_set(generation=3), "new", False),
        (stateful_set(updateStrategy={"type": "OnDelete"}), "old", True),
        (stateful_set(updateStrategy={"rollingUpdate": {"partition": 1}}), "old", True),
        (stateful_set(run="r2"), "new", False),
    ],
)
def test_a_service_is_ready_once_its_newest_pod_is(workload: Any, revision: str, is_ready: bool) -> None:
    one = pod(**container({"running": {"startedAt": "2026-03-01T11:59:56Z"}}, ready=True))
    one["metadata"]["labels"]["controller-revision-hash"] = revision
    found = only(status([workload], [one]))
    assert (found.phase, found.ready) == ("running", is_ready)
    assert is_ready or found.reason == "not ready: its controller will replace it"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_sidecar_is_stopped_with_its_pod_whatever_its_exit_status(phase: str) -> None:
    killed = {**ENDED, "exitCode": 143}
    one = pod(phase=phase, **container({"terminated": ENDED if phase == "Failed" else DONE}))
    one["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}]
    one["status"]["initContainerStatuses"] = [{"name": "side", "state": {"terminated": killed}}]
    found = {each.process: each for each in status([job()], [one]).instances}
    assert (found["side"].phase, found["side"].is_service) == ("stopped", True)
    assert found["agent"].name == "agent"


def test_an_evicted_pod_says_so() -> None:
    gave_up = {"type": "Failed", "status": "True"}
    found = status([job(conditions=[gave_up])], [pod(phase="Failed", message="The node was low on resource: memory.")])
    assert only(found).state == "failed: The node was low on resource: memory."


@pytest.mark.parametrize(
    ("marks", "revision", "holders"),
    [
        ({}, "", ()),
        ({"meta.helm.sh/release-name": "rl"}, "2", ("Helm release rl, revision 2",)),
        ({"meta.helm.sh/release-name": "rl"}, "", ("Helm release rl",)),
        ({"argocd.argoproj.io/tracking-id": "app:x"}, "", ("Argo CD application app",)),
        (
            {"argocd.argoproj.io/tracking-id": "app:x"},
            "1",
            ("Argo CD application app", "Helm release rl, revision 1"),
        ),
    ],
    ids=["none", "helm", "helm-unread", "argo-cd", "both"],
)
def test_the_status_says_who_holds_it(marks: Any, revision: str, holders: tuple[str, ...]) -> None:
    releases = [{"metadata": {"labels": {"name": "rl", "version": revision}}}] if revision else []
    assert status([job(annotations=marks)], [], releases).held_by == holders


def test_a_release_may_be_called_otherwise_than_its_experiment() -> None:
    found = status_of("rl-b", [job()], [], now=NOW)
    assert (found.name, found.experiment) == ("rl-b", "rl")


def test_a_load_balancer_with_a_host_name_is_an_address() -> None:
    service = {
        "metadata": {
            "name": "rl-web",
            "namespace": "ml",
            "creationTimestamp": "2026-03-01T11:00:00Z",
            "labels": {**LABELS, "symph.dev/service": "web"},
        },
        "spec": {"ports": [{"port": 7000}]},
        "status": {"loadBalancer": {"ingress": [{"hostname": "a.elb.example"}]}},
    }
    (found,) = status_of("rl", [job()], [], [service], now=NOW).services
    assert (found.name, found.address, found.outside) == ("web", "rl-web:7000", "a.elb.example:7000")


def test_events_of_both_generations_are_read() -> None:
    about: dict[str, Any] = {"involvedObject": {"kind": "Pod", "name": "p"}}
    old = about | {"lastTimestamp": "2026-03-01T11:00:00Z", "count": 4}
    new = about | {"lastTimestamp": None, "eventTime": "2026-03-01T11:00:00.500000Z", "series": None}
    assert [(one.time, one.count) for one in map(event_of, (old, new))] == [(NOW - 3600, 4), (NOW - 3599.5, 1)]


def test_services_that_ended_with_the_run_are_stopped_and_the_waiting_container_is_no_process() -> None:
    processes = {
        "learner": {"command": ["x"], "connects": "ps"},
        "late": {"command": ["x"]},
        "ps": {"command": ["x"], "lifecycle": "service", "binds": "ps", "gpus": 2},
    }
    spec = {"name": "rl", "image": "a:1", "processes": processes, "done_when": "learner"}
    made: list[Any] = [item for item in prepare_experiment(from_data(spec)).objects if workload_kind(item)]
    jobs = {item["metadata"]["labels"]["symph.dev/group"]: item for item in made if not is_conductor(item)}
    for item in jobs.values():
        item["metadata"] |= {"namespace": "ml", "creationTimestamp": "2026-03-01T11:00:00Z"}
    template = jobs["ps"]["spec"]["template"]
    assert template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "ps"
    seen = {"state": {"running": {"startedAt": "2026-03-01T11:59:56Z"}}, "ready": True, "restartCount": 0}
    ready = {"initContainerStatuses": [{"name": "ps", **seen}], "containerStatuses": [{"name": WAITING, **seen}]}
    server = {**pod(), "metadata": {**pod()["metadata"], "labels": template["metadata"]["labels"]}}
    found = status([jobs["ps"]], [{**server, "spec": template["spec"], "status": ready}])
    assert [(one.name, one.process, one.container, one.is_service) for one in found.instances] == [
        ("ps", "ps", "", True)
    ]

    jobs["learner"]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    found = status([jobs["learner"], jobs["ps"]], [{**server, "spec": template["spec"], "status": ready}])
    assert (found.phase, found.still_running) == ("succeeded", ("ps (2 GPUs)",))
    for name in ("ps", "late"):
        jobs[name]["metadata"]["annotations"] = {"symph.dev/ended": "true"}
        jobs[name]["spec"]["suspend"] = True
    found = status(list(jobs.values()), [])
    assert found.phase == "succeeded"
    states = {one.name: one.state for one in found.instances}
    assert states.pop("learner").startswith("succeeded")
    assert states == {"late": "stopped: it ended with the run", "ps": "stopped: it ended with the run"}
    assert found.ended_with_run == ("late", "ps (2 GPUs)")
