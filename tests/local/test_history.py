"""Past runs: stored without secrets, started again, removed only when they are over."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local import up
from symphony_charts.local.history import (
    all_runs,
    find_past,
    load_saved,
    past_run,
    removable,
    remove,
    save_spec,
)
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.environment import secret_names, with_secrets, without_secrets
from symphony_charts.local.plan.scripts import read_environment, start_script
from symphony_charts.local.run_files import write_json
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, runs_of
from symphony_charts.local.show_environment import shell_text
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import ProcessRef, allocate
from symphony_charts.system import remover
from tests.local.records import plan_of
from tests.local.runs import log_of, python, start


def ended(places: Path, name: str, run_id: str, phase: str = "finished", ended_at: float | None = 1000.0) -> Run:
    run = Run(places / "state" / "local" / name / run_id)
    remover.make(run.home, name, run_id)
    write_json(run.folder / "state.json", {"phase": phase, "started": 900.0, "ended": ended_at, "processes": []})
    return run


def test_the_newest_ended_runs_of_each_experiment_are_kept(private_places: Path) -> None:
    runs = [ended(private_places, name, f"2026010{day}") for name in ("a", "b") for day in range(1, 5)]
    assert removable(all_runs(), keep=3) == [runs[0], runs[4]]
    assert removable(all_runs("b"), keep=0) == runs[4:]


def test_a_young_run_is_kept_when_only_old_ones_are_meant(private_places: Path) -> None:
    old = ended(private_places, "a", "1", ended_at=1000)
    young = ended(private_places, "a", "2", ended_at=time.time() - 600)
    assert removable([old, young], keep=0, older_than_s=3600) == [old]


@pytest.mark.parametrize("phase", ["starting", "running", "stopping"])
def test_a_live_run_is_never_removed(private_places: Path, phase: str) -> None:
    run = ended(private_places, "a", "1", phase=phase, ended_at=None)
    assert removable([run], keep=0) == []
    with pytest.raises(Conflict, match="is live"):
        remove(run)
    assert run.folder.exists()


def test_a_run_that_is_being_started_is_not_removed_but_a_stale_folder_is(private_places: Path) -> None:
    run = Run(private_places / "state" / "local" / "a" / "1")
    run.folder.mkdir(parents=True)
    assert removable([run], keep=0) == []
    os.utime(run.folder, (1, 1))
    assert removable([run], keep=0) == [run]
    assert past_run(run)["phase"] == "broken"


def test_a_run_is_found_by_the_beginning_of_its_id(private_places: Path) -> None:
    runs = [ended(private_places, "a", run_id) for run_id in ("20260101-1", "20260102-1", "20260102-2")]
    assert find_past("a", "20260101") == runs[0]
    assert find_past("a") == runs[2]
    with pytest.raises(NotFound, match="several"):
        find_past("a", "20260102")
    with pytest.raises(NotFound, match="no run"):
        find_past("a", "2027")


def test_the_saved_experiment_holds_no_secret_and_is_the_same_again(private_places: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0psecret-value\n")
    data = {"name": "x", "secrets": ["token"], "processes": {"a": {"command": ["c"], "env": {"K": "t0psecret-value"}}}}
    experiment = from_data(data)
    run = ended(private_places, "x", "1")
    write_record(run.folder / "plan.json", plan_of(folder=str(tmp_path)))
    save_spec(run, experiment, tmp_path)
    assert "t0psecret" not in (run.folder / "spec.json").read_text()
    assert load_saved(run).experiment == experiment


@pytest.mark.usefixtures("here")
def test_a_replayed_run_says_the_same(tmp_path: Path) -> None:
    program = "import os; print(os.environ['SYMPH_S_PORT'], os.environ['LR'], open('in').read())"
    (tmp_path / "in").write_text("input")
    first = start(tmp_path, processes={"a": {**python(program), "env": {"LR": "$x'"}, "binds": "s"}})
    assert up.wait(first) == 0
    saved = load_saved(runs_of("exp")[-1])
    time.sleep(0.001)
    second = up.up(saved.experiment, allocate(saved.experiment, saved.ports), folder=saved.folder)
    assert second is not None
    assert up.wait(second) == 0
    assert log_of(second, "a") == log_of(first, "a") == "7000 $x' input\n"
    assert past_run(second)["replay"]


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
SECRETS = {"token": b"t0psecret\n", "other": b"t0psecret-longer", "key": b"\xff\xfe\x00\x01"}


@given(st.recursive(TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8))
def test_data_comes_back_whole(data: object) -> None:
    mixed = [data, "a t0psecret b", {"k": ["t0psecret-longer", "t0psecrett0psecret"]}]
    hidden = without_secrets(mixed, SECRETS)
    assert "t0psecret" not in repr(hidden).replace(repr(data), "")
    assert with_secrets(hidden, SECRETS) == mixed


def test_a_changed_secret_comes_back_as_it_is_now() -> None:
    hidden = without_secrets({"env": "url?t0psecret"}, {"token": b"t0psecret"})
    assert with_secrets(hidden, {"token": b"fresh-one"}) == {"env": "url?fresh-one"}


def test_variables_are_secret_by_content_by_source_and_by_name() -> None:
    env = {"URL": {"secret": "s", "key": "k"}, "A": "x-t0psecret-y", "API_KEY": "k", "PLAIN": "p", "KEYBOARD": "de"}
    experiment = from_data({"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "env": env}}})
    seen = {**dict.fromkeys(env, "v"), "A": "x-t0psecret-y", "SYMPH_TOKEN_PORT": "7000"}
    assert secret_names(experiment, ProcessRef("a", "a"), seen, SECRETS) == {"URL", "A", "API_KEY"}


@given(st.dictionaries(st.from_regex(r"[-._A-Za-z][-._A-Za-z0-9]{0,8}", fullmatch=True), TEXTS, max_size=6))
def test_the_environment_is_read_back_from_a_start_script(env: dict[str, str]) -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"command": ["export"], "cwd": "/export A="}}})
    (process,) = plan_here(experiment, [], Path("/"), "r1").processes
    assert read_environment(start_script(replace(process, env=env))) == env


def test_masked_variables_set_nothing_when_sourced() -> None:
    text = shell_text({"A": "1", "TOKEN": "x", "my.var": "a\nb"}, {"TOKEN"})
    assert text.splitlines()[0] == "export A='1'"
    assert text.splitlines()[1].startswith("# ")
    assert "x" not in text.splitlines()[1].partition("=")[2].split()[0]
    assert text.splitlines()[2:] == ['# a shell cannot set this: "my.var=a\\nb"']
