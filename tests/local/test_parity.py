"""Generated experiments: plan, manifests and a probe in tmux agree; `make e2e` tries more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.spec.data import from_data
from tests.local.generated import NASTY, generated
from tests.local.parity.compare import compare


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_plan_and_manifests_of_generated_experiments_agree(seed: int, tmp_path: Path) -> None:
    found = [compare(from_data(generated(number)), {}, tmp_path, probes=False) for number in range(seed, seed + 4)]
    assert [result.differences for result in found] == [()] * 4
    assert all(result.processes >= 2 for result in found)


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "jobset"},
        {"kind": "appwrapper"},
        {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}},
        {"kind": "volcano"},
    ],
    ids=str,
)
def test_the_manifests_of_every_kind_agree_with_the_plan(workload: dict[str, object], tmp_path: Path) -> None:
    found = [
        compare(from_data({**generated(seed), "workload": workload}), {}, tmp_path, probes=False) for seed in range(6)
    ]
    assert [result.differences for result in found] == [()] * 6
    assert all(result.processes >= 2 for result in found)


@pytest.mark.usefixtures("tmux")
@pytest.mark.parametrize("seed", [3, 7])
def test_a_probe_in_tmux_agrees_with_plan_and_manifests(seed: int, tmp_path: Path) -> None:
    result = compare(from_data(generated(seed)), {}, tmp_path, probes=True)
    assert result.sides == ("the plan", "the manifests", "tmux")
    assert result.differences == ()


@pytest.mark.usefixtures("tmux")
def test_every_nasty_value_arrives_whole_in_arguments_environment_and_files(tmp_path: Path) -> None:
    data = {
        "name": "nasty",
        "image": "i",
        "configs": {f"f{number}": {"text": value} for number, value in enumerate(NASTY)},
        "processes": {
            "agent-1": {"command": ["c", *NASTY], "env": {f"V{number}": value for number, value in enumerate(NASTY)}},
            "agent-10": {"command": ["c"], "args": list(NASTY), "env": {"BIG": "x'$\n" * 25000}},
        },
    }
    assert compare(from_data(data), {}, tmp_path, probes=True).differences == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("local", [{"replicas": 0}, {"replicas": 1}, {"cwd": "src"}, {"cwd": "/tmp"}])
@pytest.mark.parametrize("cwd", [None, "/work"])
def test_how_many_run_here_and_where_is_no_difference(
    tmp_path: Path, local: dict[str, object], cwd: str | None
) -> None:
    server = {"command": ["s"], "lifecycle": "service", "binds": "x", "replicas": 3, "min_replicas": 2, "cwd": cwd}
    processes = {"server": {**server, "local": local}, "asks": {"command": ["a"], "connects": "x"}}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": processes})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_labels_and_annotations_of_the_file_are_told_here_too(tmp_path: Path) -> None:
    env = {name: {"field": f"metadata.{kind}['{name}']"} for name, kind in (("A", "labels"), ("B", "annotations"))}
    process = {"command": ["a"], "env": env, "labels": {"A": "own"}}
    said = {"labels": {"A": "all"}, "annotations": {"B": "b"}}
    experiment = from_data({"name": "exp", "image": "i:1", **said, "processes": {"a": process}})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_parameters_of_a_workflow_have_the_values_of_the_file(tmp_path: Path) -> None:
    workload = {"kind": "argo", "argo": {"parameters": ["LR"]}}
    processes = {"a": {"command": ["a"], "env": {"LR": '- {x} "1'}}}
    experiment = from_data({"name": "exp", "image": "i:1", "workload": workload, "processes": processes})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_what_hands_on_a_variable_beside_a_shell_is_no_difference(tmp_path: Path) -> None:
    process = {"command": ["a", "$(my.var)"], "env": {"my.var": "1"}, "retries": 2}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": {"a": process}})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_what_has_no_replicas_has_no_address_here_either(tmp_path: Path) -> None:
    server = {"command": ["s"], "lifecycle": "service", "binds": "x", "replicas": 0}
    processes = {"server": server, "asks": {"command": ["a"], "connects": "x", "after": "server"}}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": processes})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_what_only_a_cluster_tells_is_no_difference(tmp_path: Path) -> None:
    fields = ("spec.nodeName", "status.hostIP", "metadata.namespace")
    env: dict[str, object] = {f"F{number}": {"field": field} for number, field in enumerate(fields)}
    env["KEY"] = {"secret": "s", "key": "k", "optional": True}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": {"a": {"command": ["a"], "env": env}}})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


def test_tasks_of_no_type_are_told_of_each_other_as_by_their_operator(tmp_path: Path) -> None:
    processes = {name: {"command": [name]} for name in ("one", "other", "learner")}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": processes, "workload": {"kind": "dijob"}})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


@pytest.mark.parametrize("lifecycle", ["finite", "service"])
def test_roles_that_a_coordinator_asks_for_are_compared_as_often_as_they_run_here(
    lifecycle: str, tmp_path: Path
) -> None:
    collector = {"command": ["c"], "replicas": 3, "binds": {"collector": 22270}, "lifecycle": lifecycle}
    roles = {"coordinator": {"command": ["c"], "binds": {"coordinator": 22273}}, "collector": collector}
    processes = {**roles, "learner": {"command": ["l"]}, "aggregator": {"command": ["a"]}}
    workload = {"kind": "dijob", "dijob": {"operator": "v0"}}
    experiment = from_data({"name": "exp", "image": "i:1", "processes": processes, "workload": workload})
    result = compare(experiment, {}, tmp_path, probes=False)
    assert (result.processes, result.differences) == (6, ())


def test_what_local_changes_is_no_difference(tmp_path: Path) -> None:
    local = {"command": ["other"], "args": ["x"], "env": {"LR": "2"}, "replicas": 3, "cwd": "/tmp"}
    data = {
        "name": "x",
        "image": "i",
        "processes": {"a": {"command": ["c"], "env": {"LR": "1"}, "replicas": 8, "binds": "s", "local": local}},
        "local": {"env": {"ALL": "1"}},
    }
    result = compare(from_data(data), {}, tmp_path, probes=False)
    assert (result.processes, result.differences) == (3, ())
