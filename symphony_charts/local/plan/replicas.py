"""Every pod of an experiment runs here as replicas, each with a name and an address."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from symphony_charts.local.plan.overrides import replicas_here
from symphony_charts.local.plan.records import Machine
from symphony_charts.spec.model import Experiment, Step
from symphony_charts.spec.pods import Pod, pods_of

__all__ = ["Replica", "replica_name", "replicas_of", "steps_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One pod of a run: replica `index` of `pod` under `name`, at `address`."""

    pod: Pod
    name: str
    index: int
    count: int
    address: str


def replicas_of(experiment: Experiment, machine: Machine) -> Iterator[Replica]:
    """Yield all replicas of all pods, in the order in which they are given addresses."""
    number, pods = 0, pods_of(experiment)
    for pod in pods.values():
        count = replicas_here(pod)
        for index in range(count):
            name = replica_name(pod.name, index, count, pods)
            address = machine.addresses.address(number)
            yield Replica(pod=pod, name=name, index=index, count=count, address=address)
            number += 1


def replica_name(pod: str, index: int, count: int, pods: Collection[str]) -> str:
    """Return ``agent-1`` for replica 1 of several, or ``agent.1`` if a pod has that name.

    Folders, windows and host names are told apart by it.
    """
    if count <= 1:
        return pod
    usual = f"{pod}-{index}"
    return f"{pod}.{index}" if usual in pods else usual


def steps_of(experiment: Experiment, pod: Pod) -> dict[str, Step]:
    """Return the steps that run before the processes of `pod`, by name."""
    return {name: step for name, step in experiment.prepare.items() if not step.groups or pod.name in step.groups}
