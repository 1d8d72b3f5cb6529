"""Pods, services with their ports, and resources of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.quantity import is_quantity, quantity
from symphony_charts.spec.model import Experiment, PodSettings, Process

# kubernetes/api batch/v1 JobSpec.backoffLimit
_BACKOFF_LIMIT = 6


class ProcessRef(NamedTuple):
    """A process by its pod (its group, or its own name if it is alone) and name."""

    pod: str
    process: str

    def __str__(self) -> str:
        return self.process if self.pod == self.process else f"{self.pod}/{self.process}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The contents of one pod: its pod-level `settings` and its `processes` in order of declaration.

    `path` is its path in the experiment (``groups.nonagent`` or ``processes.agent``).
    """

    name: str
    path: str
    is_group: bool
    settings: PodSettings
    processes: dict[str, Process]

    @property
    def is_finite(self) -> bool:
        """True if any process of the pod ends by itself; such a pod is a Job, all others are StatefulSets."""
        return any(process.lifecycle == "finite" for process in self.processes.values())


def pods_of(experiment: Experiment) -> dict[str, Pod]:
    """Return all pods by name, groups first, then lone processes, each in order of declaration."""
    pods = {
        name: Pod(name=name, path=f"groups.{name}", is_group=True, settings=group, processes=group.processes)
        for name, group in experiment.groups.items()
    }
    for name, process in experiment.processes.items():
        pods[name] = Pod(
            name=name, path=f"processes.{name}", is_group=False, settings=process, processes={name: process}
        )
    return pods


def processes_of(experiment: Experiment) -> Iterator[tuple[ProcessRef, Process]]:
    """Yield all processes in order of declaration: `experiment.order` first, then the rest, groups first."""
    everything = {
        ProcessRef(pod.name, name): process
        for pod in pods_of(experiment).values()
        for name, process in pod.processes.items()
    }
    by_text = {f"{ref.pod}/{ref.process}" if ref.pod in experiment.groups else ref.process: ref for ref in everything}
    for text in experiment.order:
        if text in by_text:
            ref = by_text.pop(text)
            yield ref, everything.pop(ref)
    yield from everything.items()


def pods_that_end(experiment: Experiment) -> set[str]:
    """Return the names of the pods of services that end with the run (`until: run`).

    Without `until`, a service ends with the run unless it is exposed and no process of the run connects to it. If no
    process is finite, the run has no end, and such services stay.
    """
    pods = pods_of(experiment)
    listeners = {
        service: name
        for name, pod in pods.items()
        for process in pod.processes.values()
        for service in (*process.binds, *process.exposes)
    }

    def belongs(pod: Pod) -> bool:
        is_exposed = any(process.exposes for process in pod.processes.values())
        return pod.is_finite or pod.settings.until == "run" or not (pod.settings.until or is_exposed)

    has_end = any(pod.is_finite for pod in pods.values())
    found = [pod for pod in pods.values() if (belongs(pod) if has_end else pod.settings.until == "run")]
    of_run = {pod.name for pod in found}
    while has_end and found:
        for process in found.pop().processes.values():
            reached = [pods[listeners[service]] for service in process.connects if service in listeners]
            more = [pod for pod in reached if pod.name not in of_run and pod.settings.until is None]
            of_run.update(pod.name for pod in more)
            found += more
    return {name for name in of_run if not pods[name].is_finite}


def retries_of(experiment: Experiment, pod: Pod) -> int:
    """Return the number of times that a failed pod is restarted.

    If not set, a pod that restarts on failure gets Kubernetes' default for Jobs (backoffLimit), others none.
    """
    if pod.settings.retries is not None:
        return pod.settings.retries
    return experiment.workload.retries or (_BACKOFF_LIMIT if pod.settings.restart == "on-failure" else 0)


