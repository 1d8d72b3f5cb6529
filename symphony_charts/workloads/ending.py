"""What is left of an experiment on a cluster when it is done."""

from __future__ import annotations

from symphony_charts.spec.dijob import tasks_of
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, find_process, pods_of, processes_of

__all__ = ["runs_on", "stops_the_rest"]


def runs_on(experiment: Experiment) -> list[ProcessRef]:
    """The processes that nothing stops when the experiment is done, in order; a service in a pod that ends ends too."""
    pods = pods_of(experiment)
    done = {find_process(experiment, name) for name in experiment.done_when}
    is_left = bool(done) and not stops_the_rest(experiment)
    stopped = {pod.name for pod in tasks_of(experiment)} if _is_cleaned(experiment) else set()
    return [
        ref
        for ref, process in processes_of(experiment)
        if ref.pod not in stopped
        if (process.lifecycle == "service" and not pods[ref.pod].is_finite)
        or (process.lifecycle == "finite" and is_left and ref not in done)
    ]


def stops_the_rest(experiment: Experiment) -> bool:
    """Whether the kind of workload ends its other groups once those of `done_when` have; never its services.

    A Volcano Job can wait for one group alone; an AppWrapper and a DIJob wait for all of their pods.
    """
    kind = experiment.workload.kind
    groups = {find_process(experiment, name).pod for name in experiment.done_when}
    return kind in ("jobset", "argo") or (kind == "volcano" and len(groups) == 1) or _is_cleaned(experiment)


def _is_cleaned(experiment: Experiment) -> bool:
    """Whether the end of a coordinator, which is that of its DIJob, takes the other pods away: under operator v0."""
    workload = experiment.workload
    return workload.kind == "dijob" and workload.dijob.operator == "v0" and workload.dijob.clean_pod_policy != "None"
