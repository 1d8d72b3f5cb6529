"""Mounts of runs, and files at the pod's paths for root.

`make test` tests the usual mounts.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict
from symphony_charts.local import tmux_client
from symphony_charts.local import up as local_run
from symphony_charts.local.run_files import read_json
from symphony_charts.local.runs import Run
from tests.local.mounts.test_placing import attempt, check_case
from tests.local.runs import log_of, start, supervisor_pid, until
from tests.local.test_mounts import FOREVER, SCRATCH, mounted

pytestmark = pytest.mark.slow


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")
def test_processes_see_their_volumes_and_lose_nothing(tmp_path: Path) -> None:
    for name, report in attempt(tmp_path, "root").items():
        check_case(name, "root", report)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_what_the_machine_mounts_and_unmounts_meanwhile_is_seen(user: str, tmp_path: Path) -> None:
    report = attempt(tmp_path, user, cases="propagation_cases")
    assert report["seen"] == ["late", "cat: /home/me/data/f: No such file or directory", "/data"]
    assert not report["leaked"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")
def test_runs_that_make_and_remove_the_same_mount_points_never_disturb_each_other(tmp_path: Path) -> None:
    assert attempt(tmp_path, "8", "8", cases="race_cases") == {"faults": [], "left": []}


@pytest.mark.usefixtures("here")
def test_what_an_editor_saves_meanwhile_is_seen(tmp_path: Path) -> None:
    (tmp_path / "code").write_text("old")
    process = {"cmds": ["while [ ! -e go ]; do sleep 0.05; done; cat code"], **mounted(tmp_path / "out")}
    run = start(tmp_path, volumes=SCRATCH, processes={"a": process}, local={"tty": False})
    (tmp_path / "code.new").write_text("new")
    (tmp_path / "code.new").rename(tmp_path / "code")
    (tmp_path / "go").touch()
    assert local_run.wait(run) == 0
    assert log_of(run, "a") == "new"


@pytest.mark.usefixtures("here")
def test_the_mount_point_of_a_run_that_was_killed_goes_with_the_next_run(tmp_path: Path) -> None:
    at = tmp_path / "out"
    run = start(tmp_path, "first", volumes=SCRATCH, processes={"a": {**FOREVER, **mounted(at)}})
    server = tmux_client.server_pid(run.socket)
    os.kill(supervisor_pid(run), signal.SIGKILL)
    os.kill(server, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{server}").exists())
    assert at.is_dir()
    local_run.wait(start(tmp_path, "second", processes={"a": {"cmds": ["true"]}}))
    assert not at.exists()


@pytest.mark.usefixtures("here")
def test_a_mount_point_into_which_somebody_wrote_is_left_to_them(tmp_path: Path) -> None:
    at = tmp_path / "out"
    run = start(tmp_path, volumes=SCRATCH, processes={"a": {**FOREVER, **mounted(at)}})
    (at / "theirs").write_text("keep")
    local_run.down(run)
    assert (at / "theirs").read_text() == "keep"


@pytest.mark.usefixtures("here")
def test_an_existing_folder_is_no_mount_point_of_ours(tmp_path: Path) -> None:
    at = tmp_path / "out"
    at.mkdir()
    run = start(tmp_path, volumes=SCRATCH, processes={"a": {"cmds": ["true"], **mounted(at)}})
    local_run.wait(run)
    assert at.is_dir()


@pytest.mark.usefixtures("here")
def test_a_volume_above_the_run_itself_hides_none_of_its_files(tmp_path: Path, private_places: Path) -> None:
    (tmp_path / "host").mkdir()
    volumes = {"home": {"type": "host_path", "path": str(tmp_path / "host")}, **SCRATCH}
    both = {"mounts": [{"volume": "home", "at": str(private_places)}, {"volume": "v", "at": f"{private_places}/in"}]}
    process = {
        "cmds": [f"ls {private_places}", f"echo 1 >{private_places}/x", f"echo 2 >{private_places}/in/y"],
        **both,
    }
    run = start(tmp_path, volumes=volumes, processes={"a": process}, local={"tty": False})
    assert local_run.wait(run) == 0, log_of(run, "a")
    assert log_of(run, "a") == "in\n"
    assert sorted(path.name for path in (tmp_path / "host").iterdir()) == ["x"]


@pytest.mark.usefixtures("here")
def test_another_mount_point_needs_a_new_run_and_another_volume_does_not(tmp_path: Path) -> None:
    volumes = {"v": {"type": "empty_dir"}, "w": {"type": "empty_dir"}}

    def begin(folder: Path, **data: object) -> Run:
        return start(folder, "exp", **data)

    def spec(volume: str, at: str) -> dict[str, object]:
        show = {"cmds": [f"findmnt -no SOURCE {tmp_path}/{at}; exec sleep 300"], "grace_period": 1}
        return {"volumes": volumes, "processes": {"a": {**show, **mounted(tmp_path / at, volume)}, "b": FOREVER}}

    run = begin(tmp_path, **spec("v", "out"))
    until(lambda: "volumes/a/v" in log_of(run, "a"))
    assert begin(tmp_path, **spec("w", "out")) == run
    until(lambda: "volumes/a/w" in log_of(run, "a"))
    with pytest.raises(Conflict, match="needs a new run"):
        begin(tmp_path, **spec("w", "other"))


@pytest.mark.usefixtures("here")
def test_what_all_processes_share_is_mounted_once(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    volumes = {"set": {"type": "host_path", "path": str(tmp_path / "set")}}
    same = {**FOREVER, **mounted(tmp_path / "seen", "set", read_only=True)}
    run = start(tmp_path, volumes=volumes, processes={"a": same, "b": same})
    assert not (run.process_dir(0) / "mounts").exists()
    assert [row["at"] for row in read_json(run.folder / "mounts.json")["targets"]] == [f"{tmp_path}/seen"]
    namespaces = set()
    for slot in (0, 1):
        until((run.process_dir(slot) / "pid").exists)
        pid = (run.process_dir(slot) / "pid").read_text().strip()
        namespaces.add(os.readlink(f"/proc/{pid}/ns/mnt"))  # noqa: PTH115 - no path
    assert len(namespaces) == 1
