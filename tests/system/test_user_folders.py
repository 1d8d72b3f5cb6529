"""State and runtime folders are private: no planted folder, link, pipe or name is used (`runtime_attacks`)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from symphony_charts.local.machine.health import examine
from tests.namespace import run_alone
from tests.system.runtime_attacks import ATTACKS

START = "cannot use"
PLACE = " for running experiments: "
EXPECTED: dict[str, object] = {
    "absent": ["held", 0o700],
    "open_to_others": f"{START} run{PLACE}it belongs to you with mode 0755; it must be yours with mode 0700",
    "link_to_a_folder_of_ours": f"{START} run{PLACE}it is a link or not a folder",
    "a_file": f"{START} run{PLACE}File exists",
    "somebody_elses": f"{START} run{PLACE}it belongs to user 12345 with mode 0777; it must be yours with mode 0700",
    "hard_linked_lock": f"{START} gpus.lock{PLACE}it is not a plain file, or not only yours",
    "piped_lock": f"{START} gpus.lock{PLACE}it is not a plain file, or not only yours",
    "linked_lock": f"{START} gpus.lock{PLACE}it is a link",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the result of every attack, each tried once on a machine of its own."""
    reports: dict[str, object] = json.loads(
        run_alone("tests.system.runtime_attacks", str(tmp_path_factory.mktemp("run")))
    )
    return reports


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_done_through_what_others_may_have_planted(told: dict[str, object], name: str) -> None:
    if name == "somebody_elses" and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    assert told[name] == [EXPECTED[name], ["precious"], "precious"]


def test_the_doctor_names_a_runtime_folder_of_others(private_places: Path) -> None:
    (private_places / "run").mkdir()
    (private_places / "run").chmod(0o750)
    [found] = [capability for capability in examine() if capability.name == "runtime folder"]
    assert (found.status, "mode 0750" in found.detail, "SYMPH_RUNTIME_DIR" in found.next) == ("missing", True, True)
