"""`symph up`, `process`, `logs`, `ls`, `down`, `delete` on real tmux, as users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from symphony_charts.local.runs import live_runs
from tests.symph import symph
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def program_on_path(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def spec(folder: Path, text: str) -> str:
    path = folder / "experiment.yaml"
    path.write_text(text)
    return str(path)


FOREVER = "name: exp\nprocesses: {a: {command: [sleep, '300']}}\n"


def test_a_failed_run_names_process_status_place_and_next_step(tmp_path: Path) -> None:
    path = spec(
        tmp_path, "name: exp\nprocesses:\n  w: {cmds: ['exit 7'], restart: never}\n  m: {command: [sleep, '99']}\n"
    )
    done = symph("up", path, "--wait")
    assert done.returncode == 7
    assert 'process "w" failed (exit status 7)' in done.stderr
    assert "processes.w" in done.stderr
    assert "next: symph logs w exp" in done.stderr


def test_a_trial_of_scale_and_replay_is_json_if_asked(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER), check=True)
    for words in (("scale", "a=2", "exp"), ("local", "replay", "exp", "--force")):
        done = symph(*words, "--dry-run", "-o", "json", check=True)
        assert json.loads(done.stdout)["dryRun"] is True


def test_processes_are_listed_as_json_and_in_symphonys_columns(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, FOREVER))
    items = json.loads(symph("p", "-o", "json").stdout)["items"]
    assert [(item["name"], item["phase"], item["ready"]) for item in items] == [("a", "running", True)]
    done = symph("logs", "nobody")
    assert (done.returncode, "its processes: a" in done.stderr) == (8, True)
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


def test_a_dry_run_says_that_nothing_was_changed(tmp_path: Path) -> None:
    text = f"image: python:3.12\n{FOREVER}"
    symph("up", spec(tmp_path, text))
    path = spec(tmp_path, text.replace("300", "301"))
    (tmp_path / "file").write_text("x")
    verbs = [
        (["up", path], "restart"),
        (["down"], "WOULD END"),
        (["restart", "a"], "WOULD RESTART"),
        (["rm", "exp"], "exp"),
        (["cp", str(tmp_path / "file"), "a:/copy"], ""),
        (["local", "gc", "--keep", "0"], ""),
        (["init", "new"], "would make"),
        (["package", path, "-d", str(tmp_path / "dist")], "would be written"),
    ]
    for words, text in verbs:
        done = symph(*words, "--dry-run")
        assert (done.returncode, text in done.stdout) == (0, True), (words, done)
        assert "nothing was changed (--dry-run)" in done.stderr, (words, done)
    for words in (["down"], ["restart"], ["rm", "exp"], ["package", path]):
        assert json.loads(symph(*words, "--dry-run", "-o", "json").stdout)["dryRun"] is True, words
    assert [item["phase"] for item in json.loads(symph("ps", "-o", "json").stdout)["items"]] == ["running"]
    done = symph("restart", "a")
    assert ("RESTARTED" in done.stdout, "WOULD" in done.stdout, done.stderr) == (True, False, "")
    assert "dryRun" not in json.loads(symph("down", "-o", "json").stdout)


def test_a_failure_that_ends_more_here_than_on_a_cluster_says_so(tmp_path: Path) -> None:
    processes = "{a: {command: [sh, -c, exit 3]}, b: {command: [sleep, '300']}}"
    other = "image: i\nworkload: {kind: appwrapper}\n"
    for more, is_said in ((other, True), ("", False)):
        done = symph("up", spec(tmp_path, f"name: exp\n{more}processes: {processes}\n"), "--wait")
        assert (done.returncode, "on kind appwrapper, other groups continue" in done.stderr) == (3, is_said), (
            done.stderr
        )


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


def test_a_spec_file_names_the_experiment_to_delete_and_no_other(tmp_path: Path) -> None:
    path = spec(tmp_path, FOREVER)
    symph("up", spec(tmp_path, FOREVER.replace("name: exp", "name: exp-2")))
    spec(tmp_path, FOREVER)
    assert symph("delete", path, "--yes").returncode == 8
    symph("up", path)
    assert symph("delete", path, "--yes").returncode == 0
    assert [item["name"] for item in json.loads(symph("ls", "-o", "json").stdout)["items"]] == ["exp-2"]


def test_a_run_of_another_checkout_is_not_taken_over(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        spec(folder, FOREVER)
    symph("up", str(first))
    before = live_runs()[0].state()
    for words in (["up"], ["up", "--dry-run"], ["run"], ["run", "-d"]):
        done = symph(*words, str(second))
        assert done.returncode == 7, (words, done)
        assert f'experiment "exp" is already running from another folder: {first}' in done.stderr
        assert "next: end it: symph down exp; replace it: --force" in done.stderr
    (tmp_path / "link").symlink_to(first)
    assert symph("up", str(tmp_path / "link")).returncode == 0
    assert live_runs()[0].state() == before
    assert symph("up", "--force", str(second)).returncode == 0
    assert live_runs()[0].plan().folder == str(second)


def test_a_sweep_ends_no_trial_of_another_checkout(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    text = "name: exp\nprocesses: {{a: {{command: [sleep, '{}'], env: {{A: '0'}}}}}}\n"
    for folder, seconds in ((first, 300), (second, 301)):
        folder.mkdir()
        spec(folder, text.format(seconds))
    argv = [sys.executable, "-m", "symphony_charts", "sweep", str(first), "--grid", "a=1", "--up"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as sweep:
        eventually(lambda: [run.state().phase for run in live_runs()] == ["running"])
        done = symph("sweep", str(second), "--grid", "a=1", "--up", "--again")
        assert (done.returncode, "from another folder" in done.stdout) == (1, True), done
        assert sweep.poll() is None
        local_run.down(live_runs()[0])
        sweep.communicate()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return folders with the experiments `one` and `two`, each with a process `agent`."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        spec(tmp_path / name, f"name: {name}\nprocesses: {{agent: {{command: [sh, -c, 'echo {name}; sleep 300']}}}}\n")
    return tmp_path / "one", tmp_path / "two"


def test_verbs_without_a_name_mean_the_experiment_of_their_folder(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        assert symph("up", cwd=folder).returncode == 0
    symph("use", "two")
    for folder in folders:
        name = folder.name
        eventually(lambda folder=folder, name=name: symph("logs", "agent", cwd=folder).stdout == f"{name}\n")  # type: ignore[misc]
        assert symph("use", cwd=folder).stdout == f"{name}\n"
        assert symph("describe", "-o", "name", cwd=folder).stdout == f"{name}\n"
        assert symph("restart", "--dry-run", "-o", "json", cwd=folder).returncode == 0
        assert symph("down", "--dry-run", "-o", "name", cwd=folder).stdout == f"{name}\n"
    assert symph("down", cwd=folders[0]).returncode == 0
    assert [run.experiment for run in live_runs()] == ["two"]
    assert symph("logs", cwd=folders[0]).stdout == "one\n"
    assert json.loads(symph("ps", "-o", "json", cwd=folders[0]).stdout)["items"][0]["phase"] == "stopped"


def test_verbs_that_end_runs_ask_before_using_a_run_of_another_folder(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = folders
    symph("up", cwd=two)
    before = [run.state().processes for run in live_runs()]
    for folder in (one, tmp_path):
        for words, step in (
            (["down"], "down two"),
            (["restart", "agent"], "restart agent -e two"),
        ):
            done = symph(*words, cwd=folder)
            assert (done.returncode, str(two) in done.stderr) == (2, True), done
            assert f"next: symph {step}, or add --yes" in done.stderr
        assert symph("rm", cwd=folder).returncode == 2
    assert [run.state().processes for run in live_runs()] == before
    looked = symph("ps", cwd=one)
    assert (looked.returncode, f"two came from {two}" in looked.stderr) == (0, True), looked
    assert symph("restart", "agent", "two", cwd=one).returncode == 0
    assert symph("down", "--yes", "-o", "name", cwd=one).stdout == "two\n"
    assert not live_runs()


def test_a_run_belongs_to_the_folder_that_started_it_too(folders: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = folders
    assert symph("up", str(one), cwd=tmp_path).returncode == 0
    # A second `up`, from the spec's own folder, does not change the recorded starter.
    assert symph("up", cwd=one).returncode == 0
    assert symph("restart", cwd=tmp_path).returncode == 0
    assert symph("down", cwd=two).returncode == 2
    assert symph("down", "-o", "name", cwd=tmp_path).stdout == "one\n"


def test_a_spec_or_its_folder_stands_for_the_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = folders
    for folder in folders:
        symph("up", cwd=folder)
    eventually(lambda: symph("logs", "one/experiment.yaml", cwd=tmp_path).stdout == "one\n")
    eventually(lambda: symph("logs", "agent", "./two", cwd=tmp_path).stdout == "two\n")
    assert json.loads(symph("describe", "..", "-o", "json", cwd=one).stdout or "{}") == {}
    assert json.loads(symph("describe", "../two", "-o", "json", cwd=one).stdout)["name"] == "two"
    assert symph("restart", "agent", str(two), cwd=one).returncode == 0
    assert symph("down", "experiment.yaml", "-o", "name", cwd=two).stdout == "two\n"
    assert symph("down", ".", "-o", "name", cwd=one).stdout == "one\n"


def test_logs_of_several_experiments_ask_for_a_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for folder in folders:
        symph("up", cwd=folder)
    for word in ("agent", "nothere"):
        done = symph("logs", word, cwd=tmp_path)
        assert done.returncode == 8
        assert "several experiments run here: one, two" in done.stderr
        assert "name one" in done.stderr


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


def test_verbs_that_look_mean_the_last_run_of_this_folder_after_its_end(folders: tuple[Path, Path]) -> None:
    one, two = folders
    ended = "name: {}\nprocesses: {{a: {{command: [echo, {}]}}}}\n"
    for name in ("first", "last"):
        (two / f"{name}.yaml").write_text(ended.format(name, name))
        assert symph("run", f"{name}.yaml", cwd=two).returncode == 0
    assert symph("up", cwd=one).returncode == 0
    assert symph("logs", cwd=two).stdout == symph("logs", "a", cwd=two).stdout == "last\n"
    assert symph("ps", "-q", cwd=two).stdout == "a\n"
    assert symph("use", cwd=two).stdout == "last\n"
    status = json.loads(symph("status", "-o", "json", cwd=two).stdout)["items"]
    assert [(row["name"], row["phase"]) for row in status] == [("one", "running"), ("last", "succeeded")]
    assert symph("logs", "first", "a", cwd=two).stdout == "first\n"
    assert symph("down", "one").returncode == 0
    done = symph("down", cwd=two)
    assert (done.returncode, "last has ended, and no experiment runs here" in done.stderr) == (8, True), done


def test_the_logs_of_a_process_that_has_ended_are_found_by_the_name_of_its_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    symph("up", spec(tmp_path, "name: exp\nprocesses: {a: {command: [echo, hi]}}\n"), "--wait")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = symph("logs", "a")
    assert done.returncode == 8
    assert '"a" is a process of exp, which ended' in done.stderr
    assert "next: symph logs a exp" in done.stderr
    assert "exp was the last one to end\n  next: symph ps exp" in symph("p").stderr
    assert 'there is no experiment "nobody", and nothing runs' in symph("logs", "nobody").stderr


def test_one_failure_beside_others_that_run_is_no_failed_experiment(tmp_path: Path) -> None:
    processes = "{bad: {cmds: ['exit 3']}, good: {command: [sleep, '300']}}"
    symph("up", spec(tmp_path, f"name: exp\non_failure: continue\nprocesses: {processes}\n"))
    eventually(lambda: "running (1 failed)" in symph("ls").stdout, 60)
    for verb in (["describe", "exp"], ["status", "exp"], ["top", "exp", "--once"]):
        assert "failed" in symph(*verb).stdout
    assert [item["phase"] for item in json.loads(symph("ls", "-o", "json").stdout)["items"]] == ["running"]
    assert symph("wait", "exp", "--for", "running").stdout == "exp running (1 failed)\n"
    assert "has failed and will not be succeeded: bad failed 3" in symph("wait", "exp", "--for", "succeeded").stderr
    late = symph("wait", "exp", "--for", "ended", "--timeout", "1s").stderr
    assert '"exp" is not ended after 1 s, but running: bad failed 3' in late
    assert '"good" is not succeeded after 1 s, but running\n' in (
        symph("wait", "exp", "-p", "good", "--for", "succeeded", "--timeout", "1s").stderr
    )


def test_a_command_beside_a_process_has_its_path_and_the_status_of_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    symph("up", spec(tmp_path, FOREVER))
    assert symph("exec", "a", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert symph("ssh", "a", stdin='echo "$PATH"; kill -15 $$\n').stdout.startswith(f"{tmp_path / 'bin'}:")
    assert symph("ssh", "a", stdin="kill -15 $$\n").returncode == 143


PEERS = """\
name: exp
processes:
  learner: {command: [sleep, "300"], binds: params}
  agent: {command: [sleep, "300"], connects: params, binds: acts, replicas: 2}
  viewer: {command: [sleep, "300"], connects: acts, restart: on-failure}
  other: {command: [sleep, "300"]}
