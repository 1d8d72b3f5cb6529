"""Mounts of whole runs: files at their paths, groups share, mount points are made and removed with their runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.mounts import is_for_mount
from symphony_charts.local.plan.records import Bind
from symphony_charts.local.reload import FileWatch, Watched
from symphony_charts.spec.data import from_data
from tests.local.runs import log_of, start, until
from tests.waiting import is_alive

pytestmark = pytest.mark.usefixtures("here")

SCRATCH = {"v": {"type": "empty_dir"}}
FOREVER = {"command": ["sleep", "300"], "grace_period": 1}


def mounted(at: Path, volume: str = "v", **more: object) -> dict[str, object]:
    return {"mounts": [{"volume": volume, "at": str(at), **more}]}


def test_files_beside_a_new_mount_point_stay_and_the_group_shares_it(tmp_path: Path) -> None:
    at = tmp_path / "out" / "deep"
    writes = {"cmds": [f"echo shared >{at}/x", f"echo model >{tmp_path}/model.pt", "echo log >log.txt"]}
    group = {
        "a": {**writes, **mounted(at)},
        "b": {"cmds": [f"cat {at}/x", "cat model.pt"], "after": ["a"], **mounted(at)},
        # Another pod's mount of the same path, so that each has a namespace of its own.
        "c": {"cmds": [f"ls {tmp_path}"], "after": ["b"]},
    }
    run = start(tmp_path, volumes=SCRATCH, groups={"g": {"processes": group}}, local={"tty": False})
    assert local_run.wait(run) == 0, log_of(run, "b")
    assert log_of(run, "b") == "shared\nmodel\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.txt", "model.pt"]


def test_a_folder_at_the_root_is_there_for_the_process_alone(tmp_path: Path) -> None:
    at = Path("/symph-no-such-folder")
    names = sorted([*os.listdir("/"), at.name])  # noqa: PTH208 - names only
    looks = {"cmds": [f"echo 1 >{at}/x", f"cat {at}/x", "ls -A /", "pwd"], **mounted(at)}
    run = start(tmp_path, volumes=SCRATCH, processes={"a": looks}, local={"tty": False})
    assert local_run.wait(run) == 0, log_of(run, "a")
    one, *seen, folder = log_of(run, "a").splitlines()
    assert (one, sorted(seen), folder) == ("1", names, str(tmp_path))
    assert not at.exists()


def test_a_mount_point_stays_as_long_as_a_run_uses_it(tmp_path: Path) -> None:
    at = tmp_path / "out"
    first = start(tmp_path, "first", volumes=SCRATCH, processes={"a": {**FOREVER, **mounted(at)}})
    second = start(tmp_path, "second", volumes=SCRATCH, processes={"a": {**FOREVER, **mounted(at)}, "b": FOREVER})
    local_run.down(first)
    assert at.is_dir()
    local_run.down(second)
    assert not at.exists()


def test_a_folder_that_is_made_on_demand_is_made_and_stays(tmp_path: Path) -> None:
    data = tmp_path / "their/data"
    volumes = {"v": {"type": "host_path", "path": str(data), "kind": "DirectoryOrCreate"}}
    writes = {"cmds": ["echo kept >/data/x"], **mounted(Path("/data"))}
    run = start(tmp_path, volumes=volumes, processes={"a": writes}, local={"tty": False})
    assert local_run.wait(run) == 0, log_of(run, "a")
    assert ((data / "x").read_text(), data.stat().st_mode & 0o777) == ("kept\n", 0o755)


def test_all_that_cannot_be_shown_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    processes = {
        "a": {"cmds": [f"touch {tmp_path}/started"], **mounted(tmp_path / "file")},
        "b": {"cmds": ["true"], **mounted(tmp_path / "new", "absent")},
    }
    volumes = {**SCRATCH, "absent": {"type": "host_path", "path": str(tmp_path / "absent")}}
    with pytest.raises(SpecError) as caught:
        start(tmp_path, volumes=volumes, processes=processes)
    said = [(problem.path, problem.what) for problem in caught.value.problems]
    assert said == [
        ("processes.a.mounts", f"{tmp_path}/file is a file on this machine, and the volume is a folder"),
        ("processes.b.mounts", f"cannot mount {tmp_path}/absent at {tmp_path}/new: No such file or directory"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_read_only_folder_is_so_for_the_process_that_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "set" / "inner").mkdir(parents=True)
    volumes = {"set": {"type": "host_path", "path": str(tmp_path / "set")}}
    at = tmp_path / "seen"
    # It inherits only its three descriptors, and the one by which `ls` reads.
    write = "(touch {0}/inner/{1}) 2>/dev/null && echo wrote || echo refused; ls /proc/self/fd | wc -l"
    processes = {
        "a": {"cmds": [write.format(at, "a")], **mounted(at, "set", read_only=True)},
        "b": {"cmds": [write.format(at, "b")], **mounted(at, "set")},
        "c": {"cmds": [write.format(at, "c")], **mounted(at, "set", sub_path="new", read_only=False)},
    }
    run = start(tmp_path, volumes=volumes, processes=processes, local={"tty": False})
    local_run.wait(run)
    assert [log_of(run, name) for name in "abc"] == ["refused\n4\n", "wrote\n4\n", "refused\n4\n"]
    assert sorted(path.name for path in (tmp_path / "set").rglob("*")) == ["b", "inner", "new"]


@pytest.mark.parametrize(
    ("binds", "is_simple"),
    [
        ([Bind(source="/run/e/v", target="/data")], True),
        ([Bind(source="/run/e/files/s", target="/etc/secrets", read_only=True)], True),
        ([Bind(source="/set", target="/data", read_only=True)], False),
        ([Bind(source="/run/e/v/a", target="/data", sub_path="a")], False),
        ([Bind(source="/run/e/v", target="/home"), Bind(source="/home/x", target="/data")], False),
        ([Bind(source="/run/e/v", target="/data"), Bind(source="/run/e/w", target="/data/in")], False),
    ],
)
def test_the_program_mount_does_only_what_it_does_right(binds: list[Bind], is_simple: bool) -> None:
    assert is_for_mount(binds, "/run/e") is is_simple


def test_commands_find_a_volume_whose_path_ends_with_a_slash_where_nothing_is_mounted(tmp_path: Path) -> None:
    process = {"command": ["ls", "/data/x"], "mounts": [{"volume": "v", "at": "/data/"}]}
    spec = {"name": "x", "volumes": SCRATCH, "processes": {"a": process}}
    plan = plan_here(from_data(spec), (), tmp_path, "r1", run_dir=tmp_path)
    assert plan.processes[0].argv == ("ls", f"{tmp_path}/volumes/a/v/x")


def test_stopping_finds_everything_of_a_run_whose_state_is_behind_a_link(
    tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (private_places / "a disk").mkdir()
    (private_places / "state").symlink_to(private_places / "a disk")
    monkeypatch.setenv("SYMPH_STATE_DIR", str(private_places / "state"))
    # It belongs to the run by its namespace alone.
    hidden = 'env -i setsid sh -c "echo \\$\\$ >%s; exec sleep 314" </dev/null >/dev/null 2>&1 & sleep 300'
    run = start(tmp_path, processes={"a": {"cmds": [hidden % (tmp_path / "pid")], "grace_period": 1}})
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    pid = int((tmp_path / "pid").read_text())
    local_run.down(run)
    assert not is_alive(pid)


def test_mount_points_that_go_are_no_change_to_watch(tmp_path: Path) -> None:
    watched, source = tmp_path / "watched", tmp_path / "source"
    watched.mkdir()
    source.write_text("settings")
    volumes = {"v": {"type": "host_path", "path": str(source), "kind": "File"}}
    run = start(watched, volumes=volumes, processes={"a": {**FOREVER, **mounted(watched / "settings")}})
    files = FileWatch([Watched(path=watched)], tmp_path / "experiment.yaml")
    local_run.down(run)
    assert not (watched / "settings").exists()
    (watched / "code").touch()
    assert files.wait(run) == {watched / "code"}
