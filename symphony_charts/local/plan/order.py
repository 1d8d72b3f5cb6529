"""A process waits for the listeners it connects to and for those it is `after`; a ring of dialling waits for none.

With ``local: {start: together}`` only `after` counts, which somebody has written down for its own sake.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from symphony_charts.local.plan.records import Wait
from symphony_charts.local.plan.replicas import Replica, steps_of
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, find_process, processes_of
from symphony_charts.spec.services import Service

__all__ = ["Order", "without_cycles"]

Node = TypeVar("Node", bound=Hashable)


class Order:
    """The slots of all processes, replica by replica, and the waits of each process."""

    def __init__(self, experiment: Experiment, services: Sequence[Service], replicas: Sequence[Replica]) -> None:
        self._experiment = experiment
        self._processes = dict(processes_of(experiment))
        in_order = [
            ProcessRef(replica.pod.name, name)
            for replica in replicas
            for name in [*steps_of(experiment, replica.pod), *replica.pod.processes]
        ]
        self._slots: dict[ProcessRef, list[int]] = {}
        for slot, ref in enumerate(in_order):
            self._slots.setdefault(ref, []).append(slot)
        is_ordered = experiment.local.start == "in-order"
        self._listeners = {service.name: service.listener for service in services if is_ordered}
        self._dialled_first = self._listeners_to_await(self._listeners)

    def waits_of(self, ref: ProcessRef) -> Iterator[Wait]:
        """Yield the waits of a process: for those it is `after` (services: until ready), and for its listeners."""
        for name in self._processes[ref].after:
            other = find_process(self._experiment, name)
            is_service = self._processes[other].lifecycle == "service"
            # With no replica of it there is nothing to wait for.
            for slot in self._slots.get(other, []):
                yield Wait(slot=slot, until="ready" if is_service else "done")
        services = self._processes[ref].connects
        for other in self._dialled_first[ref]:
            service = next((name for name in services if self._listeners.get(name) == other), "")
            for slot in self._slots.get(other, []):
                yield Wait(slot=slot, until="ready", service=service)

    def _listeners_to_await(self, listeners: Mapping[str, ProcessRef]) -> dict[ProcessRef, list[ProcessRef]]:
        """Return for each process the listeners it connects to, without those that wait for it in turn."""
        connects: dict[ProcessRef, list[ProcessRef]] = {}
        strict: dict[ProcessRef, list[ProcessRef]] = {}
        for ref, process in self._processes.items():
            targets = [listeners[service] for service in process.connects if service in listeners]
            connects[ref] = [target for target in dict.fromkeys(targets) if target != ref]
            strict[ref] = [find_process(self._experiment, other) for other in process.after]
        return without_cycles(connects, strict)


def without_cycles(
    edges: Mapping[Node, Sequence[Node]], strict: Mapping[Node, Sequence[Node]]
) -> dict[Node, list[Node]]:
    """Return `edges` without those that lie on a cycle of `edges` and `strict` together.

    Processes that dial each other in a ring cannot wait for each other: they start at once and dial until it works.
    """
    both = {node: [*edges.get(node, ()), *strict.get(node, ())] for node in {*edges, *strict}}
    component = _components(both)
    return {
        node: [other for other in targets if component[other] != component[node]] for node, targets in edges.items()
    }


def _components(edges: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """Return the strongly connected component of each node, as a number (Tarjan, without recursion)."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    numbers: dict[Node, int] = {}
    pending: list[Node] = []
    for root in [*edges, *(target for targets in edges.values() for target in targets)]:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        pending.append(root)
        path = [(root, iter(edges.get(root, ())))]
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    pending.append(target)
                    path.append((target, iter(edges.get(target, ()))))
                    break
                if target not in numbers:
                    low[node] = min(low[node], order[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    _close(node, pending, numbers)
    return numbers


def _close(node: Node, pending: list[Node], numbers: dict[Node, int]) -> None:
    number = max(numbers.values(), default=-1) + 1
    while True:
        member = pending.pop()
        numbers[member] = number
        if member == node:
            return
