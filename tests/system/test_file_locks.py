"""Locks are free as soon as their holders are gone, and are visible from every namespace and mount."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.system import file_locks
from symphony_charts.system.file_locks import experiment_lock, hold_liveness_lock, is_liveness_lock_held
from symphony_charts.system.user_folders import state_dir

HOLD = """
import subprocess, sys
from symphony_charts.system.file_locks import experiment_lock
with experiment_lock("rl", "symph up"):
    subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print("held", flush=True)
    sys.stdin.read()
"""
COUNT = """
import sys, time
from pathlib import Path
from symphony_charts.system.file_locks import experiment_lock
with experiment_lock("rl", "symph up", timeout_s=60):
    number = int(Path(sys.argv[1]).read_text())
    time.sleep(0.02)
    Path(sys.argv[1]).write_text(str(number + 1))
"""


@pytest.fixture
def holder(private_places: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a program that holds the lock of "rl" and has a child that outlives it."""
    argv = [sys.executable, "-c", HOLD]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "held\n"
        yield program
        os.killpg(program.pid, signal.SIGKILL)


def test_a_second_one_is_told_who_has_the_lock(holder: subprocess.Popen[str]) -> None:
    told = rf'another command is changing experiment "rl": symph up \(pid {holder.pid} on .*, since '
    with pytest.raises(Conflict, match=told), experiment_lock("rl", "symph down", timeout_s=0.1):
        raise AssertionError
    # Another experiment is free.
    with experiment_lock("other", "symph up", timeout_s=0):
        assert holder.poll() is None


def test_a_killed_holder_blocks_nobody_even_where_its_child_lives(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with experiment_lock("rl", "symph down", timeout_s=0):
        assert (state_dir() / "locks" / "rl").exists()


def test_of_ten_at_once_each_waits_for_the_one_before(private_places: Path) -> None:
    number = private_places / "number"
    number.write_text("0")
    programs = [subprocess.Popen([sys.executable, "-c", COUNT, str(number)]) for _ in range(10)]
    assert [program.wait(60) for program in programs] == [0] * 10
    assert number.read_text() == "10"


def test_without_locks_in_the_state_folder_those_of_this_machine_hold(
    private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.fcntl

    def lacking(descriptor: int, command: int, argument: bytes = b"") -> object:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if command == fcntl.F_OFD_SETLK and path.is_relative_to(state_dir()):
            raise OSError(errno.ENOLCK, "No locks available")
        return real(descriptor, command, argument)

    # Every file system here supports these locks, so the error of one without them is simulated.
    monkeypatch.setattr(fcntl, "fcntl", lacking)
    with experiment_lock("rl", "symph up"):
        with pytest.raises(Conflict, match="symph up"), experiment_lock("rl", "symph down", timeout_s=0):
            raise AssertionError
        assert len(list((private_places / "run").glob("*.rl.lock"))) == 1
    assert not file_locks.is_locked_across_machines()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_locked(private_places: Path, kind: str) -> None:
    place = state_dir() / "locks" / "rl"
    place.parent.mkdir(parents=True)
    if kind == "link":
        place.symlink_to("/dev/null")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(ToolFailed, match="cannot use the lock file rl"), experiment_lock("rl", "symph up"):
        raise AssertionError


def test_a_life_is_held_until_the_last_of_its_holders_is_gone(tmp_path: Path) -> None:
    life = tmp_path / "life"
    assert is_liveness_lock_held(life) is False
    life.touch()
    assert is_liveness_lock_held(life) is False
    first, second = hold_liveness_lock(life), hold_liveness_lock(life)
    assert first is not None
    assert second is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[first]) as heir:
        os.close(first)
        os.close(second)
        assert is_liveness_lock_held(life) is True
        heir.communicate()
    assert is_liveness_lock_held(life) is False


def test_a_life_is_seen_from_another_pid_namespace_and_through_a_read_only_mount(tmp_path: Path) -> None:
    life = tmp_path / "life"
    life.touch()
    look = "import pathlib, symphony_charts.system.file_locks as it\n"
    look += f"print(it.is_liveness_lock_held(pathlib.Path({str(life)!r})))"
    script = f'mount --bind -o ro "{tmp_path}" "{tmp_path}" && ! touch "{tmp_path}/x" && exec "$@"'
    argv = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", script, "sh"]
    if os.geteuid() != 0:
        argv[1:1] = ["--user", "--map-root-user"]
    descriptor = hold_liveness_lock(life)
    assert descriptor is not None
    done = subprocess.run([*argv, sys.executable, "-c", look], capture_output=True, text=True, check=False)
    os.close(descriptor)
    if "unshare failed" in done.stderr:
        pytest.skip("the kernel gives this user no namespaces")
    assert done.stdout == "True\n", done.stderr
