"""The remover deletes only our folders, and no attack makes it touch anything else (`remover_attacks`)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.system import remover
from tests.namespace import run_alone
from tests.system.remover_attacks import ATTACKS

NO_MARKER = "NotOurs: symph may not have made this folder: it has no .symph.json"
OTHER_MARKER = "NotOurs: its .symph.json is damaged or belongs to another folder"
LINK = "NotOurs: it is a link or not a folder"
OUT = ["NotOurs: '..'", "NotOurs: '..'", "NotOurs: '1/../../../canary'", "NotOurs: '.'", "NotOurs: ''", "NotOurs: ''"]
# The remover's answer to each attack, and True if the run's folder is still in place afterwards.
EXPECTED: dict[str, tuple[object, bool]] = {
    "plain": ([], False),
    "another_stays": ([[], True], False),
    "no_marker": (NO_MARKER, True),
    "copied_marker": (OTHER_MARKER, True),
    "empty_marker": (OTHER_MARKER, True),
    "linked_marker": (NO_MARKER, True),
    "hard_linked_marker": (OTHER_MARKER, True),
    "piped_marker": (OTHER_MARKER, True),
    "run_is_a_link": ([LINK, True], True),
    "experiment_is_a_link": ([LINK, True], True),
    "home_is_a_link": (LINK, True),
    "names_that_lead_out": ([f"{start} is not a folder name" for start in OUT], True),
    "group_writable": ("NotOurs: other users may write there", True),
    "somebody_elses": ("NotOurs: it belongs to user 12345", True),
    "mounted_inside": ("Conflict: something is mounted in the folder", True),
    "mounted_inside_unseen": (["volumes/x/y: Device or resource busy"], True),
    "mounted_and_closed": ([["volumes: Device or resource busy"], 0o500], True),
    "mounted_over": ("NotOurs: something is mounted there", True),
    "parts_through_a_link": ([1, True, False], True),
    "somebody_elses_home": (f"{NO_MARKER} {NO_MARKER}", False),
    "empty_home_becomes_ours": ([], False),
    "closed_folders": (0, False),
    "maker_died": ([[], False], True),
    "remover_died": ([], False),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Return the result of every attack, each tried once on a machine of its own."""
    folder = tmp_path_factory.mktemp("attacks", numbered=True)
    # The folders above it are closed to the ordinary user of one attack.
    for above in (folder, *folder.parents):
        if above.samefile(tempfile.gettempdir()):
            break
        if above.stat().st_uid == os.geteuid():
            above.chmod(0o755)
    reports: dict[str, dict[str, Any]] = json.loads(run_alone("tests.system.remover_attacks", str(folder)))
    return reports


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_reaches_the_canary(told: dict[str, dict[str, Any]], name: str) -> None:
    said, is_there = EXPECTED[name]
    if name == "somebody_elses" and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    assert told[name] == {"said": said, "canary": 2, "run": is_there}


def test_what_is_made_is_its_owners_alone_and_bears_its_marker_first(tmp_path: Path) -> None:
    run = remover.make(tmp_path / "state" / "local", "rl", "1")
    places = [run, run.parent, run.parent.parent, tmp_path / "state"]
    assert [path.stat().st_mode & 0o777 for path in places] == [0o700] * 4
    assert json.loads((run / remover.MARKER).read_text()) == {"symph": "local", "names": ["rl", "1"]}
    assert [path.name for path in run.iterdir()] == [remover.MARKER]
    with pytest.raises(Conflict, match="already exists"):
        remover.make(tmp_path / "state" / "local", "rl", "1")
    assert remover.make(tmp_path / "state" / "local", "rl", "1", exist_ok=True) == run


def test_where_no_folder_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolFailed, match=r"cannot create the folder: (Not a directory|File exists)"):
        remover.make(tmp_path / "file" / "local", "rl", "1")
