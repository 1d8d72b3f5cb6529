"""The environment of a process here: the variables of a pod, and those that only a cluster can set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import PlannedProcess
from symphony_charts.local.plan.scripts import start_script
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start

FROM_A_SECRET: dict[str, Any] = {"env": {"KEY": {"secret": "s", "key": "k"}}}


def environment_of(**process: object) -> dict[str, str]:
    experiment = from_data({"name": "x", "processes": {"a": {"command": ["c"], **process}}})
    return plan_here(experiment, allocate(experiment), Path("/"), "r1").processes[0].env


def test_a_value_that_only_a_cluster_has_is_refused_with_its_place() -> None:
    with pytest.raises(SpecError) as refused:
        environment_of(**FROM_A_SECRET)
    assert [(problem.path, problem.next) for problem in refused.value.problems] == [
        ("processes.a.env.KEY", "set `local: {env: {KEY: ...}}`")
    ]


def test_a_value_that_only_a_cluster_has_may_be_given_for_here() -> None:
    assert environment_of(**FROM_A_SECRET, local={"env": {"KEY": "mine"}})["KEY"] == "mine"


def test_processes_reach_the_services_of_their_own_pod_inside_of_it_as_in_a_cluster() -> None:
    processes = {
        "cache": {"command": ["c"], "binds": "cache", "lifecycle": "service"},
        "main": {"command": ["m"], "connects": "cache"},
    }
    experiment = from_data({"name": "x", "groups": {"g": {"replicas": 2, "processes": processes}}})
    made = plan_here(experiment, allocate(experiment), Path("/"), "r1").processes
    listening = {one.env["SYMPH_INDEX"]: one.env for one in made if "SYMPH_CACHE_BIND_HOST" in one.env}
    dialling = {one.env["SYMPH_INDEX"]: one.env for one in made if "SYMPH_CACHE_BIND_HOST" not in one.env}
    assert len(listening) == len(dialling) == 2
    for index, env in dialling.items():
        for part in ("HOST", "PORT", "ADDR"):
            assert env[f"SYMPH_CACHE_{part}"] == listening[index][f"SYMPH_CACHE_{part}"]


def test_a_value_sees_the_variables_before_it_as_in_a_pod() -> None:
    env = environment_of(env={"A": "$(SYMPH_GROUP)", "B": "$(A)-$(Z)", "Z": "z"})
    assert (env["A"], env["B"]) == ("a", "a-z")


def test_what_an_image_or_a_node_sets_is_named_by_no_value_as_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/$$me")
    monkeypatch.setenv("TOKEN", "a$$b$(HOME)")
    processes = {"a": {"command": ["c", "$(HOME) $(TOKEN) $(HOSTNAME)"], "env": {"B": "$(HOME) $(TOKEN)"}}}
    experiment = from_data({"name": "x", "processes": processes, "local": {"pass_env": ["TOKEN"]}})
    process = plan_here(experiment, allocate(experiment), Path("/"), "r1").processes[0]
    assert process.argv[1] == "$(HOME) a$$b$(HOME) $(HOSTNAME)"
    told = {name: process.env[name] for name in ("B", "HOME", "TOKEN")}
    assert told == {"B": "$(HOME) a$$b$(HOME)", "HOME": "/home/$$me", "TOKEN": "a$$b$(HOME)"}


@pytest.mark.parametrize(("replicas", "here", "is_told"), [(0, None, False), (1, 0, True), (0, 1, True)])
def test_what_runs_nowhere_has_no_address_and_is_not_waited_for(
    replicas: int, here: int | None, *, is_told: bool
) -> None:
    local = {} if here is None else {"local": {"replicas": here}}
    replay = {"command": ["r"], "lifecycle": "service", "binds": "replay", "replicas": replicas, **local}
    learner = {"command": ["l"], "connects": "replay", "after": "replay"}
    experiment = from_data({"name": "x", "processes": {"replay": replay, "learner": learner}})
    plan = plan_here(experiment, allocate(experiment), Path("/"), "r1")
    planned = plan.processes[-1]
    assert ("SYMPH_REPLAY_HOST" in planned.env, bool(planned.waits)) == (is_told, len(plan.processes) == 2)


@pytest.mark.parametrize("zero", [{"replicas": 0}, {"local": {"replicas": 0}}])
def test_an_experiment_of_which_nothing_runs_here_is_refused(zero: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="nothing to run: no process"):
        environment_of(**zero)


ODD = {"my.var": "a 'b' ${A}\n\\$x \"", "my-var": "", "-x": "1", ".": "dot", "_symph_0": "mine", "A": "a"}
SEES = python(
    f"import os; print({{n: v for n, v in os.environ.items() if n in {list(ODD)} or '_symph' in n}} == {ODD})"
)


@pytest.mark.usefixtures("here")
def test_names_that_no_shell_can_set_reach_the_process(tmp_path: Path) -> None:
    processes = {
        "plain": {**SEES, "env": ODD},
        "again": {**SEES, "env": ODD, "retries": 1},
        "quiet": {**SEES, "env": ODD, "local": {"tty": False}},
        "after-lines": {**SEES, "env": ODD, "local": {"preamble": ["cd /"]}},
    }
    run = start(tmp_path, processes=processes)
    assert local_run.wait(run) == 0
    assert {name: log_of(run, name) for name in processes} == dict.fromkeys(processes, "True\n")


@pytest.mark.parametrize(("shell", "notes"), [({}, 1), ({"shell": "bash"}, 0)])
def test_lines_that_may_not_see_a_variable_are_noted(shell: dict[str, str], notes: int) -> None:
    said = {"cmds": ["env"], "env": {"my.var": "x"}, **shell}
    experiment = from_data({"name": "x", "processes": {"a": said}})
    found = [
        note for note in plan_here(experiment, [], Path("/"), "r1").notes if "my.var from the environment of a" in note
    ]
    assert len(found) == notes


def test_a_value_under_such_a_name_is_in_no_argument_list() -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"command": ["c"], "env": {"my.var": "t0p", "B": "t0p"}}}})
    (process,) = plan_here(experiment, allocate(experiment), Path("/"), "r1").processes
    lines = start_script(process).splitlines()
    assert {line.split("=")[0] for line in lines if "t0p" in line} == {"export B", "export _symph_0"}


def planned(data: dict[str, object]) -> PlannedProcess:
    experiment = from_data({"name": "x", "processes": {"a": {"command": ["c"]}}, **data})
    return plan_here(experiment, allocate(experiment), Path("/"), "r1").processes[0]


@pytest.mark.parametrize(
    ("patterns", "passed"),
    [("WANDB_*", "WANDB_MODE"), ("*", "WANDB_MODE OTHER"), (["OTHER", "W?NDB_*"], "WANDB_MODE OTHER"), ("NONE_*", "")],
)
def test_patterns_pass_variables_of_the_caller_but_none_of_its_terminal(
    patterns: object, passed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_MODE", "OTHER", "TMUX", "SHLVL", "SYMPH_RUNTIME_DIR", "BASH_FUNC_f%%"):
        monkeypatch.setenv(name, "of the shell")
    env = planned({"local": {"pass_env": patterns}}).env
    assert {name for name, value in env.items() if value == "of the shell"} == set(passed.split())


def test_a_changed_variable_restarts_a_process_that_names_it_but_not_one_whose_pattern_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def digests(value: str) -> list[str]:
        monkeypatch.setenv("WANDB_MODE", value)
        passed: tuple[object, ...] = ("WANDB_MODE", "WANDB_*", [])
        return [planned({"local": {"pass_env": words}}).digest for words in passed]

    (named, pattern, nothing), later = digests("a"), digests("b")
    assert [named == later[0], pattern == later[1], nothing == later[2]] == [False, True, True]
    assert pattern != nothing
