"""Many ends of processes, stubborn trees and generated experiments in real tmux; `make test` runs a few of each.

`SYMPH_SOAK` runs five times as many.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.local import tmux_client
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import Run
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from symphony_charts.system import processes
from tests.local.generated import generated
from tests.local.parity.compare import compare
from tests.local.runs import log_of, python, start, supervisor_pid, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]

_SCALE = 5 if "SYMPH_SOAK" in os.environ else 1
# Records the moment of its death and dies: with status N, or by signal N - 128 if N is above 128.
_DIE = """
import os, sys, time
end = int(sys.argv[1])
# Nothing while others are still being started, or not all at the same moment.
time.sleep(float(sys.argv[3]))
with open(sys.argv[2], "w") as file:
    file.write(str(time.time()))
if end > 128:
    os.kill(os.getpid(), end - 128)
    time.sleep(60)
os._exit(end)
"""
_FATAL = [int(number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT)]
_STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(300)"]
subprocess.Popen(sleep)
subprocess.Popen(["nohup", *sleep], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.Popen(["setsid", *sleep])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
print("ready", flush=True)
time.sleep(300)
"""


def _statuses(batch: int) -> list[int]:
    return [(batch * 50 + number) % 120 if number % 3 else 128 + _FATAL[number % len(_FATAL)] for number in range(50)]


def test_many_deaths_have_their_statuses(tmp_path: Path) -> None:
    late: tuple[list[float], list[float]] = ([], [])
    wrong = []
    for batch in range(4 * _SCALE):
        wanted = _statuses(batch)
        data = {
            f"p{number}": {
                "command": [sys.executable, "-I", "-S", "-c", _DIE, str(status), str(tmp_path / f"{batch}.{number}")],
                "args": [str(0 if batch % 2 else 1 + number / 25)],
                "restart": "never",
                "retries": 0,
                "local": {"tty": number % 2 == 0},
            }
            for number, status in enumerate(wanted)
        }
        run = start(tmp_path, f"deaths-{batch}", processes=data, on_failure="continue")
        local_run.wait(run)
        for number, item in enumerate(run.state().processes):
            if item.status != wanted[number]:
                wrong.append((batch, number, wanted[number], item.status))
            late[batch % 2].append((item.ended or 0.0) - float((tmp_path / f"{batch}.{number}").read_text()))
    for when, found in zip(("", " during the start"), late, strict=True):
        middle, most, all_of = (sorted(found)[int(len(found) * share) - 1] * 1000 for share in (0.5, 0.99, 1))
        sys.stdout.write(f"known after death{when}: median {middle:.1f} ms, 99 % {most:.1f} ms, all {all_of:.1f} ms\n")
    assert wrong == []


@pytest.mark.parametrize("victim", ["both", "nothing", "tmux", "supervisor"][: None if _SCALE > 1 else 1])
def test_no_tree_survives_one_down(tmp_path: Path, victim: str) -> None:
    tree = {**python(_STUBBORN), "grace_period": 1}
    run = start(tmp_path, processes={f"p{number}": tree for number in range(3)})
    until(lambda: all("ready" in log_of(run, f"p{number}") for number in range(3)))
    if victim in ("supervisor", "both"):
        os.kill(supervisor_pid(run), signal.SIGKILL)
        until(lambda: not run.is_supervised)
    if victim in ("tmux", "both"):
        os.kill(tmux_client.server_pid(run.socket), signal.SIGKILL)
    local_run.down(run)
    assert _left(run) == []
    assert run.state().survivors == []


def _left(run: Run) -> list[int]:
    cookie = f"SYMPH_RUN={run.run_id}".encode()
    return [record.pid for record in processes.members(str(run.folder / "scratch"), (), cookie)]


@pytest.mark.parametrize("block", range(4 * _SCALE))
def test_plan_and_manifests_of_generated_experiments_agree(block: int, tmp_path: Path) -> None:
    for seed in range(block * 50, block * 50 + 50):
        result = compare(from_data(generated(seed)), {}, tmp_path, probes=False)
        assert (seed, result.differences) == (seed, ())


@pytest.mark.parametrize("block", range(_SCALE))
def test_a_probe_in_tmux_agrees_with_them(block: int, tmp_path: Path) -> None:
    for seed in range(5000 + block * 12, 5012 + block * 12):
        result = compare(from_data(generated(seed)), {}, tmp_path, probes=True)
        assert (seed, result.differences) == (seed, ())


def test_a_secret_is_nowhere_to_be_read(tmp_path: Path) -> None:
    secret = "t0psecret-value"  # noqa: S105 - made up
    (tmp_path / "token").write_text(secret)
    experiment = from_data(
        {"name": "x", "secrets": ["token"], "processes": {"a": {**python("input()"), "env": {"K": secret}}}}
    )
    run = local_run.up(experiment, allocate(experiment), folder=tmp_path)
    assert run is not None
    until((run.process_dir(0) / "pid").exists)
    asked = (["show-environment", "-g"], ["show-environment", "-t", "symph"], ["capture-pane", "-p", "-S", "-"])
    own = ["tmux", "-S", str(run.socket), "-f", "/dev/null"]
    for words in asked:
        assert secret.encode() not in subprocess.run([*own, *words], capture_output=True, check=True, timeout=20).stdout
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(secret.encode() in command for command in commands)
    for name in ("plan.json", "state.json", "spec.json", "supervisor.log", "up.conf"):
        assert secret.encode() not in (run.folder / name).read_bytes()
    local_run.down(run)
    assert not any(secret.encode() in path.read_bytes() for path in run.folder.rglob("*") if path.is_file())
