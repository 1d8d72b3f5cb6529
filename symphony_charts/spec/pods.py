"""An experiment is seen as pods: a lone process is a group of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from symphony_charts.errors import NotFound
from symphony_charts.spec.model import Experiment, PodSettings, Process

__all__ = ["Pod", "ProcessRef", "find_process", "pods_of", "processes_of", "retries_of"]


# kubernetes/api batch/v1 JobSpec.backoffLimit
_BACKOFF_LIMIT = 6


class ProcessRef(NamedTuple):
    """One process by pod (its group, or its own name when it is alone) and name."""

    pod: str
    process: str

    def __str__(self) -> str:
        return self.process if self.pod == self.process else f"{self.pod}/{self.process}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What one pod runs: its pod-level `settings` and its `processes` in order of declaration.

    `path` is where it stands in the experiment (``groups.nonagent`` or ``processes.agent``).
    """

    name: str
    path: str
    is_group: bool
    settings: PodSettings
    processes: dict[str, Process]

    @property
    def is_finite(self) -> bool:
        """Whether any process of the pod ends by itself; such a pod is a Job, all others are StatefulSets."""
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
    """Yield all processes in order of declaration: `experiment.order` first, then what it leaves out, groups first."""
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


def retries_of(experiment: Experiment, pod: Pod) -> int:
    """How often a failed pod is started again.

    Without a number, a pod that restarts on failure gets Kubernetes' default for Jobs (backoffLimit), others none.
    """
    if pod.settings.retries is not None:
        return pod.settings.retries
    return experiment.workload.retries or (_BACKOFF_LIMIT if pod.settings.restart == "on-failure" else 0)


def find_process(experiment: Experiment, name: str) -> ProcessRef:
    """Return the process that `name` (``process``, or ``group/process`` where several fit) means.

    Raises NotFound when none or more than one fits.
    """
    pod, _, process = name.rpartition("/")
    fits = [ref for ref, _ in processes_of(experiment) if ref.process == process and pod in ("", ref.pod)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        choices = ", ".join(f"{ref.pod}/{ref.process}" for ref in fits)
        raise NotFound(f'"{name}" fits several processes: {choices}', next="name it as group/process")
    raise NotFound(f'no process "{name}" in experiment "{experiment.name}"')
