"""Findings about values name the place in the spec."""

from __future__ import annotations

import pytest

from symphony_charts.spec.data import from_data, is_spec_path, spec_path

DATA = {
    "name": "e",
    "processes": {"a": {"cmds": ["x"], "exposes": "web"}},
    "expose": {"web": {"type": "ClusterIP"}},
    "groups": {"g": {"processes": {"b": {"command": ["x"]}}}},
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("groups.a.containers.a", "processes.a"),
        ("groups.a.containers.a.env.TOKEN", "processes.a.env.TOKEN"),
        ("groups.a.containers.a.command", "processes.a.cmds"),
        ("groups.a.containers.a.workingDir", "processes.a.cwd"),
        ("groups.a.backoffLimit", "processes.a.retries"),
        ("groups.g.containers.b.command", "groups.g.processes.b.command"),
        ("groups.g.restartPolicy", "groups.g.restart"),
        ("groups.a.priorityClassName", "processes.a.priority_class"),
        ("groups.a.nodeSelector.pool", "processes.a.node_selector.pool"),
        ("groups.other.replicas", "groups.other.replicas"),
        ("groups.g.containers.added.env.X", "groups.g.containers.added.env.X"),
        ("Job/e-a-1.spec", "Job/e-a-1.spec"),
        ("workload.priority", "workload.priority"),
        ("workload.gangScope", "workload.gang_scope"),
        ("workload.dijob.maxReplicas", "workload.dijob.max_replicas"),
        ("groups.a.minReplicas", "processes.a.min_replicas"),
        ("groups.g.activeDeadlineSeconds", "groups.g.deadline"),
        ("services.web.sourceRanges", "expose.web.source_ranges"),
        ("services.web.loadBalancerClass", "expose.web.class_name"),
        ("services.other.host", "services.other.host"),
    ],
)
def test_a_path_of_the_values_is_that_of_the_spec_where_there_is_one(path: str, wanted: str) -> None:
    assert spec_path(path, from_data(DATA)) == wanted


def test_a_field_of_the_model_is_a_path_of_the_spec_and_others_are_not() -> None:
    known = ("processes.a.mounts", "groups.g.processes.b.env.X", "workload.jobset.max_restarts")
    others = ("processes.a.lifecycleHooks", "services.web.port", "processes.a.replicas.b")
    assert [path for path in (*known, *others) if is_spec_path(path)] == [*known]
