"""`symph sweep` as users run it: files, real helm on them, and trials in real tmux."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.local.runs import live_runs, runs_of
from tests.chart.harness import helm_objects
from tests.symph import symph
from tests.tools import HELM_VERSIONS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/sweep/experiment.yaml"


@pytest.fixture(autouse=True)
def _places(private_places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    for file in EXAMPLE.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return str(tmp_path / EXAMPLE.name)


GRID = ("--grid", "lr=0.1,0.3", "--grid", "seed=0..1")


def test_a_sweep_is_one_chart_and_a_values_file_for_each_trial(spec: str, tmp_path: Path) -> None:
    done = symph("sweep", spec, *GRID, "-o", "json")
    assert done.returncode == 0, done.stderr
    items = json.loads(done.stdout)["items"]
    assert [item["settings"] for item in items] == [{"lr": lr, "seed": seed} for lr in ("0.1", "0.3") for seed in "01"]
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == [
        "descent",
        "descent-0.1.0.tgz",
        "descent-trials",
    ]
    assert all(Path(item["values"]).is_file() for item in items)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_renders_each_trial_out_of_the_one_chart(version: str, spec: str, tmp_path: Path) -> None:
    symph("sweep", spec, *GRID)
    name = "descent-lr0-3-seed1"
    values = tmp_path / f"dist/descent-trials/{name}.yaml"
    objects = helm_objects(version, tmp_path / "dist/descent", "-f", str(values), release=name)
    job: Any = next(item for (kind, _), item in objects.items() if kind == "Job")
    assert job["metadata"]["name"].startswith(f"{name}-trainer-")
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "LR", "value": "0.3"} in env
    assert {"name": "SYMPH_EXPERIMENT", "value": name} in env


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_settings_outside_of_values_make_a_chart_per_trial(version: str, spec: str, tmp_path: Path) -> None:
    grid = ("--grid", "processes.trainer.cwd=/a,/b", "--set", "groups.trainer.containers.trainer.env.LR=7")
    done = symph("sweep", spec, *grid, "-o", "json")
    assert done.returncode == 0, done.stderr
    items = json.loads(done.stdout)["items"]
    for item, folder in zip(items, ("/a", "/b"), strict=True):
        objects = helm_objects(version, Path(item["chart"]), "-f", item["values"], release=item["name"])
        job: Any = next(item for (kind, _), item in objects.items() if kind == "Job")
        container = job["spec"]["template"]["spec"]["containers"][0]
        assert container["workingDir"] == folder
        assert {"name": "LR", "value": "7"} in container["env"]
    (tmp_path / "dist/descent-trials/mine.yaml").write_bytes(b"\xff not ours")
    symph("sweep", spec, "--grid", "seed=1")
    left = sorted(path.name for path in (tmp_path / "dist/descent-trials").iterdir())
    assert left == ["descent-seed1.yaml", "mine.yaml"]


def test_trials_are_published_with_the_charts_that_they_need_in_one_commit(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")
    repo = ["--repo", str(tmp_path / "charts.git")]
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repo[1]], check=True, timeout=30)
    made = symph("gitops", "init", *repo, "--destination", "dev=rl-dev", "--ci", "none")
    assert made.returncode == 0, made.stderr
    done = symph("sweep", spec, "--grid", "processes.trainer.cwd=/a,/b", "--env", "dev", "--team", "ml", *repo)
    assert done.returncode == 0, done.stderr
    assert "2 trials -> dev" in done.stderr
    assert " on main," in done.stderr
    git = ["git", "-C", repo[1]]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "main"], capture_output=True, text=True, check=True)
    for trial in ("descent-cwd-a", "descent-cwd-b"):
        assert f"charts/ml/{trial}/0.1.0/Chart.yaml" in listed.stdout
        assert f"envs/dev/ml/{trial}.symph-app.yaml" in listed.stdout
    count = subprocess.run([*git, "rev-list", "--count", "main"], capture_output=True, text=True, check=True)
    assert count.stdout == "2\n"


def test_a_second_run_removes_the_trials_that_are_no_more_and_nothing_of_the_users(spec: str, tmp_path: Path) -> None:
    folder = tmp_path / "dist/descent-trials"
    symph("sweep", spec, *GRID)
    (folder / "mine.yaml").write_text("a: 1\n")
    symph("sweep", spec, "--grid", "seed=1")
    assert sorted(path.name for path in folder.iterdir()) == ["descent-seed1.yaml", "mine.yaml"]


def test_a_dry_run_lists_the_trials_and_writes_nothing(spec: str, tmp_path: Path) -> None:
    done = symph("sweep", spec, *GRID, "--dry-run")
    assert done.stdout.splitlines()[0].split() == ["TRIAL", "LR", "SEED"]
    assert not (tmp_path / "dist").exists()


def test_trials_run_here_and_each_has_its_own_settings(spec: str, need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")
    done = symph("sweep", spec, *GRID, "--up", "--parallel", "2", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert [item["state"] for item in json.loads(done.stdout)["items"]] == ["succeeded"] * 4
    assert symph("logs", "descent-lr0-3-seed1").stdout.startswith("descent-lr0-3-seed1: lr=0.3 ")
    assert live_runs() == []
    rows = symph("ls", "-a").stdout.splitlines()
    (row,) = rows[1:]
    assert row.startswith("descent-* (4 trials)  4 succeeded")
    assert "symph sweep show descent" in row
    assert len(symph("ls", "-a", "--sweep", "descent", "-o", "name").stdout.splitlines()) == 4
    assert symph("ls", "-a", "--phase", "failed", "-o", "name").stdout == ""
    shown = symph("sweep", "show", "descent", "--sort", "loss", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    items = json.loads(shown.stdout)["items"]
    losses = [item["metrics"]["loss"] for item in items]
    assert losses == sorted(losses)
    assert [item["best"] for item in items] == [True, False, False, False]


@pytest.fixture
def two_metrics(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    """Run a sweep whose trials print an unrelated number first."""
    need_tool("tmux")
    command = ["sh", "-c", "echo lever: $A; echo error=$B reward=$B"]
    data = {"name": "two", "processes": {"p": {"command": command, "env": {"A": "0", "B": "0"}}}}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "points.csv").write_text("a,b\n1,0.5\n2,0.1\n3,0.9\n")
    done = symph("sweep", "two.yaml", "--list", "points.csv", "--up", "--parallel", "3", "--metric", "error,lever")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[-2:] == ["ERROR", "LEVER"]
    assert "next: symph sweep show two --metric error" in done.stderr


@pytest.mark.usefixtures("two_metrics")
def test_a_best_trial_is_named_only_by_a_metric_that_the_user_chose() -> None:
    plain = symph("sweep", "show", "two")
    assert plain.stdout.splitlines()[0].split()[-3:] == ["LEVER", "ERROR", "REWARD"]
    assert "best:" not in plain.stderr
    assert "next: symph sweep show two --metric lever" in plain.stderr
    both = symph("sweep", "show", "--metric", "error,reward")
    assert ("ERROR  REWARD" in both.stdout, "best: two-" in both.stderr) == (True, True)
    (listed,) = json.loads(symph("sweep", "ls", "-o", "json").stdout)["items"]
    assert (listed["name"], listed["trials"], listed["states"]) == ("two", 3, "3 succeeded")
    items = json.loads(symph("sweep", "show", "two", "-o", "json").stdout)["items"]
    assert not any(item["best"] for item in items)
    ranked = symph("sweep", "show", "two", "--sort", "error")
    header, *rows = ranked.stdout.splitlines()
    assert header.split()[-2:] == ["ERROR", "REWARD"]
    assert [row.split()[-1] for row in rows] == ["0.1", "0.5", "0.9"]
    assert "best: two-a2-b0-1, error 0.1 (lowest, of 3 trials" in ranked.stderr
    highest = symph("sweep", "show", "two", "--sort", "error", "--goal", "max")
    assert highest.stdout.splitlines()[1].split()[-1] == "0.9"
    assert "best: two-a3-b0-9, error 0.9 (highest" in highest.stderr
    assert "best: two-a3-b0-9, reward 0.9 (highest" in symph("sweep", "show", "two", "--sort", "reward").stderr
    both = symph("sweep", "show", "two", "--metric", "error", "--sort", "lever")
    assert both.stdout.splitlines()[0].split()[-2:] == ["LEVER", "ERROR"]
    assert "best: two-a2-b0-1, error" in both.stderr


@pytest.mark.usefixtures("two_metrics")
@pytest.mark.parametrize("option", [("--mean", "a"), ("--goal", "max")])
def test_options_that_need_a_metric_ask_for_it(option: tuple[str, str]) -> None:
    done = symph("sweep", "show", "two", *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert "next: --metric NAME; the trials have: lever, error, reward" in done.stderr


def test_a_failed_trial_fails_the_sweep_and_the_others_still_run(
    tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    need_tool("tmux")
    path = tmp_path / "exp.yaml"
    path.write_text("name: e\nprocesses: {w: {cmds: ['exit $CODE'], env: {CODE: '0'}, restart: never}}\n")
    done = symph("sweep", str(path), "--grid", "code=0,3,0..1", "--up", "-o", "json")
    assert done.returncode == 1
    assert [item["status"] for item in json.loads(done.stdout)["items"]] == [0, 3, 1]
    assert "2 of 3 trials failed" in done.stderr
    failed = symph("sweep", "show", "e", "--failed")
    assert [row.split()[0] for row in failed.stdout.splitlines()[1:]] == ["e-code3", "e-code1"]
    assert "next: symph logs e-code3" in failed.stderr
    assert "no process of e-code0 has failed" in symph("logs", "e-code0", "--failed").stderr


def test_a_dry_run_of_trials_here_starts_none(spec: str, need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")
    done = symph("sweep", spec, *GRID, "--up", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pending") == 4
    assert runs_of("descent-lr0-3-seed1") == []


def test_an_interrupted_sweep_prints_its_progress_and_the_cleanup_command(
    tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    need_tool("tmux")
    path = tmp_path / "exp.yaml"
    path.write_text("name: e\nprocesses: {w: {cmds: ['test $X = 0 || sleep 100'], env: {X: '0'}, restart: never}}\n")
    words = [sys.executable, "-m", "symphony_charts", *f"sweep {path} --grid x=0..2 --up -o json".split()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:
        assert going.stderr is not None
        for line in going.stderr:
            if line == "start e-x1\n":
                break
        going.send_signal(signal.SIGINT)
        out, err = going.communicate(timeout=60)
    assert going.returncode == 130
    states = {item["name"]: item["state"] for item in json.loads(out)["items"]}
    assert (states["e-x0"], states["e-x2"], "running" in states.values()) == ("succeeded", "pending", False)
    assert "1 of 3 trials are done; the same command does the rest" in err
    assert "symph rm --match 'e-x.*'" in err
    assert live_runs() == []


def test_a_setting_that_names_nothing_is_told_once_with_what_there_is(spec: str) -> None:
    done = symph("sweep", spec, "--grid", "lrr=1,2,3")
    assert done.returncode == 3
    assert done.stderr.count('declares the variable "lrr"') == 1
    assert "did you mean LR?" in done.stderr


def test_a_sweep_on_argo_is_one_file_with_one_workflow(spec: str, tmp_path: Path) -> None:
    done = symph("sweep", spec, *GRID, "--on", "argo", "--parallel", "2", "-o", "json")
    assert done.returncode == 0, done.stderr
    documents = list(yaml.safe_load_all((tmp_path / "dist/descent-sweep.yaml").read_text()))
    assert [item["kind"] for item in documents] == ["ServiceAccount", "Role", "RoleBinding", "Workflow"]
    sweep = documents[-1]["spec"]["templates"][0]
    items = json.loads(done.stdout)["items"]
    assert [task["name"] for task in sweep["dag"]["tasks"]] == [item["name"] for item in items]
    assert {item["workflow"] for item in items} == {documents[-1]["metadata"]["name"]}
    assert sweep["parallelism"] == 2
    assert symph("sweep", spec, *GRID, "--on", "argo", "--dry-run", "--dest", "none").returncode == 0
    assert not (tmp_path / "none").exists()


def test_a_workflow_runs_trials_that_values_cannot_express(spec: str, tmp_path: Path) -> None:
    done = symph("sweep", spec, "--grid", "processes.trainer.cwd=/a,/b", "--on", "argo")
    assert done.returncode == 0, done.stderr
    *_, workflow = yaml.safe_load_all((tmp_path / "dist/descent-sweep.yaml").read_text())
    tasks = workflow["spec"]["templates"][0]["dag"]["tasks"]
    given = [{each["value"] for each in task["arguments"]["parameters"]} for task in tasks]
    assert ['"/a"' in given[0], '"/b"' in given[1]] == [True, True]


@pytest.mark.parametrize("words", [("--on", "argo"), ("--up",), ("--on", "kube", "--up")])
def test_git_and_a_run_at_once_is_wrong_usage(words: tuple[str, ...], spec: str) -> None:
    done = symph("sweep", spec, *GRID, "--env", "dev", *words)
    assert done.returncode == 2
    assert "choose one" in done.stderr


@pytest.mark.parametrize(("words", "step"), [(("--timeout", "2h"), "set `deadline`"), (("--again",), "leave it out")])
def test_options_that_a_workflow_lacks_are_refused(words: tuple[str, ...], step: str, spec: str) -> None:
    done = symph("sweep", spec, *GRID, "--on", "argo", *words)
    assert (done.returncode, f"next: {step}" in done.stderr) == (2, True)
    assert not Path("dist").exists()


def test_a_search_runs_what_optuna_proposes_and_goes_on_where_it_stood(
    spec: str, need_tool: Callable[[str], str]
) -> None:
    need_tool("tmux")
    pytest.importorskip("optuna", reason="the extra optuna is not installed")
    words = ("sweep", spec, "--loguniform", "lr=1e-3..1", "--metric", "loss", "--up", "--parallel", "2", "-o", "json")
    first = json.loads(symph(*words, "--search", "2").stdout)["items"]
    both = json.loads(symph(*words, "--search", "3").stdout)["items"]
    assert [item["name"] for item in both[:2]] == [item["name"] for item in first]
    assert [item["kept"] for item in both] == [True, True, False]
    shown = json.loads(symph("sweep", "show", "descent", "-o", "json").stdout)["items"]
    assert sorted(item["name"] for item in shown) == sorted(item["name"] for item in both)


@pytest.mark.parametrize(
    "words",
    [
        "--search 2 --up",
        "--search 2 --metric loss",
        "--search 2 --up --metric loss --random 2",
        "--search 2 --up --metric loss --on argo",
        "--early-stop median --up",
        "--early-stop median --metric loss",
        "--early-stop median --up --metric loss --on argo",
        "--early-stop median --up --metric loss --on kube --no-wait",
        "--early-stop median --grace x",
    ],
)
def test_impossible_options_are_wrong_usage(words: str, spec: str) -> None:
    pytest.importorskip("optuna", reason="the extra optuna is not installed")
    assert symph("sweep", spec, *GRID, *words.split()).returncode == 2
    assert not Path("dist").exists()


def test_workflow_settings_of_a_trial_are_refused_and_not_dropped(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nimage: busybox\nprocesses: {w: {cmds: [date], env: {X: '0'}}}\n"
        "workload: {kind: argo, argo: {needs: {data: []}, retries: 2, schedules: '0 3 * * *', parameters: [X]}}\n"
    )
    done = symph("sweep", "e.yaml", "--grid", "x=0..1", "--on", "argo")
    assert done.returncode == 3
    for key in ("needs", "retries", "schedules", "parameters"):
        assert f"workload.argo.{key}" in done.stderr
    assert "--on kube --up" in done.stderr
    assert not Path("dist").exists()


def test_trials_on_a_cluster_cannot_all_have_one_name(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nimage: busybox\nprocesses: {w: {cmds: [date], env: {X: '0'}, names: db}}\n"
    )
    for on in (["--on", "argo"], []):
        done = symph("sweep", "e.yaml", "--grid", "x=0..1", *on)
        assert done.returncode == 3
        assert "all trials on a cluster would use the same name db" in done.stderr
    assert not Path("dist").exists()
    assert "--spec-set processes.w.names=null" in done.stderr
    assert symph("sweep", "e.yaml", "--grid", "x=0..1", "--spec-set", "processes.w.names=null").returncode == 0


def test_a_sweep_on_a_cluster_that_is_not_there_says_so(spec: str, tmp_path: Path) -> None:
    done = symph("sweep", spec, *GRID, "--on", "argo", "--up", "--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 6, done.stderr
    assert "no cluster is configured" in done.stderr
