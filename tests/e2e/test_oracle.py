"""The planner and the dispatcher against the real kube-scheduler, from the spec to the binding.

Every experiment is prepared as by every verb, and the scheduler gets the pods of its rendered objects.
PROVEN must mean that all pods of the group are bound in every order, NO that they cannot all be. `SYMPH_SOAK` sets the
number of experiments, `SYMPH_SEED` the first seed; a failure prints the seed, the spec and the pools.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.clusters.base import Cluster
from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.prepare import prepare_experiment
from tests.e2e.oracle.dumps import compare_dumps
from tests.e2e.oracle.experiments import compare_experiments
from tests.e2e.oracle.live import Scheduler, scheduler
from tests.e2e.oracle.nodes import of_machine, read
from tests.e2e.oracle.pods import pods_of_objects

# Read at import: inside a test, the user's environment variables are removed.
_COUNT, _SEED = int(os.environ.get("SYMPH_SOAK", "60")), int(os.environ.get("SYMPH_SEED", "10000"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """Yield a kube-scheduler of our own, without controllers."""
    folder: Path = tmp_path_factory.mktemp("oracle")
    with scheduler(folder / "rig") as found:
        yield found


def test_a_proven_group_is_bound_in_every_order_and_a_no_never_as_a_whole(real: Scheduler) -> None:
    report = compare_experiments(real, range(_SEED, _SEED + _COUNT))
    sys.stdout.write(f"{report.cases} experiments, {report.refused_specs} refused; groups: {dict(report.verdicts)}\n")
    assert report.faults == []
    assert report.verdicts.keys() == {"PROVEN", "PACKABLE", "UNKNOWN", "NO"}
    assert report.cases > _COUNT // 2


def test_a_group_that_a_dump_proves_is_bound_beside_pods_that_are_there_or_wait(real: Scheduler) -> None:
    report = compare_dumps(real, range(max(50, _COUNT // 10)))
    assert report.faults == []
    assert report.verdicts.keys() == {"PROVEN", "PACKABLE", "UNKNOWN", "NO"}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("call", "pool", "settings"),
    [
        ("assign_to_machine", "std8", {"node_pool_name": "std8"}),
        ("assign_to_machine", "std8", {"node_pool_name": "std8", "process_per_machine": 3}),
        ("assign_to_gpu", "gpu", {"node_pool_name": "gpu"}),
        ("assign_to_gpu", "gpu", {"cpu": 2.5, "memory_m": 4096, "gpu_type": "v100", "gpu_count": 2}),
        ("assign_to_resource", "std8", {"cpu": 7, "memory_m": 4096}),
        ("assign_to_resource", "gpu", {"cpu": 4, "gpu_count": 1}),
        ("assign_to_node_pool", "std8", {"node_pool_name": "std8", "cpu": 7.0}),
    ],
)
def test_every_call_of_the_dispatcher_gives_pods_that_its_pool_takes(
    real: Scheduler, call: str, pool: str, settings: dict[str, Any], grouped: bool
) -> None:
    gpus = {"machine_type": "n1-standard-16", "gpu": {"type": "nvidia-tesla-v100", "count": 4}}
    machines = [of_machine("std8", {"machine_type": "n1-standard-8"}, 1), of_machine("gpu", gpus, 1)]
    experiment = Cluster.new("kubernetes").new_experiment("e", image="a:1")
    replicas = settings.get("process_per_machine", 1)
    if grouped:
        group = experiment.new_process_group("g", replicas=replicas)
        process = group.new_process("learner")
        group.new_process("sibling")
    else:
        process = experiment.new_process("learner", replicas=replicas)
    getattr(GKEDispatcher(read(machines)), call)(process, **settings)
    pods = pods_of_objects(prepare_experiment(experiment.finish(), pools=read(machines), force=True).objects)
    named = [machine for machine in machines if machine.name == pool]
    case = "-".join((call.replace("_", "-"), pool, str(len(settings)), str(grouped).lower()))
    assert real.outcome(named, pods, case, is_gang=False, patience_s=15.0).total() == replicas
