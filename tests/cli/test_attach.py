"""`symph attach` as a user types it: in a plain terminal, within their own tmux, within a pane of a run.

The terminals are panes of a tmux server of the test, which plays the user's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.local import up
from symphony_charts.local.runs import Run
from tests.cli.own_tmux import Own, own_tmux
from tests.local.runs import start, until

TWO = {"agent": {"command": ["sleep", "300"], "replicas": 2}, "b": {"command": ["sleep", "300"]}}


@pytest.fixture
def own(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[Own]:
    with own_tmux(private_places, need_tool) as one:
        yield one


def ask(run: Run, *words: str) -> str:
    argv = ["tmux", "-S", str(run.socket), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False).stdout


def current(run: Run) -> str:
    """Return the slot whose pane a client sees."""
    return ask(run, "display-message", "-p", "-t", "symph", "#{@slot}").strip()


def test_within_tmux_it_refuses_and_the_command_it_names_goes_there_and_back(own: Own, tmp_path: Path) -> None:
    run = start(tmp_path, processes=TWO)
    before = own.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}")
    own.type("symph attach exp -p agent/1")
    until(lambda: "C-b d comes back here" in own.screen())
    assert ask(run, "list-clients") == ""
    [command] = [line for line in own.screen().splitlines() if "detach-client" in line]
    own.type(command.partition("next: ")[2])
    until(lambda: "symph" in ask(run, "list-clients"))
    assert current(run) == "1"
    assert own.tmux("list-clients") == ""
    ask(run, "detach-client", "-s", "symph")
    until(lambda: own.tmux("list-clients") != "")
    assert own.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}") == before


@pytest.mark.parametrize(
    ("line", "slot"), [("symph attach exp --nested -p b", "2"), ("env -u TMUX symph attach exp -p agent", "0")]
)
def test_nested_or_in_a_terminal_without_tmux_it_attaches(own: Own, tmp_path: Path, line: str, slot: str) -> None:
    run = start(tmp_path, processes=TWO)
    own.type(line)
    until(lambda: "symph" in ask(run, "list-clients"))
    assert current(run) == slot
    assert own.tmux("list-clients") != ""


def test_within_a_pane_of_the_experiment_it_goes_to_another(own: Own, tmp_path: Path) -> None:
    passed = {name: os.environ[name] for name in ("SYMPH_STATE_DIR", "SYMPH_RUNTIME_DIR")}
    command = [sys.executable, "-m", "symphony_charts", "attach", "exp", "-p", "b"]
    run = start(
        tmp_path,
        processes={
            "shell": {"command": command, "env": passed, "retries": 0, "local": {"on_exit": "keep"}},
            "b": {"command": ["sleep", "300"]},
        },
    )
    until(lambda: run.state().processes[0].phase == "done")
    assert current(run) == "1"
    assert ask(run, "list-clients") == ""


def test_within_a_pane_of_another_experiment_it_refuses(own: Own, tmp_path: Path) -> None:
    first = start(tmp_path, "one", processes={"b": {"command": ["sleep", "300"]}})
    passed = {name: os.environ[name] for name in ("SYMPH_STATE_DIR", "SYMPH_RUNTIME_DIR")}
    command = [sys.executable, "-m", "symphony_charts", "attach", "one"]
    second = start(tmp_path, "two", processes={"shell": {"command": command, "env": passed}})
    assert up.wait(second) == 2
    assert "inside of tmux" in (second.process_dir(0) / "log").read_text()
    assert ask(first, "list-clients") == ""
