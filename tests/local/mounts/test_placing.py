"""Files and folders at the pod's paths, case by case, on a machine of canaries (`placing_cases`).

A process writes in its working folder, sees mounts below it, and leaves nothing on the machine but what it wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.local.mounts.placing_cases import CASES
from tests.namespace import ALONE

_NONE, _SEALED, _DENIED = "No such file or directory", "Read-only file system", "Permission denied"
# Messages of cases that are refused before anything starts; `{}` is the folder of the case.
REFUSED = {
    "at_a_loop": ["cannot mount at /home/me/loop: /home/me/loop is a broken link"],
    "folder_on_file": ["/home/me/exp/old.txt is a file on this machine, and the volume is a folder"],
    "file_on_folder": ["/home/me/real is a folder on this machine, and the volume is a file"],
    "the_root_itself": ["cannot mount at /, the root of this machine"],
    "in_proc": ["cannot create /proc/x on this machine: /proc accepts no new entries"],
    "no_source": ["cannot mount {}/0 at /data: No such file or directory"],
    "two_faults_at_once": [
        "cannot mount {}/1 at /data: No such file or directory",
        "cannot mount at /, the root of this machine",
    ],
    "sub_path_that_leads_out": ["cannot mount {}/0/a/exp at /data: a link leads out of the volume"],
}
# Mount points that really exist during the run, for root and for an ordinary user.
MADE = {
    "at_the_root": (["/data"], []),
    "in_etc": (["/etc/secrets", "/etc/symph"], []),
    "in_an_image": (["/home/ray"], []),
    "two_below_mnt": (["/mnt/x"], []),
    "below_opt": (["/opt/x"], []),
    "below_the_cwd": (["/home/me/exp/out"],) * 2,
    "below_home": (["/home/me/work"],) * 2,
    "below_tmp": (["/tmp/x"],) * 2,
    "at_a_dangling_link": (["/home/me/nowhere"],) * 2,
    "new_file": (["/home/me/exp/new.txt"],) * 2,
    "new_file_in_etc": (["/etc/my.conf"], []),
    "nested": (["/mnt/a"], []),
    "nested_read_only": (["/mnt/a"], []),
    "mounts_in_the_source": (["/data"], []),
    "mounts_in_the_source_read_only": (["/data"], []),
    "source_without_devices_read_only": (["/data"], []),
    "sub_path": (["/data"], []),
}
# Contents of each target that is not a folder with the volume's one file.
FOUND: dict[str, dict[str, object]] = {
    "file_on_file": {"/home/me/exp/old.txt": "content"},
    "new_file": {"/home/me/exp/new.txt": "content"},
    "new_file_in_etc": {"/etc/my.conf": "content"},
    "nested": {"/mnt/a/b": ["c", "of-volume"]},
    "nested_read_only": {"/mnt/a/b": ["c", "of-volume"]},
    "mounts_in_the_source": {"/data": ["below"]},
    "mounts_in_the_source_read_only": {"/data": ["below", "wrote"]},
    "sub_path": {"/data": []},
}
# Folders in which an ordinary user cannot write, as before; with a skeleton, the error differs.
COVERED = {
    "root": (*(name for name, case in CASES.items() if case[0][1] == "/data"),),
    "etc": ("in_etc", "new_file_in_etc"),
}


def attempt(folder: Path, *words: str, cases: str = "placing_cases") -> dict[str, Any]:
    """Return the results of all cases, each tried once on a machine of its own."""
    argv = [*ALONE, "--mount-proc", "--propagation", "private", sys.executable]
    argv += ["-m", "tests.local.mounts.canary_machine", str(folder), f"tests.local.mounts.{cases}", *words]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    reports: dict[str, Any] = json.loads(done.stdout)
    return reports


def check_case(name: str, user: str, report: dict[str, Any]) -> None:
    """Compare the result of a case with the tables above."""
    place = f"/scratch/state/{name}"
    assert report["said"] == ([text.format(place) for text in REFUSED[name]] if name in REFUSED else "")
    # Nothing of it is left on the machine, and nothing was lost there.
    assert (report["left"], report["lost"], report["stuck"], report["full"]) == ([], [], "", ["mine"])
    if name in REFUSED:
        assert (report["status"], report["made"]) == (125, [])
        return
    seen, is_root = report["seen"], user == "root"
    assert report["made"] == MADE.get(name, ([], []))[0 if is_root else 1]
    # Its files are where it wrote them, and mounts of the machine are visible.
    assert (seen["cwd"], seen["home"], seen["disk"], seen["data"]) == (True, True, "disk", "data")
    for number, (_, at, mode) in enumerate(CASES[name]):
        assert seen[at] == [FOUND.get(name, {}).get(at, ["of-volume"]), True if mode == "rw" else _SEALED]
        # Two cases share the source with mounts; the first of them writes there.
        is_written = mode == "rw" or name == "mounts_in_the_source_read_only"
        assert any(word in str(report["volumes"][number]) for word in ("wrote", "written")) == is_written
    if name.startswith("mounts_in_the_source"):
        assert seen["below"] == ["below", _SEALED if name.endswith("read_only") else True]
    # Folders are as writable as before, for every user.
    denied = {key: _SEALED if name in cases else _DENIED for key, cases in COVERED.items()}
    assert seen["etc"] == ["3", True if is_root else denied["etc"]]
    assert seen["root"] == (True if is_root else denied["root"])
    assert is_root or seen["user"][1] == "0" * 16


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the results of all cases for an ordinary user; those of root are among the heavy tests."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a machine with other users on it")
    return attempt(tmp_path_factory.mktemp("machine"), "ordinary")


@pytest.mark.parametrize("name", CASES)
def test_a_process_sees_its_volumes_and_loses_nothing(name: str, reports: dict[str, dict[str, Any]]) -> None:
    check_case(name, "ordinary", reports[name])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")
def test_a_point_above_one_that_is_being_made_is_not_forgotten(tmp_path: Path) -> None:
    assert attempt(tmp_path, cases="making_cases") == {"left": []}
