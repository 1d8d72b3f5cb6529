"""Pods lost with their nodes are no failures, and N retries are N: Jobs and JobSets under the real controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.charts import package_data
from tests.e2e.release import Release, Releases, describe
from tests.e2e.rig.api import Api, Object
from tests.waiting import eventually

# Runs until its pod is evicted or lost; the next pod finds the ConfigMap that records it.
WORK = "echo begun as try $SYMPH_ATTEMPT; [ $AGAIN ] || sleep 300; echo the result"
GONE_S = 120  # the pods' collector notices a missing node after a minute


def evict(api: Api, pod: Object) -> None:
    """Evict a pod as ``kubectl drain`` and autoscalers do."""
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    api.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})


def taint(api: Api, pod: Object) -> None:
    entry = {"key": "e2e.symph.dev/gone", "effect": "NoExecute"}
    path = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    api.merge(path, {"spec": {"taints": [*(api.get(path)["spec"].get("taints") or []), entry]}})


def delete(api: Api, pod: Object) -> None:
    api.delete(f"/api/v1/nodes/{pod['spec']['nodeName']}")


@contextmanager
def nodes_come_back(api: Api) -> Iterator[None]:
    before = api.get("/api/v1/nodes")["items"]
    try:
        yield
    finally:
        for node in before:
            meta = {key: node["metadata"][key] for key in ("name", "labels")}
            spec = {"taints": node["spec"].get("taints") or []}
            path = f"/api/v1/nodes/{meta['name']}"
            if api.find(path) is None:
                api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec})
                api.merge(f"{path}/status", {"status": node["status"]})
            api.merge(path, {"spec": spec})


def running(run: Release, group: str) -> Object:
    def begun() -> Object | None:
        pods = [pod for pod in run.pods() if pod["metadata"]["labels"]["symph.dev/group"] == group]
        is_begun = [pod for pod in pods if pod["status"]["phase"] == "Running" and "begun" in run.log(group)]
        return is_begun[0] if is_begun else None

    return eventually(begun, 60, lambda: describe(run.programs, run.namespace))


def job_of(run: Release, group: str) -> Object:
    (found,) = [job for job in run.objects("jobs") if job["metadata"]["labels"]["symph.dev/group"] == group]
    return found


@pytest.mark.parametrize(("kind", "lose"), [("jobs", evict), ("jobset", taint)])
def test_the_work_of_a_lost_pod_goes_on_without_retries(
    release: Releases, api: Api, tmp_path: Path, kind: str, lose: Callable[[Api, Object], None]
) -> None:
    run = release("lost")
    run.install(package_data(experiment("lost"), tmp_path, f"workload.kind={kind}"))
    with nodes_come_back(api):
        first = running(run, "lone")
        note_the_loss(run)
        lose(api, first)
        eventually(partial(is_replaced, run, first), 60, lambda: describe(run.programs, run.namespace))
    run.wait_finished()
    assert job_of(run, "lone")["status"].get("failed", 0) == 0
    assert last_log(run) == "begun as try 0\nthe result\n"


def experiment(name: str, **more: object) -> dict[str, object]:
    env = {"AGAIN": {"config": "taken", "key": "away", "optional": True}}
    lone = {"cmds": [WORK], "image": "busybox:1.37.0", "grace_period": 1, "env": env, **more}
    return {"name": name, "processes": {"lone": lone}}


def last_log(run: Release) -> str:
    """Return the log of the replacement pod, which may finish before the lost pod is gone."""
    eventually(lambda: len(run.pods()) == 1, 60, lambda: describe(run.programs, run.namespace))
    return run.log("lone")


def note_the_loss(run: Release) -> None:
    """Record in a ConfigMap, for later pods, that an earlier one was lost."""
    run.programs.kubectl("-n", run.namespace, "create", "configmap", "taken", "--from-literal=away=yes")


def is_replaced(run: Release, first: Object) -> bool:
    names = {pod["metadata"]["uid"] for pod in run.pods() if pod["metadata"]["labels"]["symph.dev/group"] == "lone"}
    return bool(names - {first["metadata"]["uid"]})


def test_the_work_of_a_node_that_is_taken_away_goes_on_and_its_retries_stay(
    release: Releases, api: Api, tmp_path: Path
) -> None:
    run = release("spot")
    run.install(package_data(experiment("spot", retries=1), tmp_path))
    with nodes_come_back(api):
        first = running(run, "lone")
        note_the_loss(run)
        delete(api, first)
        eventually(partial(is_replaced, run, first), GONE_S, lambda: describe(run.programs, run.namespace))
    run.wait_finished(GONE_S)
    assert job_of(run, "lone")["status"].get("failed", 0) == 0
    assert last_log(run) == "begun as try 0\nthe result\n"


def ends(run: Release) -> dict[str, str]:
    """Return how the Jobs of a release ended, by group; empty until all have ended."""
    found: dict[str, str] = {}
    for job in run.objects("jobs"):
        ended = [c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"]
        found[job["metadata"]["labels"]["symph.dev/group"]] = next(
            (c for c in ended if c in ("Complete", "Failed")), ""
        )
    return found if all(found.values()) else {}


def test_n_retries_are_n_further_tries_that_know_their_number(release: Releases, tmp_path: Path) -> None:
    run = release("tries")
    note = "echo $SYMPH_INDEX:$SYMPH_ATTEMPT"
    fails = {"cmds": [note, "exit 3"], "retries": 2}
    second = {"command": ["sh", "-c", f"{note}; [ $SYMPH_ATTEMPT = 1 ]"], "retries": 1}
    either = {**fails, "replicas": 2, "cmds": [note, "[ $SYMPH_INDEX:$SYMPH_ATTEMPT = 0:1 ] || exit 3"]}
    once = {"cmds": fails["cmds"]}
    processes = {"lone": fails, "either": either, "second": second, "once": once}
    run.install(
        package_data(
            {"name": "tries", "image": "busybox:1.37.0", "processes": processes, "on_failure": "continue"}, tmp_path
        )
    )
    ended = eventually(partial(ends, run), 120, lambda: describe(run.programs, run.namespace))
    assert {group: sorted(run.log(group).split()) for group in processes} == {
        "lone": ["0:0", "0:1", "0:2"],
        "either": ["0:0", "0:1", "1:0", "1:1", "1:2"],
        "second": ["0:0", "0:1"],
        "once": ["0:0"],
    }
    assert ended == {"lone": "Failed", "either": "Failed", "second": "Complete", "once": "Failed"}


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_n_retries_in_place_are_n_restarts_that_run_to_their_end(release: Releases, tmp_path: Path, kind: str) -> None:
    def needs(tries: int) -> dict[str, object]:
        lines = ["echo >> /mnt/tries", "sleep 2", f"[ $(wc -l < /mnt/tries) = {tries} ]"]
        kept = [{"at": "/mnt", "empty_dir": None}]
        return {"cmds": lines, "mounts": kept, "restart": "on-failure", "retries": 2, "grace_period": 1}

    data: dict[str, object] = {"name": "kept", "image": "busybox:1.37.0", "processes": {"third": needs(3)}}
    run = release("kept")
    run.install(package_data(data, tmp_path / "third", f"workload.kind={kind}"))
    assert eventually(partial(ends, run), 60, lambda: describe(run.programs, run.namespace)) == {"third": "Complete"}
    run.upgrade(package_data({**data, "processes": {"fourth": needs(4)}}, tmp_path / "f", f"workload.kind={kind}"))
    wanted = {"fourth": "Failed"}
    eventually(lambda: ends(run) == wanted, 60, lambda: describe(run.programs, run.namespace))
