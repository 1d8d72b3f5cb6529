"""An experiment becomes the objects of DI-orchestrator: a DIJob of one operator version, and what it needs beside it.

The way back of `importers.dijob`: importing what this makes gives the same experiment. What a DIJob cannot say is
refused where it would change what runs, and noted where it would not.
Source: opendilab/DI-orchestrator, config/crd/bases at v0.2.2, v1.0.0, v1.1.0 and v1.1.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.importers.report import Log, Note
from symphony_charts.integrations.dijob.export import PodWriter, TaskAddresses
from symphony_charts.integrations.dijob.settings import (
    ROLES,
    Operator,
    dijob_faults,
    pods_in_order,
    settings_of,
    task_type,
)
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod
from symphony_charts.spec.services import allocate

__all__ = ["Exported", "dijob_objects"]

_GROUP = "diengine.opendilab.org"
_LONGEST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes objects to apply in order, and `notes` on what they do not say of the experiment."""

    objects: tuple[dict[str, object], ...]
    notes: tuple[Note, ...] = ()


def dijob_objects(experiment: Experiment, operator: Operator | None = None) -> Exported:
    """The experiment as a DIJob for `operator` (default: the one that `workload.dijob` names).

    Raises SpecError with everything that no DIJob of that operator can say.
    """
    log = Log()
    experiment = _for_operator(experiment, operator)
    chosen = settings_of(experiment.workload).operator
    # What no replica runs of is no part of the job, as in the chart.
    pods = [pod for pod in pods_in_order(experiment) if pod.settings.replicas > 0]
    for problem in (*dijob_faults(experiment), *_shape_faults(chosen, pods), *_name_faults(experiment, pods)):
        log.fault(problem.path, problem.what, problem.next)
    log.raise_faults()
    running = {pod.name for pod in pods}
    services = tuple(service for service in allocate(experiment) if service.listener.pod in running)
    writer = PodWriter(experiment, services, TaskAddresses(chosen, experiment.name, pods), log)
    spec, beside = _SPECS[chosen](experiment, pods, writer)
    log.raise_faults()
    job: dict[str, object] = {
        "apiVersion": f"{_GROUP}/{'v1alpha1' if chosen == 'v0' else 'v2alpha1'}",
        "kind": "DIJob",
        "metadata": _metadata(experiment),
        "spec": spec,
    }
    objects = [*writer.config_maps(), *beside, job, *writer.exposed_services()]
    return Exported(objects=tuple(objects), notes=tuple(log.notes))


def _for_operator(experiment: Experiment, operator: Operator | None) -> Experiment:
    workload = experiment.workload
    settings = settings_of(workload)
    settings = msgspec.structs.replace(settings, operator=operator or settings.operator)
    workload = msgspec.structs.replace(workload.with_settings("dijob", settings), kind="dijob")
    return msgspec.structs.replace(experiment, workload=workload)


def _shape_faults(operator: Operator, pods: list[Pod]) -> Iterator[Problem]:
    if not any(pod.is_finite for pod in pods) and operator != "v0":
        yield Problem(what="no replica of what ends would run", path="processes", next="give one of them replicas")
    for pod in pods:
        if operator == "v0" and pod.name not in ROLES:
            what = f'a DIJob of operator v0 has the roles {", ".join(ROLES)}, and no "{pod.name}"'
            yield Problem(what=what, path=pod.path, next="give it replicas: 0, or use `symph package`, which runs it")
        if operator == "v1.0" and not pod.is_finite and len(pods) > 1:
            what = f'a DIJob of operator v1.0 has one kind of pod, and no place for "{pod.name}"'
            yield Problem(what=what, path=pod.path, next="give it replicas: 0, or use `symph package`, which runs it")


def _name_faults(experiment: Experiment, pods: list[Pod]) -> Iterator[Problem]:
    for pod in pods:
        longest = f"{experiment.name}-{pod.name}-{max(pod.settings.replicas - 1, 0)}"
        if len(longest) > _LONGEST:
            what = f'the pod\'s name "{longest}" has more than {_LONGEST} characters'
            yield Problem(what=what, path=pod.path, next="shorten the names")


