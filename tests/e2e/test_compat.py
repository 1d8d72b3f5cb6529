"""An unchanged script of Symphony's times on a real cluster: it launches, looks, replaces and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.programs import Programs
from tests.tools import HELM_VERSIONS, helm

_SCRIPT = """
import sys, time
from symphony import Cluster
from symphony.errors import ResourceExistsError

cluster = Cluster.new("kube", namespace=sys.argv[1])
exp = cluster.new_experiment("old")
work = "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit()); "
work += "print('port', os.environ['SYMPH_REPLAY_PORT'], flush=True); time.sleep(600)"
learner = exp.new_process("learner", container_image="python:3.12", command="python", args=["-c", work])
learner.binds("replay")
learner.exposes("tensorboard")
agent = exp.new_process_group("pack").new_process("agent", container_image="python:3.12", args=["python", "-c", "1"])
agent.connects("replay")
cluster.launch(exp)
for call in (lambda: cluster.launch(exp), lambda: cluster.delete("nobody")):
    try:
        call()
    except (ResourceExistsError, ValueError) as error:
        print(type(error).__name__)

def eventually(check):
    deadline = time.monotonic() + 60
    while not (found := check()):
        assert time.monotonic() < deadline, check()
        time.sleep(0.2)
    return found

print(cluster.list_experiments())
eventually(lambda: "running" in cluster.describe_experiment("old")[None]["learner"]["State"])
print(sorted(map(str, cluster.describe_experiment("old"))), cluster.find_process("old", "agent"))
print(eventually(lambda: cluster.get_log("old", "learner").strip()))
cluster.external_url("old", "tensorboard")
cluster.launch(exp, force=True)
print(cluster.list_experiments())
cluster.delete("old")
eventually(lambda: not cluster.list_experiments())
"""


@pytest.mark.parametrize("version", [*HELM_VERSIONS, None])
def test_a_script_of_symphonys_times_runs_on_a_cluster(
    version: str | None, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "old.py").write_text(_SCRIPT)
    # Without helm the same objects are applied; PATH then holds only the system's programs.
    env = {**programs.environment(), "SYMPH_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    env |= {"HELM_BIN": str(helm(version))} if version else {}
    argv = [sys.executable, "-m", "symphony_charts.compat", str(tmp_path / "old.py"), namespace]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ResourceExistsError",
        "MissingError",
        "['old']",
        "['None', 'pack'] ['pack']",
        "port 7001",
        "['old']",
    ]