def find_process(experiment: Experiment, name: str) -> ProcessRef:
    """Return the process with this `name` (``process``, or ``group/process`` if several match).

    Raises NotFound unless exactly one matches.
    """
    pod, _, process = name.rpartition("/")
    fits = [ref for ref, _ in processes_of(experiment) if ref.process == process and pod in ("", ref.pod)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        choices = ", ".join(f"{ref.pod}/{ref.process}" for ref in fits)
        raise NotFound(f'"{name}" matches several processes: {choices}', next="name it as group/process")
    raise NotFound(f'unknown process "{name}" in experiment "{experiment.name}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A named port: `listener` is the process that binds or exposes it; `port` is the same on every backend."""

    name: str
    port: int
    listener: ProcessRef
    is_bound: bool
    is_exposed: bool


def allocate(experiment: Experiment, pinned: Mapping[str, int] | None = None) -> tuple[Service, ...]:
    """Return all services with their ports, exposed ones first, then bound ones, each in order of declaration.

    Ports that the experiment fixes are kept, then those of `pinned` (the lock file) that are free and inside the range.
    The rest get the lowest free number of `port_range` in the same order, which for an empty `pinned` is Symphony's
    allocation (SurrealAI/symphony: symphony/kube/experiment.py, declare_services).

    Raises SpecError if the range is exhausted.
    """
    declared = list(processes_of(experiment))
    exposed = {name: (ref, port) for ref, process in declared for name, port in process.exposes.items()}
    bound = {name: (ref, port) for ref, process in declared for name, port in process.binds.items()}
    ports = {name: port for name, (_, port) in [*exposed.items(), *bound.items()] if port is not None}
    listeners = {name: ref for name, (ref, _) in [*exposed.items(), *bound.items()]}
    taken = set(ports.values())
    low, high = experiment.port_range
    for name, port in (pinned or {}).items():
        if name in listeners and name not in ports and low <= port <= high and port not in taken:
            ports[name] = port
            taken.add(port)
    free = (port for port in range(low, high + 1) if port not in taken)
    services = []
    for name, listener in listeners.items():
        number = ports[name] if name in ports else next(free, None)
        if number is None:
            step = f"widen `port_range` (now {low}-{high})"
            raise SpecError.one(f'no free port left for service "{name}"', "port_range", step)
        is_bound, is_exposed = name in bound, name in exposed
        services.append(Service(name=name, port=number, listener=listener, is_bound=is_bound, is_exposed=is_exposed))
    return tuple(services)


def pins_of(services: tuple[Service, ...]) -> dict[str, int]:
    """Return the ports for the lock file, by service."""
    return {service.name: service.port for service in sorted(services, key=lambda service: service.name)}


# TorchX lowers every request by 100 millicores and 1024 MB, so that processes that fill a machine still fit beside its
# system daemons, and keeps the limit. `reserve` does the same, but keeps at least half of the request.
# Source: meta-pytorch/torchx, torchx/schedulers/kubernetes_scheduler.py.

_CPU = Fraction(100, 1000)
_MEMORY = Fraction(1024 * 10**6)


def resources_of(process: Process) -> tuple[dict[str, str], dict[str, str]]:
    """Return the requests and limits of a process.

    `reserve` lowers requests; a missing limit becomes the original request. Lowered CPU is in millicores, memory in
    ``M`` (``Mi`` if the request has a binary suffix), both rounded up.
    """
    requests, limits = dict(process.requests), dict(process.limits)
    if process.reserve:
        for name, reserve in (("cpu", _CPU), ("memory", _MEMORY)):
            asked = requests.get(name) or limits.get(name)
            if asked is not None and is_quantity(asked):
                limits.setdefault(name, asked)
                unit = "m" if name == "cpu" else "Mi" if asked.endswith("i") else "M"
                requests[name] = _lower(asked, reserve, unit, quantity(f"1{unit}"))
    return requests, limits


def _lower(asked: str, reserve: Fraction, unit: str, size: Fraction) -> str:
    """Return `asked` less the reserve, but at least half of it, in whole units; unchanged if that is not less."""
    whole = quantity(asked)
    units = math.ceil(max(whole - reserve, whole / 2) / size)
    return f"{units}{unit}" if units * size < whole else asked


_CAPABILITIES = {
    "instance-type": "node.kubernetes.io/instance-type",
    "instance_type": "node.kubernetes.io/instance-type",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}


def selector_of(settings: PodSettings) -> dict[str, str]:
    """Return the node selector of a pod: its `capabilities` under Kubernetes' labels, and its own selector."""
    named = {_CAPABILITIES.get(name, name): value for name, value in settings.capabilities.items()}
    return {**named, **settings.node_selector}
