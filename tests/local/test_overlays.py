"""Overlay fields of a process apply on one machine as in the pod; ignored fields are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.local import up
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import PlannedProcess
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.parity.compare import compare
from tests.local.runs import log_of, python, start

PRINT = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['MODE'], os.getcwd()]))"


def plan_of(
    folder: Path, process: dict[str, Any], *, is_same: bool = True, **more: object
) -> tuple[PlannedProcess, list[str]]:
    """Return the plan of an experiment with one process `p`, and its notes about overlays.

    `is_same`: the process must see the same here as in its pod.
    """
    experiment = from_data({"name": "e", "image": "u:1", "processes": {"p": {"command": ["run"], **process}}, **more})
    plan = plan_here(experiment, allocate(experiment), folder, "r")
    assert bool(compare(experiment, {}, folder, probes=False).differences) is not is_same
    return plan.processes[-1], [note for note in plan.notes if "overlay" in note]


@pytest.mark.usefixtures("here")
def test_up_runs_the_arguments_variables_and_folder_of_an_overlay(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    process = python(PRINT)
    overlay = {
        "env": [{"name": "MODE", "value": "laid"}],
        "args": ["--laid", "on"],
        "workingDir": str(work),
    }
    run = start(tmp_path, processes={"p": {**process, "args": ["--old"], "container_overlay": overlay}})
    assert up.wait(run) == 0
    assert json.loads(log_of(run, "p")) == [["--laid", "on"], "laid", str(work)]


def test_the_overlay_of_the_pod_counts_for_its_own_container(tmp_path: Path) -> None:
    own = {"name": "p", "args": ["x"], "env": [{"name": "A", "value": "1"}], "workingDir": "/tmp"}
    overlay = {"spec": {"containers": [own], "terminationGracePeriodSeconds": 7}}
    process, notes = plan_of(tmp_path, {"pod_overlay": overlay})
    assert (process.argv, process.env["A"], process.cwd, process.grace_s) == (("run", "x"), "1", "/tmp", 7)
    assert notes == []


def test_a_volume_that_only_overlays_speak_of_is_mounted_here(tmp_path: Path) -> None:
    overlay = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/mnt/v"}]}
    process, notes = plan_of(tmp_path, {"pod_overlay": overlay, "container_overlay": mounts})
    assert [bind.target for bind in process.binds] == ["/mnt/v"]
    assert notes == []


def test_a_container_that_an_overlay_adds_is_said_not_to_run(tmp_path: Path) -> None:
    overlay = {
        "spec": {"containers": [{"name": "proxy", "image": "x"}], "initContainers": [{"name": "get", "image": "x"}]}
    }
    _, notes = plan_of(tmp_path, {"pod_overlay": overlay, "replicas": 2})
    assert notes == [
        'local runs do not start container "proxy" of pod_overlay of "p"',
        'local runs do not start container "get" of pod_overlay of "p"',
    ]


def test_an_overlay_of_a_step_is_said_not_to_count(tmp_path: Path) -> None:
    overlay = {"spec": {"initContainers": [{"name": "fetch", "args": ["x"]}]}}
    _, notes = plan_of(tmp_path, {"pod_overlay": overlay}, prepare={"fetch": {"command": ["get"]}})
    assert notes == ['local runs ignore the settings of step "fetch" in pod_overlay of "p"']


def test_what_a_process_does_not_see_of_its_overlay_is_told(tmp_path: Path) -> None:
    overlay = {"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}, "envFrom": [{"secretRef": {"name": "s"}}]}
    _, notes = plan_of(tmp_path, {"container_overlay": overlay}, is_same=False)
    assert notes == ['local runs ignore `envFrom`, `lifecycle` in the overlay of process "p"']
