"""Faults of Symphony's networking, local backends, configuration and dumps, by their number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.engine import Cluster
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.integrations.symphony.subproc import SubprocManager
from tests.compat.bugs import container, two
from tests.compat.conftest import Script
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("symphony", "own_state")


def foreground(**options: Any) -> Any:
    return Cluster.new("subproc", **options)


def test_29_a_binder_is_given_an_address_that_it_can_bind() -> None:
    exp, learner, agent = two()
    learner.binds("replay")
    agent.connects("replay")
    own = {one["name"]: one for one in container(exp, "learner")["env"]}
    assert own["SYMPH_REPLAY_HOST"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert "SYMPH_REPLAY_HOST" not in {one["name"] for one in container(exp, "agent")["env"]}


def test_31_a_slow_login_shell_does_not_keep_a_process_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".bashrc").write_text("sleep 30\n")
    (tmp_path / ".profile").write_text("sleep 30\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    began = time.monotonic()
    cluster = foreground(stdout_mode="none", stderr_mode="none")
    exp = cluster.new_experiment("quick")
    exp.new_process("p", cmd="echo up")
    cluster.launch(exp)
    assert time.monotonic() - began < 15


def test_31_the_start_folder_is_entered_and_a_dead_process_is_not_live(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    cluster: Any = Cluster.new("tmux")
    exp = cluster.new_experiment("rl", preamble_cmds="echo ready")
    exp.new_process("p", cmds=["pwd"], start_dir=str(tmp_path / "here"))
    exp.new_process("q", cmds=["sleep 60"])
    cluster.launch(exp)
    eventually(lambda: cluster.describe_experiment("rl")[None]["p"]["status"] not in ("live", "waiting"))
    assert cluster.describe_experiment("rl")[None]["q"] == {"status": "live"}
    # The last output of a process may reach its log after its end is visible.
    eventually(lambda: cluster.get_log("rl", "p") == ["ready", str(tmp_path / "here")])


def test_32_declared_variables_win_over_the_scripts_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    monkeypatch.setenv("SYMPH_A_PORT", "1")
    cluster = foreground(stdout_mode="file", stderr_mode="file", log_dir=tmp_path / "logs")
    exp = cluster.new_experiment("rl")
    process = exp.new_process("p", cmd="echo $CUDA_VISIBLE_DEVICES $SYMPH_A_PORT")
    process.set_envs({"CUDA_VISIBLE_DEVICES": "1"})
    process.exposes({"a": 7777})
    cluster.launch(exp)
    assert (tmp_path / "logs" / "p.out").read_text() == "1 7777\n"


def test_32_a_manager_gives_declared_variables_and_kills_every_child_that_will_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "the script's own")
    manager = SubprocManager("file", "stdout", tmp_path)
    for name in ("a", "b"):
        manager.launch(name, "trap '' TERM; echo $WORD; sleep 60 & wait; wait", {"WORD": name})
    eventually(lambda: [(tmp_path / f"{name}.out").read_text() for name in ("a", "b")] == ["a\n", "b\n"], 60)
    manager.kill_all()
    assert manager.poll_all() == {"a": -signal.SIGKILL, "b": -signal.SIGKILL}


def test_32_a_failure_ends_the_others_and_is_the_managers_answer() -> None:
    manager = SubprocManager("none", "none")
    manager.launch("bad", "exit 3")
    manager.launch("long", "sleep 60")
    assert manager.join() == 3
    assert manager.poll("long") == -signal.SIGTERM


def test_32_a_script_that_is_told_to_end_ends_its_children_and_does_not_claim_success(tmp_path: Path) -> None:
    code = (
        "from symphony_charts.integrations.symphony.subproc import SubprocManager as M\n"
        "m = M('none', 'none'); m.launch('p', 'sleep 61'); print(m.processes['p'].pid, flush=True); m.join()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout
        child = int(script.stdout.readline())
        script.send_signal(signal.SIGTERM)
        assert script.wait(20) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_32_a_failing_experiment_in_the_foreground_is_the_scripts_failure(script: Script, tmp_path: Path) -> None:
    cluster = foreground(stdout_mode="none", stderr_mode="none")
    exp = cluster.new_experiment("rl")
    exp.new_process("p", cmd="exit 3")
    with pytest.raises(CheckFailed, match="p"):
        cluster.launch(exp)
    file = tmp_path / "s.py"
    file.write_text(
        "from symphony import Cluster\nc = Cluster.new('subproc')\ne = c.new_experiment('rl')\n"
        "e.new_process('p', cmd='echo so; exit 3')\nc.launch(e)\nprint('never')\n"
    )
    done = script(file)
    assert (done.returncode, done.stdout) == (3, "p | so\n")


def test_the_docker_backend_is_refused_with_the_alternative() -> None:
    with pytest.raises(UsageError, match=r"no docker backend(.|\n)*Cluster.new\('tmux'\)"):
        Cluster.new("docker")
    with pytest.raises(ModuleNotFoundError, match=r"Cluster.new\('kube'\)"):
        import symphony.docker  # noqa: F401


def test_36_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    from symphony_charts.kubernetes.client import KubeApi

    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    with KubeApi(config) as api:
        assert api.namespace == "default"
