"""Pids are reused, process identities are not. The tests force pids in their own pid namespace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.local.run_files import supervisor_of
from symphony_charts.system import processes
from symphony_charts.system.processes import ProcessRecord

# Starts one process with pid 1000, ends it and starts a canary there; prints the state of the canary.
REUSE = """
import os, signal, time
from pathlib import Path
from symphony_charts.system import processes as it

def start_at(number):
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
    pid = os.fork()
    if pid == 0:
        signal.pause()
    assert pid == number, pid
    return pid

def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

for _ in range(50):
    record = it.identify(start_at(1000))
    assert it.send_signal(record, signal.SIGCONT)
    with it.verified(record) as held:
        end(1000)
        canary = start_at(1000)
        # Known and held before it died: what is held is not the canary, and neither is what was known.
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        except ProcessLookupError:
            print("gone")
    print(it.is_running(record), it.send_signal(record, signal.SIGKILL))
    print(it.is_running(it.identify(canary)))
    end(canary)
"""


def in_namespace(program: str, *options: str) -> list[str]:
    """Return the lines that a Python program prints in new namespaces."""
    argv = ["unshare", *options, "--", sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def namespaces(need_tool: Callable[[str], str]) -> None:
    need_tool("unshare")
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.skip("the kernel gives this user no pid namespaces")


def test_a_later_holder_of_a_number_is_never_taken_for_the_process_that_had_it(namespaces: None) -> None:
    lines = in_namespace(REUSE, "--pid", "--fork", "--kill-child", "--mount-proc")
    assert lines == ["gone", "False False", "True"] * 50


def test_a_zombie_has_ended() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert processes.identify(pid) is None
    assert not processes.is_running(ProcessRecord(pid=pid, start=0))
    os.waitpid(pid, 0)


def test_a_signal_reaches_the_process_that_was_identified() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert processes.send_signal(processes.identify(process.pid), signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("data", [None, 17, {}, {"pid": 17}, {"pid": "17", "start": 1, "inode": 0}, {"pid": -1}])
def test_what_is_no_record_names_nobody(data: object, tmp_path: Path) -> None:
    (tmp_path / "supervisor.json").write_text(json.dumps(data))
    assert supervisor_of(tmp_path) is None
