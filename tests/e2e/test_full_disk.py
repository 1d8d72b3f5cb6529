"""Every verb that meets a full disk names it, and a run loses only the data written meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.namespace import run_alone


@pytest.mark.slow
def test_a_full_disk_is_named_and_the_run_goes_on(private_places: Path) -> None:
    told = json.loads(run_alone("tests.e2e.full_disk", str(private_places)))
    assert told["before"][0] == 0
    for verb, (status, said) in told["full"].items():
        assert (verb, status, "is full (no space left)" in said, "df -h" in said) == (verb, 0, True, True)
    status, said = told["up"]
    assert (status, said.count("error: "), "error: the disk is full" in said) == (6, 1, True)
    assert "other" not in told["left"]
    assert told["logged"] >= 10000
    assert told["after"] == [0, ""]
    assert (told["down"][0], told["states"]) == (0, ["stopped"])


@pytest.mark.parametrize("verb", ["run", "up"])
def test_a_process_that_succeeds_on_a_full_disk_has_succeeded(private_places: Path, verb: str) -> None:
    told = json.loads(run_alone("tests.e2e.full_disk", str(private_places), verb, "0"))
    assert (told["code"], told["starts"], told["noted"]) == (0, 1, 0)


@pytest.mark.parametrize("verb", ["run", "up"])
def test_a_failure_on_a_full_disk_keeps_its_status_and_names_the_disk(private_places: Path, verb: str) -> None:
    told = json.loads(run_alone("tests.e2e.full_disk", str(private_places), verb, "3"))
    assert (told["code"], told["starts"], told["noted"]) == (3, 2, 3)
    full = f"the disk of {private_places}/state/local is full: no space left (ENOSPC)"
    assert f'error: process "train" failed (exit status 3) after 1 restarts: {full}' in told["said"]
