"""Faults of an experiment that no chart can run, with paths in the spec."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.build.draft import Draft
from symphony_charts.chart.build.kinds.registry import KINDS
from symphony_charts.errors import Problem
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.scheduling import topology_of
from symphony_charts.spec.workload import Workload


def experiment_faults(experiment: Experiment) -> Iterator[Problem]:
    """Yield what the kind of workload, its gang or a way in cannot do, and files that are not read yet."""
    workload = experiment.workload
    if workload.kind not in KINDS:
        kinds = ", ".join(f"`{name}`" for name in KINDS)
        yield Problem(what=f'no chart for workload kind "{workload.kind}"', path="workload.kind", next=f"use {kinds}")
        return
    yield from _queue_faults(workload)
    yield from _gang_faults(workload)
    topology = experiment.placement.topology
    if workload.gang == "native" and topology and topology_of(topology)[0] != "required":
        what = "Kubernetes' own gangs require a topology or ignore it"
        yield Problem(what=what, path="placement.topology", next="say `required:`, or use gang kueue")
    if workload.jobset.max_restarts < 0:
        what = f"a JobSet cannot restart {workload.jobset.max_restarts} times"
        yield Problem(what=what, path="workload.jobset.max_restarts", next="0 means never")
    for name, settings in experiment.expose.items():
        if settings.source_ranges and settings.type not in ("LoadBalancer", "ClusterIP"):
            what = f"only a LoadBalancer keeps others out; with {settings.type} everyone can connect"
            step = "expose the service as LoadBalancer, or leave it out"
            yield Problem(what=what, path=f"expose.{name}.source_ranges", next=step)
    for name, file in experiment.configs.items():
        if file.text is None and file.base64 is None:
            what = f'config "{name}" still names the file {file.file}'
            yield Problem(what=what, path=f"configs.{name}", next="read it first")


def container_faults(draft: Draft) -> Iterator[Problem]:
    """Yield processes with the name of a step, since containers of a pod have different names, and odd overlays."""
    for group in draft.groups.values():
        own = f"{group.pod.path}.processes." if group.pod.path.startswith("groups.") else "processes."
        programs = [(f"{own}{name}", process.container_overlay) for name, process in group.pod.processes.items()]
        programs += [(f"prepare.{name}", step.container_overlay) for name, step in group.steps.items()]
        for path, overlay in programs:
            for key in ("command", "args"):
                words = overlay.get(key, [])
                if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                    what = f"{key} is a list of texts"
                    yield Problem(what=what, path=f"{path}.container_overlay.{key}", next="write it as [a, b]")
        for name in sorted(group.steps.keys() & group.pod.processes.keys()):
            what = f'the step "{name}" has the name of a process of "{group.name}", and both are containers of one pod'
            yield Problem(what=what, path=f"prepare.{name}", next="rename the step")


def _queue_faults(workload: Workload) -> Iterator[Problem]:
    if workload.gang == "kueue" and not workload.queue:
        yield Problem(what="gang kueue needs the name of a queue", path="workload.queue", next="set `queue`")
    if workload.queue and workload.gang not in ("kueue", "volcano") and not KINDS[workload.kind].reads_queue:
        what = f"gang {workload.gang} does not read a queue"
        yield Problem(what=what, path="workload.queue", next="use gang kueue or volcano, or leave the queue out")
    if workload.queue_priority and workload.gang != "kueue":
        what = "only gang kueue reads a priority class of the queue"
        yield Problem(what=what, path="workload.queue_priority", next="set `gang: kueue`, or leave it out")


def _gang_faults(workload: Workload) -> Iterator[Problem]:
    gang = workload.gang
    if gang == "native" and not workload.gang_version:
        step = "set `gang_version` to v1alpha2 (Kubernetes 1.36) or v1beta1 (1.37)"
        yield Problem(what="gang native needs a version", path="workload.gang_version", next=step)
    if gang == "coscheduling" and not workload.scheduler_name:
        what = "gang coscheduling needs the name of its scheduler"
        yield Problem(what=what, path="workload.scheduler_name", next="set `scheduler_name`")
