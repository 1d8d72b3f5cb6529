"""`symph up`, `process`, `logs`, `ls`, `down`, `delete` on real tmux, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from symphony_charts.local.runs import live_runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def runs_end(private_places: Path, need_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    need_tool("tmux")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield
    for run in live_runs():
        local_run.down(run)


def symph(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "symphony_charts", *words], capture_output=True, text=True, timeout=90, check=False
    )


def spec(folder: Path, text: str) -> str:
    path = folder / "experiment.yaml"
    path.write_text(text)
    return str(path)


FOREVER = "name: exp\nprocesses: {a: {command: [sleep, '300']}}\n"


def test_integrate_prints_the_right_number_and_ends_by_itself() -> None:
    done = symph("up", str(ROOT / "examples/integrate/experiment.yaml"), "--wait")
    assert done.returncode == 0, done.stderr
    last = symph("logs", "master", "integrate", "--tail", "1").stdout
    assert abs(float(last.rpartition("=")[2]) - 1000 / 3) < 1e-3


def test_the_messages_of_the_ring_arrive() -> None:
    assert symph("up", str(ROOT / "examples/ring-group/experiment.yaml"), "--wait").returncode == 0
    lines = symph("logs", "p2", "ring-group").stdout.splitlines()
    assert [line for line in lines if line.startswith("received")] == [f"received hello1 {n}" for n in range(50)]


def test_a_failed_run_names_process_status_place_and_next_step(tmp_path: Path) -> None:
    path = spec(
        tmp_path, "name: exp\nprocesses:\n  w: {cmds: ['exit 7'], restart: never}\n  m: {command: [sleep, '99']}\n"
    )
    done = symph("up", path, "--wait")
    assert done.returncode == 7
    assert 'process "w" failed (exit status 7)' in done.stderr
    assert "processes.w" in done.stderr
    assert "next: symph logs w exp" in done.stderr


def test_processes_are_listed_as_json(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    items = json.loads(symph("p", "-o", "json").stdout)["items"]
    assert [(item["name"], item["phase"], item["ready"]) for item in items] == [("a", "running", True)]


def test_the_table_of_processes_has_symphonys_columns(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    assert symph("lsp").stdout.splitlines()[0].split() == ["GROUP", "NAME", "READY", "RESTARTS", "STATE"]


def test_a_dry_run_starts_and_writes_nothing(tmp_path: Path, private_places: Path) -> None:
    done = symph("up", spec(tmp_path, FOREVER), "--dry-run")
    assert "a: sleep 300" in done.stdout
    assert not (private_places / "state").exists()
    assert symph("ls", "-o", "name").stdout == ""


def test_a_dry_run_is_data_where_data_is_asked_for(tmp_path: Path) -> None:
    path = spec(tmp_path, FOREVER)
    answer = json.loads(symph("up", path, "--dry-run", "-o", "json").stdout)
    assert (answer["kind"], answer["dryRun"], answer["processes"][0]["argv"]) == ("Run", True, ["sleep", "300"])
    symph("up", path)
    assert json.loads(symph("up", path, "--dry-run", "-o", "json").stdout)["restarts"] == []
    changed = spec(tmp_path, FOREVER.replace("300", "301"))
    (restart,) = json.loads(symph("up", changed, "--dry-run", "-o", "json").stdout)["restarts"]
    assert restart["name"] == "a"


def test_a_failure_that_ends_more_here_than_on_a_cluster_says_so(tmp_path: Path) -> None:
    processes = "{a: {command: [sh, -c, exit 3]}, b: {command: [sleep, '300']}}"
    alike = "workload: {kind: jobset}\n"
    for more, is_said in (("", True), (alike, False)):
        done = symph("up", spec(tmp_path, f"name: exp\n{more}processes: {processes}\n"), "--wait")
        assert (done.returncode, "and no other group on kind jobs" in done.stderr) == (3, is_said), done.stderr


def test_down_ends_the_run_and_says_which(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    assert symph("down", "-o", "name").stdout == "exp\n"
    assert symph("ls", "-o", "name").stdout == ""


def test_down_of_something_that_does_not_run_is_not_found() -> None:
    done = symph("down", "nothing")
    assert done.returncode == 8
    assert 'experiment "nothing" does not run here' in done.stderr


def test_a_second_up_keeps_the_run_and_force_replaces_it(tmp_path: Path) -> None:
    path = spec(tmp_path, FOREVER)
    first, again, forced = (
        json.loads(symph("up", path, *flags, "-o", "json").stdout)["run"] for flags in ((), (), ("--force",))
    )
    assert first == again
    assert forced > first
    assert len(json.loads(symph("ls", "-o", "json").stdout)["items"]) == 1


def test_delete_without_a_terminal_needs_yes_and_forgets_the_logs(tmp_path: Path, private_places: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    assert symph("delete", "exp").returncode == 2
    assert symph("delete", "exp", "--dry-run").returncode == 0
    assert symph("ls", "-o", "name").stdout == "exp\n"
    assert symph("d", "exp", "--yes").returncode == 0
    assert not (private_places / "state" / "local" / "exp").exists()
    assert list((private_places / "state" / "local" / ".trash").iterdir()) == []


def test_a_spec_file_names_the_experiment_to_delete_and_no_other(tmp_path: Path) -> None:
    path = spec(tmp_path, FOREVER)
    symph("up", spec(tmp_path, FOREVER.replace("name: exp", "name: exp-2")))
    spec(tmp_path, FOREVER)
    assert symph("delete", path, "--yes").returncode == 8
    symph("up", path)
    assert symph("delete", path, "--yes").returncode == 0
    assert [item["name"] for item in json.loads(symph("ls", "-o", "json").stdout)["items"]] == ["exp-2"]


def test_logs_of_an_unknown_process_list_the_known_ones(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    done = symph("logs", "nobody")
    assert done.returncode == 8
    assert "its processes: a" in done.stderr


def test_a_bad_spec_is_refused_with_status_3_and_its_place(tmp_path: Path) -> None:
    done = symph("up", spec(tmp_path, "name: exp\nprocesses: {a: {command: [x], connects: nobody}}\n"))
    assert done.returncode == 3
    assert "processes.a.connects[0]" in done.stderr


def test_restart_says_which_processes_it_restarted(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    done = symph("restart", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["items"]) == 1
    assert symph("restart", "nobody").returncode == 8


def test_restart_takes_its_words_as_logs_and_exec_do(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, "name: one\nprocesses: {a: {command: [sleep, '300']}, b: {command: [sleep, '300']}}\n"))
    symph("up", spec(tmp_path, "name: two\nprocesses: {a: {command: [sleep, '300']}}\n"))
    asked = [["a", "one"], ["a", "b", "one"], ["two"], ["b", "-e", "one"]]
    dry = [json.loads(symph("restart", *words, "--dry-run", "-o", "json").stdout)["items"] for words in asked]
    assert [[item["name"] for item in items] for items in dry] == [["a"], ["a", "b"], ["a"], ["b"]]
    assert symph("restart", "a", "b", "--dry-run").returncode == 8
    symph("down", "two")
    assert symph("restart", "a", "b", "--dry-run", "-o", "name").stdout.split() == ["a", "b"]


def test_the_logs_of_a_process_that_has_ended_are_found_by_the_name_of_its_experiment(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, "name: exp\nprocesses: {a: {command: [echo, hi]}}\n"), "--wait")
    done = symph("logs", "a")
    assert done.returncode == 8
    assert '"a" is a process of exp, which has ended' in done.stderr
    assert "next: symph logs a exp" in done.stderr
    assert "ended: exp\n  next: symph ps exp" in symph("p").stderr
    assert 'there is no experiment "nobody", and nothing runs' in symph("logs", "nobody").stderr
