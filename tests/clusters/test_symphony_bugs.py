"""Faults of Symphony's watching verbs that no backend has here."""

from __future__ import annotations

import os
import pty
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli import look, output
from symphony_charts.cli.output import choose
from symphony_charts.errors import UsageError


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
    look._print(args, status, watcher)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["GROUP", "-", "g"]
