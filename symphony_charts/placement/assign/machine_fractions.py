"""A share of a machine belongs to the pod: what runs beside a process comes out of what the process was given.

A process that is assigned to a machine gets what its pod may use; containers beside it, of the spec or of an overlay,
defaults included, are taken off, so that the pod is never larger than its share.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.quantity import amount_of
from symphony_charts.placement.pools.pool import Amounts
from symphony_charts.spec.model import Experiment, PodSettings, Process
from symphony_charts.spec.pods import Pod, pods_of

_UNITS = {"cpu": ("m", 1), "memory": ("Mi", 2**20)}


def has_machine_fractions(experiment: Experiment) -> bool:
    """Return True if a process still holds the share of its pod."""
    return any(process.pod_share for pod in pods_of(experiment).values() for process in pod.processes.values())


def without_machine_fractions(experiment: Experiment) -> Experiment:
    """Return the experiment without the requests of processes that hold the share of their pod."""

    def emptied(pod: Pod) -> dict[str, Process]:
        return {
            name: _asking(process, dict.fromkeys(process.pod_share, "0")) for name, process in pod.processes.items()
        }

    return _with_processes(experiment, {pod.name: emptied(pod) for pod in pods_of(experiment).values()})


def resolve_machine_fractions(experiment: Experiment, beside: Mapping[str, Amounts]) -> Experiment:
    """Return the experiment with every share reduced by what runs `beside` it in its pod, by group.

    Several that hold shares of one pod divide what is left as they divided the whole. Raises SpecError where nothing is
    left.
    """
    problems: list[Problem] = []
    settled = {
        pod.name: _shared(pod, beside.get(pod.name, {}), problems) if beside.get(pod.name) else dict(pod.processes)
        for pod in pods_of(experiment).values()
    }
    if problems:
        raise SpecError(problems)
    return _with_processes(experiment, settled)


def _shared(pod: Pod, beside: Amounts, problems: list[Problem]) -> dict[str, Process]:
    processes = dict(pod.processes)
    for resource, (unit, size) in _UNITS.items():
        shares = {
            name: amount_of(resource, process.requests[resource])
            for name, process in pod.processes.items()
            if resource in process.pod_share
        }
        whole, taken = sum(shares.values()), beside.get(resource, 0)
        if not shares or not taken:
            continue
        if taken >= whole:
            what = f"what runs beside {', '.join(shares)} asks for all of the pod's share of {resource}"
            problems.append(Problem(what=what, path=pod.path, next="ask for less there, or for a larger share"))
            continue
        for name, share in shares.items():
            left = share * (whole - taken) // whole // size
            processes[name] = _asking(processes[name], {resource: f"{left}{unit}"})
    return processes


def _asking(process: Process, requests: Mapping[str, str]) -> Process:
    return msgspec.structs.replace(process, requests={**process.requests, **requests}) if requests else process


def _with_processes(experiment: Experiment, settled: Mapping[str, Mapping[str, Process]]) -> Experiment:

    def pod(settings: PodSettings, name: str) -> PodSettings:
        processes = {
            key: msgspec.structs.replace(process, pod_share=[]) if process.pod_share else process
            for key, process in settled[name].items()
        }
        is_lone = isinstance(settings, Process)
        return processes[name] if is_lone else msgspec.structs.replace(settings, processes=processes)

    return msgspec.structs.replace(
        experiment,
        groups={name: pod(group, name) for name, group in experiment.groups.items()},
        processes={name: pod(process, name) for name, process in experiment.processes.items()},
    )
