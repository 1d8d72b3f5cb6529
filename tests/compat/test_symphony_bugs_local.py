"""Faults of Symphony's networking, local backends, configuration and dumps, by their number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.compat.errors import ResourceExistsError
from symphony_charts.compat.subproc import SubprocManager
from symphony_charts.engine import Cluster
from symphony_charts.errors import CheckFailed, SpecError
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import live_runs
from symphony_charts.settings.user import SymphonyConfig
from tests.compat.bugs import compiled, container, two
from tests.compat.conftest import Script
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("symphony")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs of these tests stay among themselves and end with them."""
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(tmp_path / "r"))
    yield
    for run in live_runs():
        local_run.down(run)


def foreground(**options: Any) -> Any:
    return Cluster.new("subproc", **options)


def test_26_two_local_experiments_listen_on_one_port_number_each() -> None:
    cluster: Any = Cluster.new("tmux")
    listen = 'exec python3 -c \'import os, socket, time; s = socket.create_server((os.environ["SYMPH_A_HOST"], \
int(os.environ["SYMPH_A_PORT"]))); print(os.environ["SYMPH_A_PORT"], flush=True); time.sleep(60)\''
    for name in ("one", "two"):
        exp = cluster.new_experiment(name)
        exp.new_process("server", cmds=[listen]).binds("a")
        cluster.launch(exp)
    eventually(lambda: [cluster.get_log(name, "server") for name in ("one", "two")] == [["7000"], ["7000"]])


def test_27_one_fixed_port_in_two_pods_is_fine_and_twice_in_one_pod_is_refused() -> None:
    exp, learner, agent = two()
    learner.binds({"a": 7100})
    agent.binds({"b": 7100})
    assert {one["spec"]["ports"][0]["port"] for one in compiled(exp, "Service")} == {7100}
    learner.binds({"c": 7100})
    with pytest.raises(SpecError, match="7100"):
        exp.finish()


def test_28_pinned_ports_stay_when_a_service_is_added() -> None:
    from symphony_charts.spec.services import allocate, pins_of

    exp, learner, _ = two()
    learner.binds(["a", "b"])
    pins = pins_of(allocate(exp.finish()))
    learner.exposes("first-of-all")
    ports = pins_of(allocate(exp.finish(), pins))
    assert (ports["a"], ports["b"], ports["first-of-all"]) == (7000, 7001, 7002)


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
    # What a process wrote last may reach its log after its end is seen.
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
        "from symphony_charts.compat.subproc import SubprocManager as M\n"
        "m = M('none', 'none'); m.launch('p', 'sleep 61'); print(m._children['p'].pid, flush=True); m.join()"
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


def test_33_processes_of_docker_find_each_other_with_and_without_groups(capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    cluster: Any = Cluster.new("docker")
    exp = cluster.new_experiment("rl")
    exp.new_process("server", container_image="u:1").exposes({"a": 7100})
    exp.new_process("client", container_image="u:1").set_env("PRICE", "5 $")
    cluster.launch(exp, dry_run=True)
    services = yaml.safe_load(capsys.readouterr().out)["services"]
    assert services["client"]["environment"]["SYMPH_A_ADDR"] == "server:7100"
    assert services["client"]["environment"]["PRICE"] == "5 $$"
    assert services["server"]["ports"] == ["7100:7100"]


@pytest.mark.parametrize(("name", "text"), [("c.yml", "username: sarah\n"), ("c.json", '{"username": "sarah"}')])
def test_34_a_configuration_file_is_read_as_what_it_is(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    SymphonyConfig().load_config_file(tmp_path / name)
    assert SymphonyConfig().username == "sarah"


def test_35_what_is_saved_at_launch_is_loaded_again(tmp_path: Path) -> None:
    from symphony_charts.settings.saved_experiments import load_experiment

    SymphonyConfig().set_experiment_folder(tmp_path / "saved")
    cluster: Any = Cluster.new("tmux")
    exp = cluster.new_experiment("rl")
    exp.new_process("p", cmds=["true"]).binds("a")
    cluster.launch(exp)
    assert load_experiment("rl") == exp.finish()
    with pytest.raises(ResourceExistsError):
        cluster.launch(exp)


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
