"""`symph local`: environments, plans, exports and past runs; names for completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.local.run_files import write_json
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, runs_of
from symphony_charts.system import remover
from tests.local.records import plan_of

SPEC = """
name: exp
image: example.org/i:1
secrets: [token]
processes:
  a: {command: [/bin/sleep, "300"], env: {LR: "it's $HOME", API_KEY: k1, URL: x-t0psecret-y}}
  b: {command: [/bin/sleep, "300"], connects: []}
"""


def symph(*words: str) -> int:
    return SymphonyParser().main(words)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t0psecret\n")
    (tmp_path / "experiment.yaml").write_text(SPEC)
    return tmp_path / "experiment.yaml"


@pytest.fixture
def running(here: None, spec: Path) -> Path:
    assert symph("up", str(spec)) == 0
    return spec


def test_the_environment_can_be_sourced(running: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert symph("local", "env", "a", "exp") == 0
    shown = capsys.readouterr()
    assert "t0psecret" not in shown.out + shown.err
    assert "masked: API_KEY, URL" in shown.err
    script = f'{shown.out}\nprintf "%s|%s|%s" "$LR" "$SYMPHONY_ROLE" "${{API_KEY-unset}}"'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "it's $HOME|a|unset"


def test_a_file_has_the_environment_of_its_run(running: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    symph("local", "env", "a", "exp", "--show-secrets", "-o", "json")
    live = json.loads(capsys.readouterr().out)["env"]
    symph("local", "env", "a", "--spec", str(running), "--show-secrets", "-o", "json")
    planned = json.loads(capsys.readouterr().out)["env"]
    assert live["URL"] == "x-t0psecret-y"
    different = {name for name in live if live[name] != planned.get(name)} | (planned.keys() - live.keys())
    assert different == {"SYMPH_RUN"}


def test_several_processes_have_to_be_told_apart(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert symph("local", "env", "--spec", str(spec)) == 2
    assert "choose one: a, b" in capsys.readouterr().err


def test_a_plan_shows_no_secrets_unless_asked(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert symph("local", "render", str(spec), "-o", "json") == 0
    text = capsys.readouterr().out
    assert "t0psecret" not in text
    assert [item["name"] for item in json.loads(text)["processes"]] == ["a", "b"]
    symph("local", "render", str(spec), "--show-secrets")
    assert "x-t0psecret-y" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["tmuxp", "process-compose"])
def test_an_export_is_private_and_is_not_written_over_other_files(
    spec: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    words = ["local", "render", str(spec), "--as", form, "--to", str(folder)]
    assert symph(*words, "--dry-run") == 0
    assert not folder.exists()
    shown = capsys.readouterr().out
    assert symph(*words, "-o", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (folder / record["main"]).read_text() == shown
    assert folder.stat().st_mode & 0o777 == 0o700
    assert "t0psecret" not in shown
    assert symph(*words) == 7
    assert symph(*words, "--force") == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").touch()
    assert symph(*words[:-1], str(other), "--force") == 7


def test_a_regex_that_is_none_is_refused_with_a_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert symph("logs", "a", "exp", "--regex", "[") == 2
    what, where, step = capsys.readouterr().err.splitlines()
    assert (what.startswith("error: --regex is not a valid regular expression"), where, "backslash" in step) == (
        True,
        "  at:   --regex",
        True,
    )


def test_history_replay_and_gc_of_a_run(running: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = runs_of("exp")[-1]
    assert symph("local", "replay", "exp", "--force") == 0
    capsys.readouterr()
    assert symph("local", "history", "exp", "-o", "name") == 0
    ids = capsys.readouterr().out.split()
    assert ids[0] == first.run_id
    assert symph("local", "gc", "--keep", "0", "--dry-run", "-o", "name") == 0
    assert capsys.readouterr().out.split() == ids[:1]
    assert first.folder.exists()
    assert symph("local", "gc", "--keep", "0", "-o", "name") == 2, "it asks first"
    assert (first.run_id in capsys.readouterr().err, first.folder.exists()) == (True, True)
    assert symph("local", "gc", "--keep", "0", "-o", "name", "--yes") == 0
    assert [run.run_id for run in runs_of("exp")] == ids[1:]
    assert runs_of("exp")[-1].is_live


@pytest.fixture
def ended(private_places: Path) -> Run:
    run = Run(private_places / "state" / "local" / "exp" / "20260101-000000-000000")
    remover.make(run.home, run.experiment, run.run_id)
    write_record(run.folder / "plan.json", plan_of())
    write_json(run.folder / "state.json", {"phase": "finished", "started": 900.0, "ended": 1000.0, "processes": []})
    return run


def test_gc_and_delete_remove_nothing_that_is_no_run(ended: Run, capsys: pytest.CaptureFixture[str]) -> None:
    other = ended.home / "lib" / "python3"
    other.mkdir(parents=True)
    (other / "site.py").write_text("mine")
    outside = ended.home.parent / "outside" / "sub"
    outside.mkdir(parents=True)
    (outside / "keep").write_text("mine")
    (ended.home / "link").symlink_to(outside.parent)
    for path in (other, outside):
        os.utime(path, (1, 1))
    assert symph("local", "gc", "--keep", "0", "--yes", "-o", "name") == 1
    printed = capsys.readouterr()
    assert printed.out.split() == [ended.run_id]
    assert printed.err.count("warning: cannot be removed: ") == 2
    assert "move or remove it by hand" in printed.err
    assert symph("delete", "lib", "--yes", "--force") == 8
    assert [(other / "site.py").read_text(), (outside / "keep").read_text()] == ["mine", "mine"]


def test_a_run_without_its_marker_is_never_removed(ended: Run) -> None:
    for folder in (ended.folder, ended.home):
        (folder / remover.MARKER).unlink()
    assert symph("local", "gc", "--keep", "0", "--yes") == 1
    assert symph("delete", "exp", "--yes") == 8
    assert (ended.folder / "plan.json").exists()


def test_nothing_starts_in_a_state_folder_of_somebody_else(private_places: Path, tmp_path: Path) -> None:
    (private_places / "state" / "local" / "lib").mkdir(parents=True)
    (tmp_path / "e.yaml").write_text("name: e\nprocesses:\n  a: {command: ['true']}\n")
    assert symph("up", str(tmp_path / "e.yaml")) == 8
    assert [path.name for path in (private_places / "state" / "local").iterdir()] == ["lib"]


@pytest.mark.parametrize("words", [("--older-than", "7"), ("--older-than", "x"), ("--keep", "-1")])
def test_gc_refuses_what_it_does_not_understand(words: tuple[str, ...]) -> None:
    assert symph("local", "gc", *words) == 2


def test_a_real_bash_completes_experiments_and_processes(
    running: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    capsys.readouterr()
    parser = SymphonyParser()
    parser.master_parser.prog = "symph"
    parser.main(["completion", "bash"])
    (tmp_path / "c.bash").write_text(capsys.readouterr().out)
    program = """
        source c.bash
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _shtab_symph; echo "${COMPREPLY[*]}"; }
        try symph down e; try symph logs ""; try symph local replay e; try symph local re; try symph publish --env ""
        symph down exp >/dev/null 2>&1; try symph down e; try symph logs a e
    """
    (tmp_path / ".symph.yaml").write_text("environments: [dev, prod]\n")
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["exp", "a b", "exp", "render replay", "dev prod", "", "exp"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_ask_for_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert symph("completion", shell) == 0
    text = capsys.readouterr().out
    assert "__complete experiments" in text
    assert "__complete processes" in text


def test_a_folder_that_is_no_name_is_not_offered_to_a_shell(
    private_places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "$(touch x)", "a b", "-n"):
        (private_places / "state" / "local" / name).mkdir(parents=True)
    assert symph("__complete", "experiments") == 0
    assert capsys.readouterr().out.split("\n") == ["good", ""]
