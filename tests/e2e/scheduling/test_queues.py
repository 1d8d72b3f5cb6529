"""Experiments in a queue of the real Kueue: held while there is no room, admitted as soon as there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.charts import package_data
from tests.e2e.programs import Programs, Symph
from tests.e2e.release import Releases
from tests.e2e.scheduling.queues import make_objects, make_queue
from tests.waiting import eventually

Quota = Callable[..., None]


def experiment(name: str, seconds: int, **more: object) -> dict[str, object]:
    process = {"cmds": [f"sleep {seconds}"], "requests": {"cpu": 1, "memory": "64Mi"}, "grace_period": 1}
    workload = {"gang": "kueue", "queue": "mine", **more}
    return {
        "name": name,
        "image": "busybox:1.37.0",
        "workload": workload,
        "processes": {"left": process, "right": process},
    }


@pytest.fixture
def quota(programs: Programs, namespace: str) -> Quota:
    """Return a function that sets the number of processors in the queue `mine` of the test's namespace."""
    return partial(make_queue, programs, namespace)


def seen(symph: Symph, name: str) -> tuple[str, set[str]]:
    """Return phase and reasons of an experiment from ``symph describe``."""
    said = symph("describe", name, "--on", "kube", "-o", "json")
    assert said.code == 0, said.err
    status = json.loads(said.out)
    return status["phase"], {one["reason"] for one in status["processes"]}


def why(symph: Symph, name: str) -> str:
    """Return the reason of ``symph status`` why an experiment does not run."""
    (there,) = json.loads(symph("status", name, "-o", "json").out)["items"]
    return str(there["why"])


# Half of the set would fit into one processor.
@pytest.mark.parametrize(("kind", "too_small"), [("jobs", "500m"), ("jobset", "1"), ("appwrapper", "1")])
def test_an_experiment_is_held_until_there_is_quota_and_those_before_it_are_gone(
    release: Releases, symph: Symph, quota: Quota, tmp_path: Path, kind: str, too_small: str
) -> None:
    first, second, third = release("first"), release("second"), release("third")
    as_kind = f"workload.kind={kind}"
    quota(too_small)
    first.install(package_data(experiment("first", 600), tmp_path, as_kind))
    eventually(lambda: "insufficient quota" in str(seen(symph, "first")), 60, lambda: str(seen(symph, "first")))
    assert (seen(symph, "first")[0], first.pods()) == ("queued", [])
    waited = symph("wait", "first", "--on", "kube", "--timeout", "1s")
    assert (waited.code, "queued in mine" in waited.err) == (6, True), waited.err
    (there,) = json.loads(symph("status", "first", "-o", "json").out)["items"]
    assert (there["phase"], there["why"]["cause"]) == ("queued", "queue")
    quota("2")
    first.wait_ready()

    second.install(package_data(experiment("second", 1), tmp_path / "next", as_kind))
    eventually(lambda: "insufficient unused quota" in str(seen(symph, "second")), 60, "the second one is queued")
    assert (seen(symph, "second")[0], second.pods()) == ("queued", [])
    third.install(package_data(experiment("third", 1), tmp_path / "third", as_kind))
    behind = f"second behind {third.namespace}/second"
    eventually(lambda: behind in why(symph, "third"), 60, lambda: why(symph, "third"))
    third.uninstall()
    first.uninstall()
    second.wait_finished()
    assert seen(symph, "second")[0] == "succeeded"


def test_an_experiment_that_had_to_make_room_is_queued_again(
    release: Releases, symph: Symph, quota: Quota, programs: Programs, tmp_path: Path
) -> None:
    make_objects(
        programs,
        {"kind": "WorkloadPriorityClass", "metadata": {"name": "e2e-high"}, "value": 100},
        {"kind": "WorkloadPriorityClass", "metadata": {"name": "e2e-low"}, "value": 1},
    )
    quota("2", more={"preemption": {"withinClusterQueue": "LowerPriority"}})
    low, high = release("low"), release("high")
    low.install(package_data(experiment("low", 600, kind="jobset", queue_priority="e2e-low"), tmp_path))
    low.wait_ready()
    chart = package_data(experiment("high", 600, kind="jobset", queue_priority="e2e-high"), tmp_path / "next")
    high.install(chart)
    eventually(lambda: seen(symph, "low")[0] == "queued", 60, lambda: f"it makes room: {seen(symph, 'low')}")
    high.uninstall()
    eventually(lambda: seen(symph, "low")[0] == "running", 60, lambda: f"it runs again: {seen(symph, 'low')}")
