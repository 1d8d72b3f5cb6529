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


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"workload": {"gang": "kueue", "queue": "q"}}, "neither be queued"),
        ({"dijob": {"preemptible": True}}, "never runs"),
        ({"dijob": {"parallel_workers": 0}}, "fewer workers"),
        ({"dijob": {"operator": "v0"}}, "needs a process called coordinator"),
        ({"networks": ["macvlan"]}, "annotations of pods"),
        ({"placement": {"exclusive": "zone"}}, "annotations or labels of pods"),
    ],
)
def test_what_no_dijob_can_do_is_refused(said: dict[str, object], what: str) -> None:
    assert what in faults(made({"learner": RUN}, **said))


def test_on_one_machine_nothing_of_it_counts() -> None:
    assert finish(made({"learner": RUN}, dijob={"preemptible": True}))


def test_a_job_needs_something_that_ends() -> None:
    assert "nothing here does" in faults(made({"board": SERVE}))


def test_operator_v1_0_runs_one_kind_of_pod() -> None:
    assert "one kind of pod" in faults(made({"a": RUN, "b": RUN}, dijob={"operator": "v1.0"}))


def test_operator_v0_knows_four_roles() -> None:
    assert 'not "boss"' in faults(made({"coordinator": RUN, "boss": RUN}, dijob={"operator": "v0"}))


def test_operator_v0_starts_one_coordinator() -> None:
    twice = {"coordinator": {**RUN, "replicas": 2}}
    assert "one coordinator, not 2" in faults(made(twice, dijob={"operator": "v0"}))
    assert made({**twice, "learner": RUN})


def test_two_tasks_of_one_type_are_refused() -> None:
    said = {"tasks": {"a": "learner"}}
    assert "one task of type learner" in faults(made({"a": RUN, "learner": RUN}, dijob=said))


def test_a_type_for_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match='no group or lone process is called "lerner"'):
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
