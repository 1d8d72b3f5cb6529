"""`symph run` on a real cluster prints the same as locally, and loses no line of many."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.own_tmux import Own
from tests.e2e.programs import Programs
from tests.tools import newest_helm
from tests.waiting import eventually

LEARNER = {
    "image": "busybox:1.37.0",
    "cmds": ["for i in 1 2 3; do echo step $i; sleep 0.3; done; exit $CODE"],
    "env": {"CODE": "0"},
}


def write(folder: Path, **processes: Any) -> str:
    (folder / "exp.json").write_text(json.dumps({"name": "exp", "image": "busybox:1.37.0", "processes": processes}))
    return str(folder / "exp.json")


def environment(programs: Programs, with_helm: bool) -> dict[str, str]:
    """Return the environment of a user of this cluster; `PATH` has no helm, HELM_BIN may name one."""
    env = {**os.environ, **programs.environment(), "HOME": str(programs.home)}
    return {**env, **({"HELM_BIN": str(newest_helm())} if with_helm else {})}


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "symphony_charts", "run", *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize("with_helm", [True, False], ids=["helm", "objects"])
def test_a_cluster_is_run_on_as_this_machine_is(
    programs: Programs, namespace: str, tmp_path: Path, with_helm: bool
) -> None:
    env, path = environment(programs, with_helm), write(tmp_path, learner=LEARNER)
    said = {}
    for place in (["-n", namespace], ["--on", "tmux"]):
        done = run(env, path, *place, "--force")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "learner | step 1\nlearner | step 2\nlearner | step 3\n"
        assert re.search(
            r"^exp succeeded after [0-9.]+ s   (\S+ for 1 node   )?logs: symph logs exp", done.stderr, re.MULTILINE
        )
        said[place[0]] = re.sub(
            r"\d+s", "Ns", next(line for line in done.stderr.splitlines() if " * succeeded" in line)
        )
    assert said["-n"] == said["--on"] == "learner * succeeded after Ns"

    failed = run(env, path, "-n", namespace, "--force", "--set-string", "groups.learner.containers.learner.env.CODE=3")
    assert failed.returncode == 3, failed.stderr
    assert 'process "learner" failed 3' in failed.stderr


def test_an_interrupt_ends_what_runs_on_the_cluster(programs: Programs, namespace: str, tmp_path: Path) -> None:
    env = environment(programs, True)
    path = write(tmp_path, learner={**LEARNER, "cmds": ["echo up; exec sleep 300"], "grace_period": 1})
    argv = [sys.executable, "-m", "symphony_charts", "run", path, "-n", namespace]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"learner | up\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
        assert running.returncode == 130, said
    eventually(lambda: not programs.kubectl("-n", namespace, "get", "jobs", "-o", "name").split(), 60, "its Jobs go")


def test_the_cockpit_shows_a_cluster_as_it_shows_this_machine(
    programs: Programs, namespace: str, tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(programs, True).items():
        monkeypatch.setenv(name, value)
    loop = "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.5; done"
    path = write(tmp_path, learner={"image": "busybox:1.37.0", "cmds": [loop], "grace_period": 1})
    assert run({**os.environ}, path, "-n", namespace, "-d").returncode == 0
    own = Own(private_places)
    try:
        own.type(f"symph top exp -n {namespace} --interval 1s")
        screen = ["exp  running", "learner 1/1", ">learner", "── learner  follows", "step 3"]
        eventually(lambda: all(text in own.screen() for text in screen), 90, own.screen)
        own.tmux("send-keys", "-t", "mine", "r")
        eventually(lambda: "only processes of this machine" in own.screen(), 30, own.screen)
    finally:
        own.close()


def test_tiles_show_a_cluster_as_they_show_this_machine(
    programs: Programs, namespace: str, tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(programs, True).items():
        monkeypatch.setenv(name, value)
    says = {"image": "busybox:1.37.0", "cmds": ["echo $SYMPHONY_ROLE $SYMPH_INDEX speaks; exec sleep 300"]}
    path = write(tmp_path, learner={**says, "grace_period": 1}, agent={**says, "replicas": 2, "grace_period": 1})
    assert run({**os.environ}, path, "-n", namespace, "-d").returncode == 0
    own = Own(private_places)

    def seen(*texts: str) -> None:
        # The client's screen: a window of several panes as it is drawn.
        def screen() -> str:
            return own.tmux("capture-pane", "-p", "-t", "mine")

        eventually(lambda: all(text in screen() for text in texts), 90, screen)

    try:
        own.type(f"env -u TMUX symph attach exp --tile -n {namespace}")
        seen("learner  running", "agent-0  running", "agent-1  running", "agent 2/2  learner 1/1", "q: leave")
        seen("learner 0 speaks", "agent 0 speaks", "agent 1 speaks")
        # The key leads into the container of the chosen process, and back.
        own.tmux("send-keys", "-t", "mine", "Right")
        own.tmux("send-keys", "-t", "mine", "a")

        def answers() -> bool:
            # Input typed before the shell is ready is lost.
            own.type("echo in-$SYMPHONY_ROLE")
            return "in-agent" in own.screen()

        eventually(answers, 60, own.screen)
        own.type("exit")
        seen("agent-0  running", "q: leave")
        own.tmux("send-keys", "-t", "mine", "q")
        eventually(lambda: "q: leave" not in own.screen(), 30, own.screen)
        jobs = programs.kubectl("-n", namespace, "get", "jobs", "-o", "name").split()
        assert len(jobs) == 3  # with the conductor
    finally:
        own.close()


@pytest.mark.slow
def test_no_line_is_lost_of_a_hundred_processes_that_write_ten_thousand_lines_a_second(tmp_path: Path) -> None:
    program = (
        "import os, time\nfor i in range(500):\n print(os.environ['SYMPH_INDEX'], i, flush=True)\n time.sleep(0.01)"
    )
    path = write(tmp_path, w={"replicas": 100, "command": [sys.executable, "-S", "-c", program]})
    done = run({**os.environ}, path)
    assert done.returncode == 0, done.stderr
    got: dict[str, list[int]] = {}
    for line in done.stdout.splitlines():
        index, _, number = line.partition(" | ")[2].partition(" ")
        got.setdefault(index, []).append(int(number))
    assert got == {str(index): list(range(500)) for index in range(100)}


def test_the_end_on_a_cluster_has_the_price_of_the_planned_nodes(
    programs: Programs, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "pools.yaml").write_text(
        "pools: [{name: std, machine_type: n1-standard-8, zones: [us-central1-a], max_nodes: 4}]\n"
    )
    env, path = environment(programs, True), write(tmp_path, learner=LEARNER)
    done = run(env, path, "-n", namespace, "--pools", str(tmp_path / "pools.yaml"), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["pricePerHour"] == pytest.approx(0.38, abs=1e-4)