def _metadata(experiment: Experiment) -> dict[str, object]:
    metadata = {
        "name": experiment.name,
        "namespace": experiment.namespace,
        "labels": experiment.labels,
        "annotations": experiment.annotations,
    }
    return {key: value for key, value in metadata.items() if value not in (None, {})}


def _common(experiment: Experiment) -> dict[str, object]:
    dijob = settings_of(experiment.workload)
    # Operators from v1.1.1 on have no such field.
    group: dict[str, object] = {} if dijob.group is None or dijob.operator == "v1.1" else {"group": dijob.group}
    return {**group, "cleanPodPolicy": dijob.clean_pod_policy}


_Spec = tuple[dict[str, object], list[dict[str, object]]]


def _roles_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    spec = _common(experiment)
    beside: list[dict[str, object]] = []
    for pod in pods:
        template = writer.template(pod)
        if pod.name == "aggregator":
            body: dict[str, object] = {"template": {"spec": writer.with_volumes(template, pod)}}
            beside.append(
                {
                    "apiVersion": f"{_GROUP}/v1alpha1",
                    "kind": "AggregatorConfig",
                    "metadata": {"name": "aggregator-config", "namespace": "di-system"},
                    "spec": {"aggregator": body},
                }
            )
            continue
        if pod.name == "coordinator" and (priority_class := template.pop("priorityClassName", None)):
            spec["priorityClassName"] = priority_class
        template.setdefault("restartPolicy", _restart_policy(pod))
        if pod.settings.replicas != 1:
            what = f"how many {pod.name}s there are is said by the coordinator's configuration"
            writer.log.changed(f"{pod.path}.replicas", what)
        spec[pod.name] = {"template": {"spec": writer.with_own_volumes(template, pod)}}
    return spec | writer.job_volumes(), beside


def _restart_policy(pod: Pod) -> str:
    """The operator copies it; its own default for all but the coordinator is Kubernetes'."""
    if not pod.is_finite:
        return "Always"
    return "OnFailure" if pod.settings.restart == "on-failure" else "Never"


def _template_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    pod = pods[0]
    dijob = settings_of(experiment.workload)
    engine: dict[str, object] = {"topology": dijob.topology, "parallelWorkers": dijob.parallel_workers}
    replicas = pod.settings.replicas
    spec = _common(experiment) | {
        "priority": dijob.priority,
        "preemptible": False,
        "minReplicas": replicas,
        "maxReplicas": dijob.max_replicas or max(replicas, 1),
        "engineFields": engine,
        "template": {"spec": writer.with_volumes(writer.template(pod))},
    }
    return spec, []


def _tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter, *, job_volumes: bool = True) -> _Spec:
    settings = settings_of(experiment.workload)
    tasks: list[object] = []
    for pod in pods:
        kind = task_type(settings.tasks, pod.name)
        template = writer.template(pod)
        body = writer.with_own_volumes(template, pod) if job_volumes else writer.with_volumes(template, pod)
        tasks.append({"name": pod.name, "type": kind, "replicas": pod.settings.replicas, "template": {"spec": body}})
        if not pod.is_finite:
            what = f'"{pod.name}" serves until the experiment ends, but a DIJob ends when all its pods have'
            writer.log.note(pod.path, what, "let it end by itself")
    spec = _common(experiment) | {
        "priority": settings.priority,
        "preemptible": False,
        "backoffLimit": experiment.workload.retries,
        "tasks": tasks,
    }
    return (spec | writer.job_volumes() if job_volumes else spec), []


def _old_tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    return _tasks_spec(experiment, pods, writer, job_volumes=False)


_SPECS = {"v0": _roles_spec, "v1.0": _template_spec, "v1.1.0": _old_tasks_spec, "v1.1": _tasks_spec}
