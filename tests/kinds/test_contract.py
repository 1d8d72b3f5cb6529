"""Rules for every kind of workload, from the objects that it builds to the final health in Argo CD."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.chart.lint.kubernetes import check_schemas
from symphony_charts.kinds.base import is_conductor
from symphony_charts.kinds.registry import KINDS, RUNS, kind_for, kind_of, opened, parts_of, verdict_of
from symphony_charts.placement.fit.demand import demands_of
from tests.chart.harness import chart_of, experiment_of, native_objects
from tests.gitops.test_health import CHECKS, health

_REPLICAS = {"learner": 1, "actor": 3}


def objects_of(name: str) -> list[dict[str, Any]]:
    """Return the objects of an experiment of two groups under a kind, without its conductor."""
    processes = {group: {"command": ["x"], "replicas": count} for group, count in _REPLICAS.items()}
    chart = chart_of(experiment_of(processes=processes, workload={"kind": name}))
    return [item for item in native_objects(chart).values() if not is_conductor(item)]


def runs_of(name: str) -> list[dict[str, Any]]:
    """Return the objects of `objects_of` that the kind's controller runs."""
    return [item for item in objects_of(name) if (item["apiVersion"], item["kind"]) in KINDS[name].gvks]


@pytest.mark.parametrize("name", KINDS)
def test_the_registry_finds_a_kind_by_its_objects(name: str) -> None:
    runs = runs_of(name)
    assert runs
    assert all(kind_for(item) is RUNS[kind_of(item)] is KINDS[name] for item in runs)


@pytest.mark.parametrize("name", KINDS)
def test_every_group_is_a_job_among_the_children(name: str) -> None:
    jobs = [item for item in opened(objects_of(name)) if kind_of(item) == "Job"]
    groups = {item["spec"]["template"]["metadata"]["labels"]["symph.dev/group"] for item in jobs}  # type: ignore[index]
    assert groups == set(_REPLICAS)


@pytest.mark.parametrize("name", KINDS)
def test_every_pod_is_demanded(name: str) -> None:
    members = [member for demand in demands_of(objects_of(name)) for member in demand.members]
    assert sorted(members) == sorted(_REPLICAS.items())


@pytest.mark.parametrize("name", KINDS)
def test_all_that_it_builds_and_their_children_fit_the_schemas(name: str) -> None:
    assert not list(check_schemas(opened(objects_of(name))))


@pytest.mark.parametrize("name", KINDS)
def test_a_run_that_has_just_begun_has_no_end(name: str) -> None:
    assert verdict_of(runs_of(name)) is None


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.holds_groups])
def test_a_live_object_describes_a_job_for_every_group(name: str) -> None:
    (run,) = runs_of(name)
    labels = [job["spec"]["template"]["metadata"]["labels"] for job in parts_of(run)]
    assert {one["symph.dev/group"] for one in labels} == set(_REPLICAS)
    assert not parts_of({**run, "metadata": {**run["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})


# Argo CD itself knows the health of Workflows.
@pytest.mark.parametrize("name", [name for name in KINDS if name != "argo"])
def test_argo_cd_sees_a_run_that_has_just_begun_go_on(name: str) -> None:
    run = runs_of(name)[0]
    check = f"{run['apiVersion'].partition('/')[0]}_{run['kind']}"
    assert check in CHECKS
    assert health(check, run)[0] == "Progressing"
