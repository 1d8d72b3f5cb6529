"""`symph run` in real tmux: in pipes and terminals, to its end, interrupted, left running."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.cli import output
from symphony_charts.cli.main import main
from symphony_charts.local.runs import find_run, live_runs
from tests.cli.own_tmux import Own
from tests.local.runs import log_of, until
from tests.symph import symph

SPEC = """\
name: e
processes:
  learner: {cmds: ["printf 'step 1\\\\nstep 2\\\\n'; sleep 0.2"]}
  agent: {cmds: ["echo oops; sleep 0.5; exit 3"], restart: on-failure, retries: 1}
"""
LONG = "name: e\nprocesses: {p: {cmds: ['echo up; exec sleep 300']}}\n"


pytestmark = pytest.mark.usefixtures("here")


def write(folder: Path, text: str) -> str:
    (folder / "e.yaml").write_text(text)
    return str(folder / "e.yaml")


def test_lines_go_to_stdout_changes_to_stderr_and_the_status_is_that_of_the_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write(tmp_path, SPEC)]) == 3
    shown = capsys.readouterr()
    lines = sorted(shown.out.splitlines())
    assert lines == ["agent   | oops", "agent   | oops", "learner | step 1", "learner | step 2"]
    assert re.search(r"^agent   ! failed 3 after \d+s, restarting: oops$", shown.err, re.MULTILINE)
    assert re.search(r"^learner \* succeeded after \d+s$", shown.err, re.MULTILINE)
    assert "\ne failed after " in shown.err
    assert 'error: process "agent" failed (exit status 3) after 1 restarts' in shown.err


def test_chosen_processes_alone_are_printed_and_an_ended_run_is_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, SPEC)
    for _ in range(2):
        assert main(["run", path, "-p", "learner", "--no-color"]) == 3
        shown = capsys.readouterr()
        assert shown.out == "learner | step 1\nlearner | step 2\n"
        assert not [line for line in shown.err.splitlines() if line.startswith("agent")]


def test_json_is_an_object_a_line_with_lines_changes_and_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write(tmp_path, SPEC), "-o", "json"]) == 3
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["line"] for record in records if record.get("process") == "learner"] == ["step 1", "step 2"]
    assert any(record.get("processes") == ["agent"] and record["change"].startswith("failed 3") for record in records)
    end = records[-1]
    assert (end["name"], end["phase"], end["status"]) == ("e", "failed", 3)


def test_a_dry_run_starts_nothing_and_detached_it_runs_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, LONG)
    assert main(["run", path, "--dry-run"]) == 0
    assert not live_runs()
    assert main(["run", path, "-d"]) == 0
    assert "1 process up in" in capsys.readouterr().out
    assert [run.experiment for run in live_runs()] == ["e"]


@pytest.mark.parametrize("words", [[], ["-d"]])
def test_a_running_experiment_is_neither_followed_nor_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    path = write(tmp_path, LONG)
    assert main(["up", path]) == 0
    (before,) = live_runs()
    capsys.readouterr()
    assert main(["run", path, *words]) == 7
    said = capsys.readouterr().err
    assert 'experiment "e" is already running' in said
    assert "next: follow it: symph logs -f e; end it: symph down e; replace it: --force" in said
    assert live_runs() == [before]
    assert main(["run", path, "-d", "--force"]) == 0
    assert [run.experiment for run in live_runs()] == ["e"]
    assert live_runs() != [before]


@pytest.mark.parametrize(
    ("number", "status", "runs_on"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, False), (signal.SIGHUP, 129, True)],
)
def test_without_a_terminal_it_ends_what_it_runs_but_not_with_the_connection(
    tmp_path: Path, number: int, status: int, runs_on: bool
) -> None:
    argv = [sys.executable, "-m", "symphony_charts", "run", write(tmp_path, LONG)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"p | up\n"
        running.send_signal(number)
        running.communicate(timeout=60)
        assert running.returncode == status
    assert [run.experiment for run in live_runs()] == (["e"] if runs_on else [])


def test_an_interrupt_is_heard_as_soon_as_the_command_offers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    real = output.note

    def note(text: str) -> None:
        if "ctrl-c:" in text:
            waits.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        real(text)

    monkeypatch.setattr(output, "note", note)
    main(["run", write(tmp_path, "name: e\nprocesses: {p: {cmds: [echo up]}}\n")])
    assert waits == [True]


def test_on_a_terminal_an_interrupt_asks_and_every_answer_is_heard(
    private_places: Path, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    need_tool("script")
    colored = json.dumps(r"printf '\033[31mup\033[2J\n'; exec sleep 300")
    path, own = write(tmp_path, LONG.replace("'echo up; exec sleep 300'", colored)), Own(private_places)
    try:
        own.type(f"symph run {path}; echo status $?")
        until(lambda: "p | up" in own.screen())
        for key, told in (("x", 1), ("d", 2)):
            own.tmux("send-keys", "-t", "mine", "C-c")
            until(lambda told=told: own.screen().count("e runs on   d: leave it running") == told)  # type: ignore[misc]
            own.tmux("send-keys", "-t", "mine", key)
            # An interrupt before the answer is read is an answer itself.
            until(lambda key=key: key == "d" or "looking on" in own.screen())  # type: ignore[misc]
        until(lambda: "status 0" in own.screen())
        assert "next: symph logs -f e" in own.screen()
        run = find_run("e", live=True)
        assert log_of(run, "p").startswith("\x1b[31mup")

        own.type(f"symph run --force {path}; echo status $?")
        until(lambda: own.screen().count("ctrl-c: leave or end it") == 2)
        own.tmux("send-keys", "-t", "mine", "C-c")
        until(lambda: own.screen().count("e runs on   d: leave it running") == 3)
        own.tmux("send-keys", "-t", "mine", "C-c")
        until(lambda: "status 130" in own.screen())
        assert not live_runs()
        assert "e stopped after" in own.screen()
    finally:
        own.close()


ASKS = """\
import sys, time
for i in range(400):
    sys.stdout.write(f"\\r{i:03} \\033[31m" + "#" * 190)
    sys.stdout.flush()
    time.sleep(0.05)
    if i > 5 and __import__("os").path.exists("seen"):
        break
