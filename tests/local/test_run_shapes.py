"""What does not fit the shape of a run's file is named by its place."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.local.run_shapes import PLAN, STATE, misfit

PROCESS: dict[str, Any] = {"slot": 0, "name": "a", "group": "", "pod": "a", "phase": "running", "ready": True}
PROCESS |= {"restarts": 0, "status": None}
RUN: dict[str, Any] = {"phase": "running", "started": 1.5, "processes": [PROCESS]}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"started": 1, "what a later version says": [None]}, ""),
        ({"phase": None}, "phase is none"),
        ({"started": True}, "started is True"),
        ({"processes": {}}, "processes is a map"),
        ({"processes": [PROCESS, PROCESS]}, "processes[1].slot is 0"),
        ({"processes": [{**PROCESS, "ready": 1}]}, "processes[0].ready is 1"),
        ({"processes": [{}]}, "processes[0] lacks slot"),
        ({"survivors": [1, "2"]}, "survivors[1] is '2'"),
    ],
)
def test_a_state_fits_or_is_said_where_it_does_not(changes: dict[str, Any], why: str) -> None:
    assert misfit({**RUN, **changes}, STATE) == why


def test_a_file_that_lacks_everything_says_what_first() -> None:
    assert (misfit({}, PLAN), misfit([], STATE)) == ("it lacks processes", "it is []")