"""


def test_restart_warns_of_peers_that_would_fail_and_can_restart_them_together(tmp_path: Path) -> None:
    symph("up", spec(tmp_path, PEERS))
    alone = symph("restart", "learner", "--dry-run", "-o", "name")
    assert alone.stdout.split() == ["learner"]
    assert "agent-0, agent-1 connect to it; if one fails without its peer, the run ends" in alone.stderr
    assert "next: symph restart learner -e exp --with-peers" in alone.stderr
    together = symph("restart", "learner", "--with-peers", "--dry-run", "-o", "name")
    assert together.stdout.split() == ["learner", "agent-0", "agent-1", "viewer"]
    assert "warning" not in together.stderr + symph("restart", "agent-0", "--dry-run").stderr


def test_a_replica_beside_a_process_of_its_name_has_a_row_of_its_own(tmp_path: Path) -> None:
    processes = "{agent: {command: [sleep, '300'], replicas: 2}, agent-1: {command: [sleep, '300']}}"
    symph("up", spec(tmp_path, f"name: exp\nprocesses: {processes}\n"))
    names = [item["name"] for item in json.loads(symph("ps", "-o", "json").stdout)["items"]]
    assert names == ["agent-0", "agent/1", "agent-1"]
    for name in names:
        dry = symph("restart", name, "-e", "exp", "--dry-run", "-o", "json").stdout
        assert [item["name"] for item in json.loads(dry)["items"]] == [name]


def test_a_runtime_folder_with_a_long_path_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    done = symph("up", spec(tmp_path, FOREVER))
    assert done.returncode == 6
    assert "longer than 107 bytes" in done.stderr
    assert "next: set SYMPH_RUNTIME_DIR to a folder with a shorter path" in done.stderr
    assert symph("ls", "-a", "-o", "name").stdout == ""


def test_the_status_of_one_experiment_shows_processes_services_and_events(folders: tuple[Path, Path]) -> None:
    one, _ = folders
    symph("up", cwd=one)
    page = symph("status", "one", cwd=one).stdout
    assert [title for title in ("WHERE", "GROUP  PROCESS", "AGE", "Started") if title not in page] == []
    (item,) = json.loads(symph("status", "experiment.yaml", "-o", "json", cwd=one).stdout)["items"]
    assert [process["name"] for process in item["details"]["processes"]] == ["agent"]
    assert item["details"]["events"]
