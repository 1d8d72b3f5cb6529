"""Files of a run are decoded strictly, and a fault names its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from symphony_charts.errors import ToolFailed
from symphony_charts.local.run_state import read_plan, read_state, write_record
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
    "failed names no process": {"failed": {"name": "a", "status": 1, "slot": 1}},
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
        ({"waits": [{"slot": 1, "until": "ready"}]}, {}, "processes[0].waits names no process"),
        ({"slot": 1}, {}, "processes[0].slot is 1"),
        ({}, {"done_when": [-1]}, "done_when names no process"),
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
