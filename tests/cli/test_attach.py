"""`symph attach` as a user types it: in a plain terminal, within their own tmux, within a pane of a run.

The terminals are panes of a tmux server of the test, which plays the user's own; tiles leave it unchanged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.cli import tiles
from symphony_charts.cli.main import main
from symphony_charts.errors import ToolFailed
from symphony_charts.local import up
from symphony_charts.local.runs import Run, live_runs
from tests.cli.own_tmux import Own, own_tmux
from tests.local.runs import start, until

TWO = {"agent": {"command": ["sleep", "300"], "replicas": 2}, "b": {"command": ["sleep", "300"]}}


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
            "shell": {"command": command, "env": passed, "retries": 0},
            "b": {"command": ["sleep", "300"]},
        },
        on_failure="continue",
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


PROCESSES = {
    "learner": {"cmds": ["printf 'step 1\\n\\033[31mstep 2\\033[2J\\033]0;evil\\007\\n'; exec sleep 300"]},
    "agent": {"cmds": ["echo agent $SYMPH_INDEX speaks; exec sleep 300"], "replicas": 2},
    "done": {"cmds": ["echo last words; exit 3"], "retries": 0},
}


@pytest.fixture
def own(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[Own]:
    with own_tmux(private_places, need_tool) as one:
        yield one
        for run in live_runs():
            up.down(run)
        # Programs that were left may still be cleaning up.
        until(lambda: not list(Path(os.environ["SYMPH_RUNTIME_DIR"]).glob("tiles-*")))
    assert not list(Path(os.environ["SYMPH_RUNTIME_DIR"]).glob("tiles-*"))


def press(own: Own, *keys: str) -> None:
    for key in keys:
        own.tmux("send-keys", "-t", "mine", key)


def test_all_stand_side_by_side_with_states_and_leaving_ends_nothing(own: Own, tmp_path: Path) -> None:
    run = start(tmp_path, processes=PROCESSES, on_failure="continue")
    until(lambda: run.state().processes[3].phase == "failed")
    # In a locale without UTF-8, tmux answers with _ for every non-ASCII character.
    own.type("env -u TMUX LC_ALL=C symph attach exp --tile")
    own.seen("learner  running", "agent-0  running", "agent-1  running", "done  failed 3")
    own.seen("step 1", "step 2", "agent 1 speaks", "last words")
    own.seen("exp  running (1 failed)", "failed: done   learner 1/1  agent 2/2", "q: leave")
    assert own.tmux("list-panes", "-a", "-F", "#{pane_title}").count("evil") == 0

    up.restart(run, [0])
    until(lambda: own.window().count("step 1") == 2)
    press(own, "z")
    until(lambda: "agent-1" not in own.window())
    press(own, "z")
    own.seen("agent-1  running")
    press(own, "Right", "a")
    until(lambda: "symph" in ask(run, "list-clients"))
    assert current(run) == "0"
    ask(run, "detach-client", "-s", "symph")
    own.seen("q: leave")
    press(own, "q")
    until(lambda: "q: leave" not in own.window())
    assert run.is_live


def test_chosen_ones_of_a_run_that_has_ended_are_shown(own: Own, tmp_path: Path) -> None:
    run = start(tmp_path, processes=PROCESSES, on_failure="continue")
    until(lambda: run.state().processes[3].phase == "failed")
    up.down(run)
    own.type("env -u TMUX symph attach exp --tile agent-0 done")
    own.seen("agent-0  stopped", "done  failed 3", "last words", "agent 0 speaks")
    assert "learner  " not in own.window().replace("learner 0/1", "")
    press(own, "q")
    until(lambda: "q: leave" not in own.window())


def settings(own: Own) -> list[str]:
    """Return the options of the user's server and session, and its windows.

    Window names are left out: tmux renames windows after their programs, with a short delay.
    """
    questions = ("show-options -s", "show-options -g", "show-options -gw", "show-options -t mine", "show-hooks -g")
    windows = own.tmux("list-windows", "-F", "#{window_id} #{window_flags} #{window_layout} #{automatic-rename}")
    return [*(own.tmux(*words.split()) for words in (*questions, "list-keys", "show-environment -g")), windows]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_users_own_session_a_window_comes_and_goes_and_no_setting_changes(
    own: Own, tmp_path: Path, number: signal.Signals
) -> None:
    run = start(tmp_path, processes=PROCESSES, on_failure="continue")
    until(lambda: run.state().processes[3].phase == "failed")
    own.tmux("set-option", "-gw", "remain-on-exit", "on")
    before = settings(own)
    own.type(f"sh -c 'echo $$ >{tmp_path}/pid; exec symph attach exp --tile --into-current'")
    until(lambda: _has_tiles(own))
    panes = own.tmux("list-panes", "-s", "-t", "mine", "-F", "#{@symph_title}|#{pane_id}").splitlines()[1:]
    assert [pane.split()[0] for pane in panes] == ["done", "learner", "agent-0", "agent-1"]
    for pane, words in zip(panes, ("last words", "step 2", "agent 0 speaks", "agent 1 speaks"), strict=True):
        until(lambda pane=pane, words=words: words in own.tmux("capture-pane", "-p", "-t", pane.partition("|")[2]))  # type: ignore[misc]
    assert settings(own)[:-1] == before[:-1]
    os.kill(int((tmp_path / "pid").read_text()), number)
    until(lambda: not _has_tiles(own))
    until(lambda: settings(own) == before)


def _has_tiles(own: Own) -> bool:
    return "exp 3/4 1 failed" in own.tmux("list-windows", "-t", "mine")


def test_tiles_for_which_tmux_finds_no_room_leave_nothing_behind(own: Own, tmp_path: Path) -> None:
    pane = own.tmux("list-panes", "-a", "-F", "#{pane_id}").strip()
    windows = ("list-windows", "-a", "-F", "#{window_id} #{window_panes}")
    before, pipes = own.tmux(*windows), {f"p-{number}": tmp_path / str(number) for number in range(60)}
    for pipe in pipes.values():
        # A missing pipe would end its pane at once, and with the last pane the server.
        os.mkfifo(pipe)
    with pytest.raises(ToolFailed, match=r"(?s)could not show the tiles: [a-z ]+\b.*name the processes"):
        tiles.in_session(own.socket, pane, pipes, 0)
    assert own.tmux(*windows) == before
    with pytest.raises(ToolFailed, match=r"(?s)could not show the tiles: [a-z ]+\b.*name the processes"):
        tiles.on_own_server(tmp_path / "s", pipes, 0, 20, 10)
    assert subprocess.run(["tmux", "-S", str(tmp_path / "s"), "ls"], capture_output=True, check=False).returncode == 1


def test_conflicting_options_are_refused_with_the_next_step(
    own: Own, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, processes=PROCESSES, on_failure="continue")
    own.type("symph attach exp --tile")
    own.seen("symph attach exp --tile --into-current", "or --nested")
    monkeypatch.delenv("TMUX", raising=False)
    asked = {
        "--tile --into-current": "not inside of tmux",
        "--into-current": "is about tiles",
        "-p done --tile": "exclude each other",
        "--tile nobody": "has no process",
        "--on kube": "only processes of this machine have a terminal",
    }
    for words, refusal in asked.items():
        assert main(["attach", "exp", *words.split()]) in (2, 8)
        assert refusal in capsys.readouterr().err
