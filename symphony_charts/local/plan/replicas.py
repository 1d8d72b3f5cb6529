"""The replicas of a run, and the effect of `local:` and overlays of the spec on one machine."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import msgspec
from msgspec import Struct

from symphony_charts.formats.data import maps, sub
from symphony_charts.local.plan.records import Machine
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import Pod, pods_of


def local_process(process: Process) -> Process:
    if process.local is None:
        return process
    local = process.local
    changes: dict[str, object] = {}
    if local.cmds is not None:
        changes = {"command": None, "args": None}
    elif local.command is not None:
        changes = {"cmds": None}
    own = {name: getattr(local, name) for name in ("command", "args", "cmds", "shell", "cwd")}
    changes.update({key: value for key, value in own.items() if value is not None})
    return msgspec.structs.replace(process, **changes)


def replicas_here(pod: Pod) -> int:
    own = [process.local.replicas for process in pod.processes.values() if process.local is not None]
    return next((count for count in own if count is not None), pod.settings.replicas)


class Replica(Struct, frozen=True, kw_only=True):
    """One pod of a run: replica `index` of `pod` under `name`, at `address`."""

    pod: Pod
    name: str
    index: int
    count: int
    address: str


def replicas_of(experiment: Experiment, machine: Machine) -> Iterator[Replica]:
    """Yield all replicas of all pods, in the order of their addresses."""
    pods = pods_of(experiment)
    taken = {number for _, number in machine.kept.values()}
    free = (number for number in itertools.count() if number not in taken)
    for pod in pods.values():
        count = replicas_here(pod)
        for index in range(count):
            name, number = machine.kept.get(f"{pod.name}/{index}") or (
                replica_name(pod.name, index, count, pods),
                next(free),
            )
            address = machine.addresses.address(number)
            yield Replica(pod=pod, name=name, index=index, count=count, address=address)


def replica_name(name: str, index: int, count: int, others: Collection[str], separator: str = ".") -> str:
    """Return ``agent-1`` for replica 1 of several, or ``agent.1`` if one of `others` has that name.

    Rows, folders, windows and host names need distinct names.
    """
    if count <= 1:
        return name
    usual = f"{name}-{index}"
    return f"{name}{separator}{index}" if usual in others else usual


def steps_of(experiment: Experiment, pod: Pod) -> dict[str, Step]:
    """Return the steps that run before the processes of `pod`, by name."""
    return {name: step for name, step in experiment.prepare.items() if not step.groups or pod.name in step.groups}


_UNSEEN = ("env", "envFrom", "lifecycle", "volumeMounts")


def foreign_containers(pod: Pod) -> list[str]:
    """Return the containers that the overlay of `pod` adds to it."""
    spec = sub(pod.settings.pod_overlay, "spec")
    return [str(item.get("name")) for key in ("containers", "initContainers") for item in maps(spec, key)]


def overlay_notes(experiment: Experiment) -> Iterator[str]:
    """Yield a note for each container that does not run here, and for each overlay that has no effect here.

    Settings with a field in the spec are already fields; the rest only affects a container runtime.
    """
    for pod in pods_of(experiment).values():
        for name in foreign_containers(pod):
            if name in experiment.prepare:
                yield f'local runs ignore the settings of step "{name}" in pod_overlay of "{pod.name}"'
            else:
                yield f'local runs do not start container "{name}" of pod_overlay of "{pod.name}"'
        for name, process in pod.processes.items():
            unseen = [key for key in _UNSEEN if process.container_overlay.get(key)]
            if unseen:
                who = f"{pod.name}/{name}" if pod.is_group else name
                seen_nowhere = ", ".join(f"`{key}`" for key in unseen)
                yield f'local runs ignore {seen_nowhere} in the overlay of process "{who}"'
