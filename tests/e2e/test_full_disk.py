"""A full disk is named by every verb that meets it, and costs a run nothing but what was written meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.namespace import run_alone

pytestmark = pytest.mark.slow


def test_a_full_disk_is_named_and_the_run_goes_on(private_places: Path) -> None:
    told = json.loads(run_alone("tests.e2e.full_disk", str(private_places)))
    assert told["before"][0] == 0
    for verb, (status, said) in told["full"].items():
        assert (verb, status, "is full (no space is left)" in said, "df -h" in said) == (verb, 0, True, True)
    status, said = told["up"]
    assert (status, said.count("error: "), "error: the disk is full" in said) == (6, 1, True)
    assert "other" not in told["left"]
    assert told["logged"] >= 10000
    assert told["after"] == [0, ""]
    assert (told["down"][0], told["states"]) == (0, ["stopped"])
