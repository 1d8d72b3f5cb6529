"""Experiments that no DIJob can express are refused for a cluster, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.integrations.dijob.settings import task_type, tasks_of
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment

RUN = {"image": "i", "command": ["run"]}
SERVE = {**RUN, "lifecycle": "service"}


def made(processes: Mapping[str, object], **said: object) -> Experiment:
    workload = {"kind": "dijob", "dijob": said.pop("dijob", {}), **said.pop("workload", {})}  # type: ignore[dict-item]  # a map
    return from_data({"name": "x", "processes": processes, "workload": workload, **said})


def faults(experiment: Experiment) -> str:
    """Return the message of the refusal for a cluster."""
    with pytest.raises(SpecError) as caught:
        finish(experiment, for_cluster=True)
    return str(caught.value)


V0 = {"dijob": {"operator": "v0"}}


@pytest.mark.parametrize(
    ("processes", "said", "what"),
    [
        ({"learner": RUN}, {"workload": {"gang": "kueue", "queue": "q"}}, "supports no queue and no gang"),
        ({"learner": RUN}, {"dijob": {"preemptible": True}}, "never runs"),
        ({"learner": RUN}, {"dijob": {"parallel_workers": 0}}, "parallel_workers is below 1"),
        ({"learner": RUN}, V0, "needs a process named coordinator"),
        ({"learner": RUN}, {"networks": ["macvlan"]}, "annotations of pods"),
        ({"learner": RUN}, {"placement": {"exclusive": "zone"}}, "annotations or labels of pods"),
        ({"board": SERVE}, {}, "needs a finite process"),
        ({"a": RUN, "b": RUN}, {"dijob": {"operator": "v1.0"}}, "one kind of pod"),
        ({"coordinator": RUN, "boss": RUN}, V0, 'not "boss"'),
        ({"coordinator": {**RUN, "replicas": 2}}, V0, "one coordinator, not 2"),
        ({"a": RUN, "learner": RUN}, {"dijob": {"tasks": {"a": "learner"}}}, "one task of type learner"),
    ],
)
def test_what_no_dijob_can_do_is_refused(
    processes: Mapping[str, object], said: Mapping[str, object], what: str
) -> None:
    assert what in faults(made(processes, **said))


def test_on_one_machine_nothing_of_it_counts() -> None:
    assert finish(made({"learner": RUN}, dijob={"preemptible": True}))


def test_a_type_for_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match='unknown group or lone process "lerner"'):
        made({"learner": RUN}, dijob={"tasks": {"lerner": "none"}})


def test_a_service_inside_of_a_pod_that_ends_is_refused() -> None:
    experiment = from_data(
        {"name": "x", "workload": {"kind": "dijob"}, "groups": {"g": {"processes": {"a": RUN, "side": SERVE}}}}
    )
    assert "waits for the end of every container, and side would never end" in faults(experiment)


def test_services_are_no_tasks_but_under_operator_v0_roles_are() -> None:
    processes = {"coordinator": RUN, "collector": SERVE, "board": SERVE}
    assert [pod.name for pod in tasks_of(made(processes))] == ["coordinator"]
    assert [pod.name for pod in tasks_of(made(processes, dijob={"operator": "v0"}))] == ["coordinator", "collector"]


@pytest.mark.parametrize(("pod", "kind"), [("learner", "none"), ("collector", "collector"), ("boss", "none")])
def test_a_task_is_of_the_type_that_is_said_or_that_its_name_is(pod: str, kind: str) -> None:
    assert task_type({"learner": "none"}, pod) == kind


def test_names_in_the_types_are_sanitised_like_the_groups() -> None:
    assert made({"My_Learner": RUN}, dijob={"tasks": {"My_Learner": "learner"}}).workload.written("dijob")["tasks"] == {
        "my-learner": "learner"
    }
