"""`pod_yml` and `container_yml` show the future objects and record changes, as a field if there is one."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.clusters.base import ExperimentSpec
from symphony_charts.clusters.kubernetes import render_pod
from symphony_charts.errors import SpecError
from symphony_charts.spec.builder.experiment import ProcessSpec
from symphony_charts.spec.sources import EnvSource


def process(**fields: Any) -> ProcessSpec:
    """Return a process of a complete experiment."""
    return ExperimentSpec("rl").new_process("agent", container_image="u:1", command="a", **fields)


def finished(agent: ProcessSpec) -> Any:
    assert agent.experiment is not None
    return agent.experiment.finish(for_cluster=True)


def test_the_whole_pod_and_the_whole_container_are_shown_by_item_and_attribute() -> None:
    agent = process()
    assert agent.pod_yml.to_dict() == render_pod(finished(agent), "agent")
    assert agent.yml() == str(agent.pod_yml)
    assert agent.pod_yml["spec"]["containers"][0]["image"] == "u:1"
    assert agent.container_yml["image"] == agent.container_yml.data.image == "u:1"
    assert "name" in agent.container_yml
    assert agent.container_yml.get("tty", "no") == "no"
    # Also before the rest of the experiment is complete.
    agent.connects("nobody-binds-it-yet")
    assert agent.container_yml["image"] == "u:1"


def test_a_process_without_an_experiment_shows_its_edits() -> None:
    agent = ProcessSpec("agent")
    agent.pod_yml.data.spec.hostNetwork = True
    assert agent.pod_yml.to_dict() == {"metadata": {}, "spec": {"hostNetwork": True}}


def test_an_edit_by_item_attribute_and_set_attr_reaches_the_pod() -> None:
    agent = process()
    agent.pod_yml["spec"]["hostNetwork"] = True
    agent.pod_yml.spec.hostPID = True
    agent.pod_yml.set_attr({"spec": {"dnsConfig": {"searches": ["a"]}}})
    agent.pod_yml.set_attr({"spec": {"dnsConfig": {"searches": ["b"]}}})
    spec: Any = render_pod(finished(agent), "agent")["spec"]
    assert (spec["hostNetwork"], spec["hostPID"], spec["dnsConfig"]) == (True, True, {"searches": ["a", "b"]})


def test_the_verbs_of_symphonys_objects_are_those_of_the_builder() -> None:
    agent = process()
    agent.pod_yml.add_label("shard", "1")
    agent.pod_yml.node_selector("pool", "gpu")
    agent.container_yml.set_env("A", 1)
    agent.container_yml.mount_shared_memory()
    made = finished(agent).processes["agent"]
    assert (made.labels, made.node_selector, made.env) == ({"shard": "1"}, {"pool": "gpu"}, {"A": "1"})
    with pytest.raises(AttributeError, match="no 'add_label' here"):
        agent.container_yml.add_label("shard", "1")


def test_an_edit_inside_a_list_of_named_things_changes_the_one_of_that_name() -> None:
    agent = process()
    agent.pod_yml.spec.containers[0]["stdin"] = True
    assert agent.to_data()["pod_overlay"] == {"spec": {"containers": [{"name": "agent", "stdin": True}]}}
    assert agent.container_yml["stdin"] is True


def test_appending_to_a_plain_list_writes_the_whole_list() -> None:
    agent = process()
    agent.container_yml["securityContext"]["capabilities"]["drop"].append("MORE")
    assert agent.container_yml["securityContext"]["capabilities"]["drop"] == ["ALL", "MORE"]


def test_a_variable_set_by_an_edit_can_be_set_again() -> None:
    agent = process()
    source = {"configMapKeyRef": {"name": "s", "key": "k"}}
    agent.container_yml.set_attr({"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": source}]})
    agent.set_env("A", "2")
    made = finished(agent).processes["agent"]
    assert made.env == {"A": "2", "B": EnvSource(config="s", key="k")}
    assert made.container_overlay == {}


def test_a_group_has_the_pod_and_its_processes_have_containers() -> None:
    group = ExperimentSpec("rl").new_process_group("g")
    learner = group.new_process("learner", container_image="u:1", command="l")
    group.pod_yml.data.spec.hostNetwork = True
    learner.container_yml["tty"] = True
    made = finished(learner).groups["g"]
    assert made.pod_overlay == {"spec": {"hostNetwork": True}}
    assert made.processes["learner"].container_overlay == {"tty": True}


def test_nothing_can_be_deleted_and_what_is_absent_is_a_key_error() -> None:
    with pytest.raises(SpecError, match="cannot be deleted"):
        del process().pod_yml["spec"]
    with pytest.raises(KeyError):
        process().pod_yml["nonsense"]
    with pytest.raises(AttributeError):
        process().pod_yml.nonsense  # noqa: B018 - the access is the test