print()
print("got", input("continue? "))
"""


def test_progress_bars_and_prompts_are_shown_in_place_on_a_terminal_and_never_in_a_pipe(
    private_places: Path, tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    need_tool("script")
    (tmp_path / "asks.py").write_text(ASKS)
    path = write(tmp_path, f"name: e\nprocesses: {{p: {{command: [{sys.executable}, asks.py]}}}}\n")
    own = Own(private_places)
    try:
        own.type(f"symph run {path} --no-color; echo status $?")
        until(lambda: re.search(r"^p \| 0\d\d #{40,}…", own.window(), re.MULTILINE) is not None)
        assert own.window().count("p | ") == 1
        (tmp_path / "seen").touch()
        own.seen("p | continue?")
        assert sum("###" in line for line in own.window().splitlines()) == 1
        run = find_run("e", live=True)
        subprocess.run(["tmux", "-S", str(run.socket), "send-keys", "yes", "Enter"], check=True)
        own.seen("p | continue? yes", "p | got yes", "status 0")
        assert own.window().count("continue?") == 1
    finally:
        own.close()
    (tmp_path / "asks.py").write_text(
        "import sys, time; sys.stdout.write('a\\rb'); sys.stdout.flush(); time.sleep(1); print()"
    )
    assert symph("run", path).stdout == "p | a\rb\n"


@pytest.mark.parametrize(
    ("cpu", "pools", "price"), [(1, True, pytest.approx(0.38, abs=1e-4)), (100, True, None), (1, False, None)]
)
def test_the_end_has_the_price_of_the_planned_nodes_if_all_of_it_is_known(
    cpu: int, pools: bool, price: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = f"name: e\nimage: busybox:1.37.0\nprocesses: {{p: {{cmds: [echo up], requests: {{cpu: {cpu}}}}}}}\n"
    path = write(tmp_path, spec)
    row = "{name: std, machine_type: n1-standard-8, zones: [us-central1-a], max_nodes: 4}"
    (tmp_path / "pools.yaml").write_text(f"pools: [{row}]\n")
    given = ["--pools", str(tmp_path / "pools.yaml")] if pools else []
    assert main(["run", path, *given, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["pricePerHour"] == price
    assert main(["run", path, *given]) == 0
    assert ("$0.38/h as planned on " in capsys.readouterr().err) == (price is not None)


def test_a_missing_file_of_pools_stops_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = "name: e\nprocesses: {p: {cmds: [echo up]}}\n"
    assert main(["run", write(tmp_path, spec), "--pools", str(tmp_path / "none.yaml")]) == 0
    assert re.search(r"note: the price of e is unknown: \S+none.yaml does not exist", capsys.readouterr().err)


def test_a_failure_names_variables_of_the_shell_that_were_not_passed_but_no_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MY_API_KEY", "http_proxy", "DATA_ROOT", "UNUSED_NAME", "GIVEN_TOKEN"):
        monkeypatch.setenv(name, "never-shown")
    process = "{cmds: ['echo no $DATA_ROOT in DATA_ROOT; sleep 0.2; exit 1']}"
    path = write(tmp_path, f"name: e\nlocal: {{pass_env: ['GIVEN_*']}}\nprocesses: {{p: {process}}}\n")
    assert main(["run", path]) == 1
    (note,) = (line for line in capsys.readouterr().err.splitlines() if "not passed" in line)
    assert {"MY_API_KEY", "http_proxy", "DATA_ROOT"} <= set(re.findall(r"\w+", note))
    assert not {"UNUSED_NAME", "GIVEN_TOKEN"} & set(re.findall(r"\w+", note))
    main(["events", "e"])
    shown = capsys.readouterr().out
    assert "MY_API_KEY" in shown
    assert "never-shown" not in shown + note


@pytest.mark.parametrize(
    ("example", "lines"),
    [
        ("ppo", ["learner | the greedy policy reaches the goal in 6 steps"]),
        ("parameter-server", ["server   | y = 2.00 x -1.00 after 300 gradients"]),
        ("prime-rl", ["orchestrator | step 8: reward 1.00, ynohpmys", "trainer      | trainer done"]),
        ("grpo", ["trainer  | trainer done"]),
    ],
)
def test_an_example_talks_through_its_services_and_ends(
    example: str, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(Path(__file__).parents[2] / "examples", tmp_path / "examples")
    assert main(["run", str(tmp_path / "examples" / example / "experiment.yaml")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in shown] == []


def test_a_server_of_the_examples_ends_after_its_last_answer(tmp_path: Path) -> None:
    """It answers with more than a socket buffer holds, to a client that reads late."""
    script = tmp_path / "server.py"
    script.write_text(
        "import wire\n"
        "asked = []\n"
        "wire.serve('it', lambda path, data: asked.append(path) or 20_000_000 * 'y')\n"
        "wire.wait_until(lambda: asked)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    env = {"SYMPH_IT_HOST": address[0], "SYMPH_IT_PORT": str(address[1])}
    env["PYTHONPATH"] = str(Path(__file__).parents[2] / "examples" / "common")
    with subprocess.Popen([sys.executable, script], env=env) as server:
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(address) as client:
                client.sendall(b"POST / HTTP/1.0\r\n\r\n")
                time.sleep(0.5)
                with client.makefile("rb") as answer:
                    assert len(answer.read()) > 20_000_000
                break
            time.sleep(0.05)
        assert server.wait(30) == 0
