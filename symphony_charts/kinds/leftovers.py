"""What is left of an experiment on a cluster when it is done."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.formats.data import sub
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of

__all__ = ["failure_difference", "runs_on", "stops_the_rest"]


def runs_on(values: Mapping[str, object], groups: Mapping[str, Group], kind: str) -> list[tuple[str, str]]:
    """Group and name of each process that nothing stops when the experiment is done.

    `groups` are those of merged `values`. A service in a pod that ends ends, too.
    """
    done = set(_done_when(values))
    is_left = bool(done) and not stops_the_rest(values, kind)
    is_cleaned = KINDS[kind].removes_its_pods(values)
    return [
        (group.name, process)
        for group in groups.values()
        if not (is_cleaned and group.in_unit)
        for process, container in sub(dict(group.values), "containers").items()
        if (_is_service(container) and not group.is_finite)
        or (not _is_service(container) and is_left and (group.name, process) not in done)
    ]


def stops_the_rest(values: Mapping[str, object], kind: str) -> bool:
    """Whether the kind of workload ends its other groups once those of `doneWhen` have; never its services."""
    return KINDS[kind].stops_the_rest(values, len({group for group, _ in _done_when(values)}))


def failure_difference(experiment: Experiment, kind: str) -> str:
    """How a failure for good ends other things on a cluster than here (`on_exit`); empty where both do the same."""
    pods = pods_of(experiment).values()
    if len(pods) < 2:
        return ""
    usual = experiment.local.on_exit
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


def _done_when(values: Mapping[str, object]) -> list[tuple[str, str]]:
    listed = values.get("doneWhen")
    pairs = (str(item).partition("/") for item in (listed if isinstance(listed, list) else []))
    return [(group, process) for group, _, process in pairs]


def _is_service(container: object) -> bool:
    return isinstance(container, dict) and container.get("lifecycle") == "service"
