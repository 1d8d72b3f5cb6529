"""Lines of Symphony's scripts run as in the one bash that they were typed into, and end with the script."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.integrations.symphony.kube import KubeExperimentSpec
from symphony_charts.local.runs import live_runs
from tests.compat.conftest import Script
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("own_state")

TMUX = """
import time
from symphony import Cluster
cluster = Cluster.new("tmux", preamble_cmds=["source /no/such/venv", "arr=(one two)", "said() { echo said $1; }"])
exp = cluster.new_experiment("rl")
exp.new_process("a", cmds=["mkdir /proc/no", 'said ${arr[1]}', "set -e", "exec sleep 60"])
cluster.launch(exp)
for _ in range(100):
    if "said two" in (lines := cluster.get_log("rl", "a")):
        break
    time.sleep(0.1)
print(lines)
cluster.delete("rl")
"""

FOREGROUND = """
from symphony import Cluster
cluster = Cluster.new("subproc")
exp = cluster.new_experiment("rl")
exp.new_process("a", cmd="arr=(1 2); false; echo started ${arr[1]}; sleep 300")
cluster.launch(exp)
"""


def test_preamble_and_lines_are_one_bash_that_goes_on_after_a_failure(script: Script, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(TMUX)
    done = script(tmp_path / "run.py")
    assert "'said two'" in done.stdout, done.stderr


@pytest.mark.parametrize("end", ["INT", "TERM", "terminal"])
def test_whatever_ends_the_script_ends_the_experiment(end: str, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(FOREGROUND)
    ours, theirs = pty.openpty()
    argv = ["setsid", "--ctty", sys.executable, "-m", "symphony_charts.compat", str(tmp_path / "run.py")]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs) as launcher:
        os.close(theirs)
        output = b""
        while b"a | started 2" not in output:
            output += os.read(ours, 4096)
        (run,) = live_runs()
        if end != "terminal":
            launcher.send_signal(getattr(signal, f"SIG{end}"))
        else:
            os.close(ours)
        launcher.wait(60)
    eventually(lambda: not run.is_live, 60, "the experiment runs on")
    if end != "terminal":
        os.close(ours)
        assert launcher.returncode == 128 + getattr(signal, f"SIG{end}")


@pytest.mark.parametrize("grouped", [False, True])
def test_what_starts_again_for_ever_is_a_service(grouped: bool) -> None:
    exp = KubeExperimentSpec("rl")
    holder = exp.new_process_group("g") if grouped else exp
    lone = holder.new_process("ps", container_image="ubuntu:22.04", command="serve")
    (holder if grouped else lone).restart_policy("Always")  # type: ignore[union-attr]
    experiment = exp.finish(for_cluster=True)
    process = experiment.groups["g"].processes["ps"] if grouped else experiment.processes["ps"]
    assert process.lifecycle == "service"
    assert KubeExperimentSpec.load_dict(exp.dump_dict()).finish() == experiment


def test_a_dump_of_a_server_is_read() -> None:
    pod = {"data": {"spec": {"restartPolicy": "Always", "containers": []}}}
    process = {"name": "ps", "container_image": "u:1", "pod_yml": pod, "standalone": True}
    services: dict[str, object] = {"binded_services": {}, "connected_services": {}, "exposed_services": {}}
    exp = KubeExperimentSpec.load_dict({"name": "rl", "process_groups": [], "processes": [process | services]})
    assert exp.finish().processes["ps"].lifecycle == "service"


def test_an_edited_pod_may_say_so() -> None:
    exp = KubeExperimentSpec("rl")
    process = exp.new_process("ps", container_image="ubuntu:22.04")
    process.pod_yml.set_attr({"spec": {"restartPolicy": "Always"}})
    assert exp.finish().processes["ps"].lifecycle == "service"
