"""`symph up --wait` reports the true cause of a failure, in real tmux."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.local import tmux_client
from symphony_charts.local.runs import live_runs
from symphony_charts.system.file_locks import experiment_lock
from tests.local.runs import log_of, until


@pytest.fixture(autouse=True)
def tmux(need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")


def test_a_command_that_is_not_there_is_said_with_its_last_words_and_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.yaml").write_text('name: e\nprocesses:\n  p: {command: "python3 -V"}\n')
    assert main(["up", str(tmp_path / "e.yaml"), "--wait"]) == 127
    said = capsys.readouterr().err
    assert re.search(r"^p \| .*python3 -V: not found$", said, re.MULTILINE)
    assert 'process "p" failed (exit status 127): command not found' in said
    assert 'next: write its words apart: command: ["python3", "-V"]' in said
    assert main(["p", "e"]) == 0
    assert "failed 127 (command not found)" in capsys.readouterr().out
    assert main(["describe", "e"]) == 0
    assert "python3 -V: not found" in capsys.readouterr().out


def test_a_killed_tmux_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.yaml").write_text("name: e\nprocesses:\n  p: {command: [sh, -c, 'echo up; exec sleep 60']}\n")

    def kill_tmux() -> None:
        until(lambda: bool(live_runs()) and "up" in log_of(live_runs()[0], "p"))
        with experiment_lock("e", "a test"):  # `up` has begun to wait
            os.kill(tmux_client.server_pid(live_runs()[0].socket), signal.SIGKILL)

    killer = threading.Thread(target=kill_tmux)
    killer.start()
    assert main(["up", str(tmp_path / "e.yaml"), "--wait"]) == 6
    killer.join()
    assert "error: the run failed: tmux was killed" in capsys.readouterr().err
    assert main(["describe", "e"]) == 0
    assert "failed: tmux was killed" in capsys.readouterr().out
