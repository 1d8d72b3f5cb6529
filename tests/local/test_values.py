"""Chart values on this machine: tmux runs what the pod would, or the value is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.values.merge import merge
from symphony_charts.chart.values.set_values import Overrides, user_values
from symphony_charts.errors import SpecError
from symphony_charts.local.values import under_values
from symphony_charts.spec.data import from_data
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.lockfile import Lock
from symphony_charts.spec.services import allocate

DATA: dict[str, Any] = {
    "name": "e",
    "image": "a:1",
    "configs": {"c.txt": {"text": "one"}},
    "processes": {
        "server": {"cmds": ["exec serve"], "binds": {"s": None}, "lifecycle": "service", "env": {"A": "1"}},
        "client": {"command": ["ask"], "args": ["x"], "connects": ["s"], "cwd": "/w"},
    },
    "groups": {"g": {"processes": {"a": {"command": ["a"]}, "b": {"command": ["b"]}}}},
}
SETS = (
    "groups.client.replicas=3",
    "groups.client.containers.client.env.LR=0.1",
    "groups.server.containers.server.env.A=null",
    "groups.client.containers.client.args={a,b}",
    "groups.client.containers.client.workingDir=/elsewhere",
    "groups.server.containers.server.command={serve,--fast}",
    "groups.g.containers.b.env.B=two",
    "groups.g.replicas=2",
    "groups.client.backoffLimit=2",
    "groups.client.restartPolicy=OnFailure",
    "services.s.port=7123",
    "configs.c\\.txt.text=two",
    "groups.client.nodeSelector.disk=ssd",
    "workload.gang=none",
    "runKey=again",
)


def spec_of(**more: Any) -> SpecFile:
    path = Path("e.json")
    return SpecFile(path=path, experiment=from_data({**DATA, **more}), lock_path=path, lock=Lock())


def values(*sets: str) -> dict[str, Any]:
    return user_values(Overrides(sets=sets))


@given(st.lists(st.sampled_from(SETS), unique=True))
@settings(max_examples=100)
def test_the_experiment_under_values_compiles_to_them(sets: list[str]) -> None:
    spec, given_values = spec_of(), values(*sets)
    made_spec = under_values(spec, given_values)
    wanted = merge(compile_values(spec.experiment, allocate(spec.experiment)), given_values)
    made = compile_values(made_spec.experiment, allocate(made_spec.experiment, made_spec.pins))
    for key in ("services", "configs", "doneWhen"):
        assert made[key] == wanted[key]
    for group in wanted["groups"].values():  # type: ignore[attr-defined]  # a map of groups
        for container in group["containers"].values():
            if not container.get("env"):
                container.pop("env", None)  # Where there are no defaults, no variables are an empty map.
    for name, group in made["groups"].items():  # type: ignore[attr-defined]  # a map of groups
        same = {key: value for key, value in wanted["groups"][name].items() if key != "nodeSelector"}  # type: ignore[index]  # likewise
        assert {key: value for key, value in group.items() if key != "nodeSelector"} == same


@pytest.mark.parametrize(
    "text",
    ["groups.client.replica=3", "groups.new.replicas=1", "groups.client.containers.x.image=b", "doneWhen=client"],
)
def test_a_value_that_the_chart_refuses_is_refused_here(text: str) -> None:
    with pytest.raises(SpecError):
        under_values(spec_of(), values(text))


@pytest.mark.parametrize(
    "text",
    [
        "groups.client.containers.client.mounts.data.mountPath=/d",
        "defaults.env.X=1",
        "configs.new.text=x",
        "groups.client.containers.client.env.X.secret=s",
    ],
)
def test_a_value_that_nothing_here_can_follow_is_refused_and_not_lost(text: str) -> None:
    with pytest.raises(SpecError, match="cannot be set for processes of this machine"):
        under_values(spec_of(), values(text))


def test_a_number_is_the_text_of_a_variable() -> None:
    experiment = under_values(spec_of(), values("groups.client.containers.client.env.N=2")).experiment
    assert experiment.processes["client"].env["N"] == "2"


def test_an_image_is_not_needed_on_one_machine() -> None:
    experiment = under_values(spec_of(image=None), values("groups.client.replicas=2")).experiment
    assert experiment.processes["client"].replicas == 2
