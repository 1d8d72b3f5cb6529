"""Faults of Symphony's watching verbs that no backend has here."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli import ls, output
from symphony_charts.cli.output import choose
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import UsageError
from symphony_charts.local import up
from symphony_charts.local.runs import live_runs
from symphony_charts.spec.data import from_data
from tests.symph import symph


@pytest.fixture
def tmux(need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    need_tool("tmux")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield Cluster.new("tmux")
    for run in live_runs():
        up.down(run)


def launch(cluster: Cluster, name: str = "exp", command: str = "exec sleep 300", **more: Any) -> None:
    data = {"name": name, "processes": {"a": {"command": ["sh", "-c", command]}}}
    cluster.launch(from_data(data), **more)


def test_2_a_loose_delete_without_a_terminal_deletes_nothing(tmux: Cluster) -> None:
    launch(tmux, "rl-old")
    assert symph("delete", "rl").returncode == 2
    assert tmux.list_experiments() == ["rl-old"]


def test_a_group_before_a_process_counts(tmux: Cluster) -> None:
    data = {"name": "exp", "groups": {"g": {"processes": {"x": {"command": ["sleep", "300"]}}}}}
    tmux.launch(from_data(data))
    assert symph("logs", "g/x", "exp").returncode == 0
    assert symph("logs", "other/x", "exp").returncode == 8


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
    ls._print(args, status, watcher)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["GROUP", "-", "g"]
