"""Values of the chart on this machine: a process sees the same as its container, or the value is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.chart.build.chart import build
from symphony_charts.chart.release import Overrides, merge_values, user_values
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.errors import SpecError
from symphony_charts.local.values import under_values
from symphony_charts.spec.data import Lock, from_data, to_data
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import allocate

DATA: dict[str, Any] = {
    "name": "e",
    "image": "a:1",
    "prepare": {"fetch": {"command": ["get"]}},
    "processes": {
        "server": {
            "cmds": ["exec serve"],
            "binds": {"s": None, "fixed": 9000},
            "lifecycle": "service",
            "env": {"A": "1"},
        },
        "client": {"command": ["ask"], "args": ["x"], "connects": ["s"], "replicas": 4, "min_replicas": 4},
    },
    "groups": {"g": {"processes": {"a": {"command": ["a"]}, "b": {"command": ["b"], "preamble": ["set -u"]}}}},
}
SETS = (
    "groups.client.replicas=3",
    "groups.client.retries=2",
    "groups.client.containers.client.env.LR=0.1",
    "groups.client.containers.client.args={a,2}",
    "groups.server.containers.server.env.A=null",
    "groups.server.containers.server.command={serve,--fast}",
    "groups.server.containers.server.args={again}",
    "groups.g.containers.b.env.B=two",
    "groups.g.containers.b.args={c}",
    "groups.g.replicas=2",
    "services.s.port=7123",
    "services.fixed.port=7124",
)
# A cluster reads these, and no process of this machine.
FOREIGN = (
    "image.tag=v2",
    "runKey=again",
    "groups.client.nodeSelector.disk=ssd",
    "groups.g.containers.a.resources.limits.cpu=2",
    "groups.g.containers.a.image=b:2",
    "podLabels.a=b",
)


def spec_of(**more: Any) -> SpecFile:
    path = Path("e.json")
    return SpecFile(path=path, experiment=from_data({**DATA, **more}), lock_path=path, lock=Lock())


def values(*sets: str) -> dict[str, Any]:
    return user_values(Overrides(sets=sets))


def seen(chart_values: Any) -> Any:
    """Return the part of a chart's values that processes see: counts, commands, arguments, variables and ports."""
    return {
        "services": chart_values["services"],
        "groups": {
            name: {
                **{key: group.get(key) for key in ("replicas", "retries")},
                **{
                    process: {
                        "command": container["command"],
                        "args": [str(word) for word in container["args"]],
                        "env": {key: str(value) for key, value in container["env"].items()},
                    }
                    for process, container in group["containers"].items()
                },
            }
            for name, group in chart_values["groups"].items()
        },
    }


@given(st.lists(st.sampled_from(SETS), unique=True))
@settings(max_examples=100)
def test_processes_here_see_the_values_that_their_containers_see(sets: list[str]) -> None:
    spec, given_values = spec_of(), values(*sets)
    made = under_values(spec, given_values)
    chart = build(spec.experiment, allocate(spec.experiment))
    own = build(made.experiment, allocate(made.experiment, made.pins))
    assert seen(own.values) == seen(merge_values(ValuesSchema(chart), given_values))


@pytest.mark.parametrize("text", FOREIGN)
def test_a_value_for_clusters_changes_nothing_here(text: str) -> None:
    made = under_values(spec_of(), values(text))
    assert to_data(made.experiment) == to_data(spec_of().experiment)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("groups.client.replica=3", "did you mean groups.client.replicas"),
        ("groups.client.containers.client.workingDir=/w", "--spec-set processes.client.cwd"),
        ("doneWhen=client", "known here"),
        ("groups.client.replicas=many", "whole number"),
    ],
)
def test_a_value_that_the_chart_refuses_is_refused_with_the_next_step(text: str, step: str) -> None:
    with pytest.raises(SpecError) as error:
        under_values(spec_of(), values(text))
    assert error.value.at.startswith("--set or --values, ")
    assert step in error.value.problems[0].next


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("groups.client.containers.client.env.X.secretKeyRef.name=s", "comes from the cluster"),
        (
            "groups.g.initContainers.fetch.args={x}",
            "local runs cannot set groups.g.initContainers.fetch.args for a single group",
        ),
    ],
)
def test_a_value_that_a_process_here_cannot_have_is_refused(text: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        under_values(spec_of(), values(text))


def test_a_parameter_of_a_workflow_is_a_variable_here() -> None:
    workload = {"kind": "argo", "argo": {"parameters": ["LR"]}}
    processes = {"a": {"command": ["a"], "env": {"LR": "1"}}}
    spec = spec_of(workload=workload, processes=processes, groups={})
    assert under_values(spec, values("workload.parameters.LR=2")).experiment.processes["a"].env == {"LR": "2"}


def test_a_chart_of_this_machine_alone_needs_no_image_and_no_absolute_folder() -> None:
    processes = {"client": {"command": ["ask"], "cwd": "here"}}
    experiment = under_values(spec_of(image=None, processes=processes), values("groups.client.replicas=2")).experiment
    assert experiment.processes["client"].replicas == 2
