"""What runs on after an experiment on a cluster is done, and what a failure ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, find_process, pods_of

__all__ = ["failure_difference", "runs_on"]


class _Chart(Protocol):
    @property
    def experiment(self) -> Experiment: ...


def runs_on(chart: _Chart, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return group and name of each process that nothing stops when the experiment is done.

    `values` are the complete ones of a release of `chart`. A service in a pod that ends is stopped with it.
    """
    experiment = chart.experiment
    kind = KINDS[experiment.workload.kind]
    done = {find_process(experiment, name) for name in experiment.done_when}
    is_left = bool(done) and not kind.stops_the_rest(experiment.workload, len({ref.pod for ref in done}))
    removed = kind.removed_pods(experiment)
    return [
        (pod.name, name)
        for _, pod in sorted(pods_of(experiment).items())
        if pod.name not in removed and int(values["groups"][pod.name]["replicas"])
        for name, process in pod.processes.items()
        if (process.lifecycle == "service" and not pod.is_finite)
        or (process.lifecycle == "finite" and is_left and ProcessRef(pod.name, name) not in done)
    ]


def failure_difference(experiment: Experiment) -> str:
    """Return how a failure for good ends other processes on a cluster than here (`on_exit`); empty if it does not."""
    pods = pods_of(experiment).values()
    if len(pods) < 2:
        return ""
    kind, usual = experiment.workload.kind, experiment.local.on_exit
    here = {
        (process.local.on_exit if process.local else None) or usual
        for pod in pods
        for process in pod.processes.values()
    }
    is_together = KINDS[kind].fails_together(experiment.workload)
    if is_together and here != {"stop-all"}:
        return f"a process that fails for good ends the others on kind {kind}, and not here (local.on_exit)"
    if not is_together and "stop-all" in here:
        return (
            f"a process that fails for good ends the run here, and no other group on kind {kind} (local.on_exit: keep)"
        )
    return ""
