"""Files of a run are decoded strictly, and tell where the run lives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from symphony_charts.errors import ToolFailed
from symphony_charts.local.run_files import LIVENESS_LOCK, run_location, write_identity
from symphony_charts.local.run_state import read_plan, read_state, write_record
from symphony_charts.system import files
from symphony_charts.system.file_locks import hold_liveness_lock
from symphony_charts.system.files import FileSystem
from tests.local.records import plan_of, planned

PROCESS: dict[str, Any] = {"slot": 0, "name": "a", "group": "", "pod": "a", "phase": "running", "ready": True}
PROCESS |= {"restarts": 0, "status": None}
RUN: dict[str, Any] = {"phase": "running", "started": 1.5, "processes": [PROCESS]}
FAULTS: dict[str, dict[str, Any]] = {
    "$.phase": {"phase": None},
    "$.started": {"started": True},
    "$.processes": {"processes": {}},
    "processes[1].slot is 0": {"processes": [PROCESS, PROCESS]},
    "$.processes[0].ready": {"processes": [{**PROCESS, "ready": 1}]},
    "$.processes[0].phase": {"processes": [{**PROCESS, "phase": "resting"}]},
    "required field `slot`": {"processes": [{}]},
    "$.processes[0].wrapper": {"processes": [{**PROCESS, "wrapper": {"pid": -1, "start": 1}}]},
    "$.survivors[1]": {"survivors": [1, "2"]},
    "failed names an unknown process": {"failed": {"name": "a", "status": 1, "slot": 1}},
}


@pytest.mark.parametrize("place", FAULTS)
def test_a_fault_in_a_state_is_named_by_its_place(place: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({**RUN, **FAULTS[place]}))
    with pytest.raises(ToolFailed) as caught:
        read_state(tmp_path / "state.json")
    assert "state.json of a run of" in caught.value.what
    assert place in caught.value.what


@pytest.mark.parametrize(
    ("process", "changes", "fault"),
    [
        ({"waits": [{"slot": 1, "until": "ready"}]}, {}, "processes[0].waits names an unknown process"),
        ({"slot": 1}, {}, "processes[0].slot is 1"),
        ({}, {"done_when": [-1]}, "done_when names an unknown process"),
        ({}, {"ports": {"s": "80"}}, "$.ports[...]"),
    ],
)
def test_a_fault_in_a_plan_is_named_by_its_place(
    process: dict[str, Any], changes: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    data = {**msgspec.to_builtins(plan_of(planned())), **changes}
    data["processes"] = [{**data["processes"][0], **process}]
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(ToolFailed) as caught:
        read_plan(tmp_path / "plan.json")
    assert fault in caught.value.what


def test_keys_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({**RUN, "started": 1, "news": [None]}))
    assert read_state(tmp_path / "state.json").started == 1.0


def test_a_plan_with_paths_that_are_no_utf8_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = plan_of(planned(), folder="/tmp/\udce9", started_in="/é")
    write_record(tmp_path / "plan.json", plan)
    assert read_plan(tmp_path / "plan.json") == plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rl" / "1"
    folder.mkdir(parents=True)
    write_identity(folder)
    return folder


def seen(folder: Path, **machine: object) -> str:
    path = folder / "identity.json"
    data = json.loads(path.read_text())
    data["machine"] |= machine
    path.write_text(json.dumps(data))
    return run_location(folder).verdict


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "symphony_charts.local.run_files.file_system_of", lambda _: FileSystem(type="nfs4", options=frozenset())
    )


ELSEWHERE = {"boot_id": "b", "machine_id": "m", "host": "node2"}


def test_this_boot_and_namespace_are_here(folder: Path) -> None:
    assert seen(folder) == "here"


@pytest.mark.parametrize("change", [{"boot_id": "b"}, {"pid_namespace": 1}, {"init_start": 1}, ELSEWHERE])
def test_what_holds_its_life_lives_elsewhere(folder: Path, change: dict[str, object]) -> None:
    descriptor = hold_liveness_lock(folder / LIVENESS_LOCK)
    assert descriptor is not None
    assert seen(folder, **change) == "elsewhere"
    os.close(descriptor)
    assert seen(folder) == "lost"


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("change", "verdict"), [({"boot_id": "b"}, "lost"), ({"pid_namespace": 1}, "lost"), (ELSEWHERE, "unknown")]
)
def test_on_a_network_file_system_only_this_machine_can_have_lost_it(
    folder: Path, change: dict[str, object], verdict: str
) -> None:
    assert seen(folder, **change) == verdict


def test_a_copy_of_a_run_is_lost(folder: Path) -> None:
    copy = folder.parent.parent / "copies" / "rl" / "1"
    copy.mkdir(parents=True)
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert run_location(copy).verdict == "lost"


def test_the_identity_of_another_run_is_none(folder: Path) -> None:
    other = folder.rename(folder.parent / "2")
    assert run_location(other).verdict == "lost"


@pytest.mark.parametrize(("is_held", "verdict"), [(True, "elsewhere"), (None, "unknown"), (False, "lost")])
def test_a_run_without_an_identity_is_lost_only_if_nothing_holds_its_life(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool | None, verdict: str
) -> None:
    (folder / "identity.json").write_text("")
    monkeypatch.setattr("symphony_charts.local.run_files.is_liveness_lock_held", lambda _: is_held)
    assert run_location(folder).verdict == verdict


def test_the_kernel_says_on_which_file_system_a_path_is(tmp_path: Path) -> None:
    assert files.file_system_of(Path("/proc")).type == "proc"
    assert files.file_system_of(tmp_path).is_local
