"""Generated experiments: a process has the argv, environment and files of its pod, by plan, manifests and probe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.build.chart import Release, build
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.spec import files
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from tests.local.generated import NASTY, generated
from tests.local.parity.compare import compare
from tests.local.parity.pod_view import view_of_manifests
from tests.local.parity.process_view import differences, view_of_plan

# `SYMPH_SOAK` is the number of random experiments; of every twenty, one is also run with probes in tmux.
CASES = int(os.environ.get("SYMPH_SOAK", "40"))


@pytest.mark.parametrize("seed", range(0, CASES, 4))
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


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(3, CASES, 20))
def test_a_probe_in_tmux_agrees_with_plan_and_manifests(seed: int, tmp_path: Path) -> None:
    result = compare(from_data(generated(seed)), {}, tmp_path, probes=True)
    assert result.sides == ("the plan", "the manifests", "tmux")
    assert result.differences == ()


@pytest.mark.usefixtures("here")
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


LABELS = {name: {"field": f"metadata.{kind}['{name}']"} for name, kind in (("A", "labels"), ("B", "annotations"))}
FIELDS = {field: {"field": field} for field in ("spec.nodeName", "status.hostIP", "metadata.namespace")}
SAME: dict[str, dict[str, object]] = {
    "labels and annotations of the file": {
        "labels": {"A": "all"},
        "annotations": {"B": "b"},
        "processes": {"a": {"command": ["a"], "env": LABELS, "labels": {"A": "own"}}},
    },
    "parameters of a workflow": {
        "workload": {"kind": "argo", "argo": {"parameters": ["LR"]}},
        "processes": {"a": {"command": ["a"], "env": {"LR": '- {x} "1'}}},
    },
    "a name that no shell can set": {
        "processes": {"a": {"command": ["a", "$(my.var)"], "env": {"my.var": "1"}, "retries": 2}}
    },
    "no replicas, so no address": {
        "processes": {
            "server": {"command": ["s"], "lifecycle": "service", "binds": "x", "replicas": 0},
            "asks": {"command": ["a"], "connects": "x", "after": "server"},
        }
    },
    "fields of a cluster": {
        "processes": {
            "a": {"command": ["a"], "env": {**FIELDS, "KEY": {"secret": "s", "key": "k", "optional": True}}},
        }
    },
    "tasks without a type": {
        "workload": {"kind": "dijob"},
        "processes": {name: {"command": [name]} for name in ("one", "other", "learner")},
    },
}


@pytest.mark.parametrize("what", SAME)
def test_processes_here_see_the_same_as_in_their_pods(what: str, tmp_path: Path) -> None:
    experiment = from_data({"name": "exp", "image": "i:1", **SAME[what]})
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["rl", "surreal", "ring", "ring-group", "integrate", "ppo"])
def test_processes_of_an_example_see_what_their_containers_see(name: str) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / name
    [path] = [
        path for path in folder.glob("experiment.*") if path.suffix in (".py", ".yaml") and ".lock" not in path.name
    ]
    spec = files.read(path)
    assert compare(spec.experiment, spec.pins, folder, probes=True).differences == ()


def one_process(configs: str = "", **more: object) -> Experiment:
    process = {"command": ["c"], **more}
    return from_data({"name": "x", "image": "i", "processes": {"a": process}, "configs": {"f": {"text": configs}}})


@pytest.mark.parametrize(
    ("here", "there", "difference"),
    [
        ({"env": {"LR": "1"}}, {"env": {"LR": "2"}}, "env LR: '1' here, '2' in the pod"),
        ({"binds": {"s": 7000}}, {"binds": {"s": 7001}}, "env SYMPH_S_ADDR: "),
        ({"configs": "1"}, {"configs": "2"}, "file /etc/symph/config/f: "),
    ],
)
def test_a_difference_is_found(here: dict[str, Any], there: dict[str, Any], difference: str) -> None:
    local, pod = one_process(**here), one_process(**there)
    plan = view_of_plan(plan_here(local, allocate(local), Path("/"), "r1"))
    chart = build(pod, allocate(pod))
    pods = view_of_manifests(chart.objects(chart.values, Release(name="demo")))
    assert any(text.startswith(difference) for text in differences(plan["a/a"], pods["a/a"]))


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
