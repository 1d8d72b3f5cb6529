"""The pods of a run: every replica with its name and address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from symphony_charts.local.plan.overrides import replicas_here
from symphony_charts.local.plan.pod_names import replica_name
from symphony_charts.local.plan.records import Machine
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod, pods_of

__all__ = ["Replica", "replicas_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One pod of a run: replica `index` of `pod` under `name`, at `address`."""

    pod: Pod
    name: str
    index: int
    count: int
    address: str


def replicas_of(experiment: Experiment, machine: Machine) -> Iterator[Replica]:
    number, pods = 0, pods_of(experiment)
    for pod in pods.values():
        count = replicas_here(pod)
        for index in range(count):
            name = replica_name(pod.name, index, count, pods)
            address = machine.addresses.address(number)
            yield Replica(pod=pod, name=name, index=index, count=count, address=address)
            number += 1
