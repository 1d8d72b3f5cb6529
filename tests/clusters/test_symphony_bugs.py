"""Faults of Symphony's watching verbs, each shown to be right here; the numbers are those of our list of its faults.

What needs a cluster (2, 3, 4, 36, 37) is also in tests/e2e; those of other rooms are in tests/compat.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli import output
from symphony_charts.cli.commands.look import ps
from symphony_charts.cli.matching import choose
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import Conflict, NotFound, UsageError
from symphony_charts.kubernetes.status import status_of
from symphony_charts.local import up
from symphony_charts.local.runs import live_runs
from symphony_charts.spec.data import from_data


@pytest.fixture
def tmux(need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """This machine; every run is ended afterwards."""
    need_tool("tmux")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield Cluster.new("tmux")
    for run in live_runs():
        up.down(run)


def launch(cluster: Cluster, name: str = "exp", command: str = "exec sleep 300", **more: Any) -> None:
    """Start an experiment with the process `a`."""
    data = {"name": name, "processes": {"a": {"command": ["sh", "-c", command]}}}
    cluster.launch(from_data(data), **more)


def symph(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run `symph` without a terminal."""
    argv = [sys.executable, "-m", "symphony_charts", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, input=stdin)


@pytest.mark.parametrize("flag", ["-dr", "--dry-run"])
def test_1_a_dry_run_of_delete_deletes_nothing(tmux: Cluster, flag: str) -> None:
    launch(tmux)
    assert symph("delete", "exp", flag, "-f").returncode == 0
    assert tmux.list_experiments() == ["exp"]


def test_2_a_pattern_reaches_only_what_it_fits_whole_and_says_so_first(tmux: Cluster) -> None:
    for name in ("rl", "rl-old"):
        launch(tmux, name)
    done = symph("delete-batch", "rl", "--yes")
    assert "1 of 2 experiments fit: rl" in done.stderr
    assert tmux.list_experiments() == ["rl-old"]


def test_2_a_loose_delete_without_a_terminal_deletes_nothing(tmux: Cluster) -> None:
    launch(tmux, "rl-old")
    assert symph("delete", "rl").returncode == 2
    assert tmux.list_experiments() == ["rl-old"]


def test_4_force_replaces_what_runs_and_without_it_nothing_is_touched(tmux: Cluster) -> None:
    launch(tmux, command="echo one; exec sleep 300")
    with pytest.raises(Conflict):
        launch(tmux, command="echo two; exec sleep 300")
    launch(tmux, command="echo three; exec sleep 300", force=True)
    tmux.wait("exp", "ready", timeout_s=20)
    assert next(line.text for line in tmux.logs("exp")) == "three\n"


def test_30_an_address_may_be_a_host_name() -> None:
    labels = {"symph.dev/experiment": "rl", "app.kubernetes.io/instance": "rl", "symph.dev/service": "web"}
    meta = {"name": "rl-web", "namespace": "ml", "creationTimestamp": "2026-03-01T11:00:00Z", "labels": labels}
    ingress = {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}
    service = {"metadata": meta, "spec": {"ports": [{"port": 80}]}, "status": ingress}
    (found,) = status_of("rl", [], [], [service], now=0.0).services
    assert found.outside == "lb.example:80"


def test_31_a_process_that_has_ended_is_not_live(tmux: Cluster) -> None:
    launch(tmux, command="exit 0")
    tmux.wait("exp", "ended", timeout_s=20)
    assert tmux.describe_experiment("exp")[None]["a"]["State"].startswith("done")
    assert tmux.list_experiments() == []


def test_37_a_pod_without_states_shows_its_processes_by_name() -> None:
    labels = {"symph.dev/experiment": "rl", "app.kubernetes.io/instance": "rl", "symph.dev/group": "pair"}
    meta = {"name": "rl-pair-x", "namespace": "ml", "creationTimestamp": "2026-03-01T11:00:00Z", "labels": labels}
    pod = {"metadata": meta, "spec": {"containers": [{"name": "p0"}, {"name": "p1"}]}, "status": {"phase": "Pending"}}
    assert [one.path for one in status_of("rl", [], [pod], now=0.0).instances] == ["pair/p0", "pair/p1"]


def test_38_a_command_needs_no_terminal(tmux: Cluster) -> None:
    launch(tmux)
    tmux.wait("exp", "ready", timeout_s=20)
    assert symph("exec", "a", "exp", "--", "cat", stdin="piped").stdout == "piped"
    assert symph("ssh", "a", "exp", stdin="echo typed\n").stdout == "typed\n"


def test_a_group_before_a_process_counts(tmux: Cluster) -> None:
    data = {"name": "exp", "groups": {"g": {"processes": {"x": {"command": ["sleep", "300"]}}}}}
    tmux.launch(from_data(data))
    assert symph("logs", "g/x", "exp").returncode == 0
    assert symph("logs", "other/x", "exp").returncode == 8


def test_a_second_colon_belongs_to_the_path(tmux: Cluster, tmp_path: Path) -> None:
    launch(tmux)
    tmux.wait("exp", "ready", timeout_s=20)
    (tmp_path / "a:b").write_text("x")
    assert symph("scp", f"a:{tmp_path}/a:b", str(tmp_path / "copy"), "exp").returncode == 0
    assert (tmp_path / "copy").read_text() == "x"


@pytest.mark.parametrize("answer", ["-1", "x", "", "7"])
def test_an_answer_that_is_no_number_of_the_menu_chooses_nothing(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    with os.fdopen(theirs, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(output, "can_ask", lambda: True)
        with pytest.raises(UsageError, match="no process was chosen"):
            choose(["one", "two"], "o", "process")
    os.close(ours)


def test_a_process_that_was_never_started_does_not_break_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    instances = (
        InstanceStatus(name="a", process="a", phase="pending", state="pending"),
        InstanceStatus(name="b", process="b", group="g", phase="running", state="running: 1s", place="n1", pod="p"),
    )
    status = ExperimentStatus(
        name="rl", experiment="rl", backend="kube", phase="running", started=0.0, instances=instances
    )
    args: Any = SimpleNamespace(output="table", no_headers=False, color="never")
    watcher: Any = SimpleNamespace(backend="kube")
    ps._print(args, status, watcher)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["GROUP", "-", "g"]


def test_the_documented_forms_exist() -> None:
    for verb in ("process", "visit", "db", "exec", "x", "e", "se", "cp", "vi", "lse", "lsp", "l", "d"):
        assert symph(verb, "--help").returncode == 0, verb


def test_an_unknown_experiment_is_not_found_by_every_verb() -> None:
    for words in (["p", "no"], ["logs", "a", "no"], ["delete", "no", "-f"], ["visit", "x", "no"], ["describe", "no"]):
        assert symph(*words).returncode == NotFound.exit_code, words
