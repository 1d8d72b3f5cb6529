"""Experiments as JobSets under the real JobSet controller: they finish, stop their other groups, and fail as one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.programs import Symph
from tests.e2e.release import Release, Releases
from tests.waiting import eventually

AS_SET = "workload.kind=jobset"
ENDLESS = {"cmds": ["sleep 600"], "grace_period": 1}


def end_of(run: Release) -> str:
    """Return how the JobSet of a release ended; empty until then."""
    (found,) = run.objects("jobsets")
    return str(found.get("status", {}).get("terminalState", ""))


def states(symph: Symph, name: str) -> dict[str, str]:
    """Return the state of each process from ``symph ps``; ``symph describe`` has to agree."""
    said, described = (symph(verb, name, "--on", "kube", "-o", "json") for verb in ("p", "describe"))
    assert (said.code, described.code) == (0, 0), said.err + described.err
    found = json.loads(said.out)["items"]
    phases = {one["name"]: one["phase"] for one in json.loads(described.out)["processes"]}
    assert {one["process"]: one["phase"] for one in found} == phases
    return {one["name"]: one["state"].partition(" after ")[0] for one in found}


def two(name: str, boss: str, **more: object) -> dict[str, object]:
    processes = {"boss": {"cmds": [boss]}, "worker": ENDLESS}
    return {"name": name, "image": "busybox:1.37.0", "processes": processes, **more}


def test_an_example_finishes_as_a_jobset(release: Releases, charts: ExampleCharts, symph: Symph) -> None:
    run = release("rl")
    run.install(charts.changed("rl", AS_SET))
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert (waited.code, waited.out.strip()) == (0, "rl succeeded"), waited.err
    eventually(lambda: end_of(run), 60, "the JobSet has ended")
    assert (end_of(run), set(states(symph, "rl").values())) == ("Completed", {"succeeded"})
    assert "update 20" in run.log("learner")


def test_a_set_stops_the_others_when_its_boss_is_done(release: Releases, symph: Symph, tmp_path: Path) -> None:
    run = release("done")
    run.install(package_data(two("done", "echo it is done", done_when=["boss"]), tmp_path, AS_SET))
    waited = symph("wait", "done", "--on", "kube", "--timeout", "60s")
    assert waited.code == 0, waited.err
    eventually(lambda: len(run.pods()) == 1, 60, "the worker's pod is gone")
    assert end_of(run) == "Completed"
    assert states(symph, "done") == {"boss": "succeeded", "worker": "stopped: its JobSet has succeeded"}


def test_a_group_that_fails_fails_the_set_and_stops_the_others(release: Releases, symph: Symph, tmp_path: Path) -> None:
    run = release("bad")
    chart = package_data(two("bad", "echo sorry; exit 3"), tmp_path, AS_SET)
    installed = symph("install", str(chart), "--wait-for-jobs", "--timeout", "60s")
    assert (installed.code, "boss exited with 3" in installed.err) == (1, True), installed.err
    waited = symph("wait", "bad", "--on", "kube", "--timeout", "60s")
    assert (waited.code, "boss failed 3" in waited.err) == (1, True), waited.err
    eventually(lambda: len(run.pods()) == 1, 60, "the worker's pod is gone")
    assert end_of(run) == "Failed"
    assert states(symph, "bad") == {"boss": "failed 3", "worker": "stopped: its JobSet has failed"}


def test_all_of_a_set_begin_again_when_one_has_failed(release: Releases, symph: Symph, tmp_path: Path) -> None:
    attempt = {"ATTEMPT": {"field": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}
    processes = {
        "boss": {"cmds": ["sleep 1", "test $ATTEMPT = 1"], "env": attempt},
        "worker": {"cmds": ["echo attempt $ATTEMPT, try $SYMPH_ATTEMPT", "sleep 2"], "env": attempt},
    }
    run = release("again")
    workload = {"kind": "jobset", "jobset": {"max_restarts": 1}}
    data: dict[str, object] = {"name": "again", "image": "busybox:1.37.0", "processes": processes, "workload": workload}
    run.install(package_data(data, tmp_path))
    waited = symph("wait", "again", "--on", "kube", "--timeout", "60s")
    assert (waited.code, waited.out.strip()) == (0, "again succeeded"), waited.err
    assert run.log("worker") == "attempt 1, try 1\n"


def test_who_waits_is_told_how_many_are_ready_and_who_failed(release: Releases, symph: Symph, tmp_path: Path) -> None:
    # Without a check, a process that fails at once would be ready for a moment, as for any pod.
    actor = {
        "cmds": ['test "$SYMPH_INDEX" != 1 || exit 9', "touch /tmp/ready", "sleep 600"],
        "ready": {"exec": ["test", "-e", "/tmp/ready"], "period": "1s"},
        "replicas": 4,
        "retries": 3,
    }
    data: dict[str, object] = {
        "name": "few",
        "image": "busybox:1.37.0",
        "processes": {"actor": {**actor, "grace_period": 1}},
    }
    chart = package_data(data, tmp_path, AS_SET)
    waited = symph("install", str(chart), "--wait", "--timeout", "15s")
    assert (waited.code, "3 of 4 pods ready; actor-1 exited with 9" in waited.err) == (6, True), waited.err
    shown = symph("status", "few")
    assert "no pod yet" not in shown.out
    assert "actor-1" in shown.out, shown.out
