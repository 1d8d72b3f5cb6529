"""An experiment as the objects of DI-orchestrator: a DIJob of one operator version, and what it needs beside it.

The way back of `importers.dijob`: importing what this makes gives the same experiment. What a DIJob cannot say is
refused where it would change what runs, and noted where it would not.
Source: opendilab/DI-orchestrator, config/crd/bases at v0.2.2, v1.0.0, v1.1.0 and v1.1.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symphony_charts.importers import dijob_hints as hints
from symphony_charts.importers.dijob_roles import ROLES
from symphony_charts.importers.dijob_template import PodWriter, TaskAddresses
from symphony_charts.importers.report import Log, Note
from symphony_charts.network.services import allocate
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod, pods_of, processes_of

__all__ = ["Exported", "dijob_objects"]

_GROUP = "diengine.opendilab.org"
_LONGEST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes objects to apply in order, and `notes` on what they do not say of the experiment."""

    objects: tuple[dict[str, object], ...]
    notes: tuple[Note, ...] = ()


def dijob_objects(experiment: Experiment, dialect: hints.Dialect | None = None) -> Exported:
    """The experiment as a DIJob for the operator of `dialect` (default: the one it was imported from, else v1.1).

    Raises SpecError with everything that no DIJob of that operator can say.
    """
    log = Log()
    chosen = dialect or _dialect_of(experiment)
    pods = list(_ordered(experiment))
    _check(experiment, pods, chosen, log)
    log.raise_faults()
    services = allocate(experiment)
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


def _dialect_of(experiment: Experiment) -> hints.Dialect:
    said = experiment.annotations.get(hints.DIALECT)
    known: Sequence[hints.Dialect] = ("v0", "v1.0", "v1.1.0", "v1.1")
    return next((dialect for dialect in known if dialect == said), "v1.1")


def _ordered(experiment: Experiment) -> list[Pod]:
    """Pods in order of declaration, which gives the tasks their ranks."""
    pods = pods_of(experiment)
    names = dict.fromkeys(ref.pod for ref, _ in processes_of(experiment))
    return [pods[name] for name in names]


def _check(experiment: Experiment, pods: list[Pod], dialect: hints.Dialect, log: Log) -> None:
    workload = experiment.workload
    if workload.gang != "none" or workload.queue:
        what = "a DIJob can neither be queued nor be scheduled as a gang"
        log.fault("workload", what, "use workload.kind: jobset, or drop gang and queue")
    if dialect == "v0":
        names = {pod.name for pod in pods}
        for pod in pods:
            if pod.name not in (*ROLES, "aggregator"):
                what = f'operator v0 knows the roles {", ".join(ROLES)} and aggregator, not "{pod.name}"'
                log.fault(pod.path, what, "use a newer dialect")
        if "coordinator" not in names:
            log.fault("processes", "operator v0 needs a process called coordinator", "add it, or use a newer dialect")
    if dialect == "v1.0" and len(pods) != 1:
        log.fault("processes", f"operator v1.0 runs one kind of pod, not {len(pods)}", "use dialect v1.1")
    for pod in pods:
        longest = f"{experiment.name}-{pod.name}-{max(pod.settings.replicas - 1, 0)}"
        if len(longest) > _LONGEST:
            log.fault(pod.path, f'the pod\'s name "{longest}" has more than {_LONGEST} characters', "shorten the names")


def _metadata(experiment: Experiment) -> dict[str, object]:
    kept = {key: value for key, value in experiment.annotations.items() if not key.startswith(f"{_GROUP}/")}
    said = {
        "name": experiment.name,
        "namespace": experiment.namespace,
        "labels": experiment.labels,
        "annotations": kept,
    }
    return {key: value for key, value in said.items() if value not in (None, {})}


def _hint(experiment: Experiment, key: str, field: str, default: str | None = None) -> dict[str, object]:
    value = experiment.annotations.get(key, default)
    return {} if value is None else {field: value}


def _common(experiment: Experiment) -> dict[str, object]:
    return {
        **_hint(experiment, hints.GROUP, "group"),
        **_hint(experiment, hints.CLEAN_POD_POLICY, "cleanPodPolicy", "Running"),
    }


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
        if pod.name != "coordinator" and pod.is_finite:
            template.setdefault("restartPolicy", "Never")
        if pod.settings.replicas != 1:
            what = f"how many {pod.name}s there are is said by the coordinator's configuration"
            writer.log.note(f"{pod.path}.replicas", what)
        spec[pod.name] = {"template": {"spec": template}}
    return spec | writer.job_volumes(), beside


def _template_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    pod = pods[0]
    engine: dict[str, object] = {
        "topology": experiment.annotations.get(hints.TOPOLOGY, "star"),
        "parallelWorkers": _number(experiment.annotations.get(hints.PARALLEL_WORKERS), 1),
    }
    replicas = pod.settings.replicas
    spec = _common(experiment) | {
        **_hint(experiment, hints.PRIORITY, "priority", "normal"),
        "preemptible": False,
        "minReplicas": replicas,
        "maxReplicas": _number(experiment.annotations.get(hints.MAX_REPLICAS), max(replicas, 1)),
        "engineFields": engine,
        "template": {"spec": writer.with_volumes(writer.template(pod))},
    }
    return spec, []


def _tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter, *, job_volumes: bool = True) -> _Spec:
    types: set[str] = set()
    tasks: list[object] = []
    for pod in pods:
        kind = pod.settings.annotations.get(hints.TASK_TYPE) or (pod.name if pod.name in hints.TASK_TYPES else "none")
        if kind in types and kind != "none":
            what = f'an operator takes one task of type {kind}; "{pod.name}" is of type none'
            writer.log.note(pod.path, what)
            kind = "none"
        types.add(kind)
        template = writer.template(pod)
        body = template if job_volumes else writer.with_volumes(template, pod)
        tasks.append({"name": pod.name, "type": kind, "replicas": pod.settings.replicas, "template": {"spec": body}})
        if not pod.is_finite:
            what = f'"{pod.name}" serves until the experiment ends, but a DIJob ends when all its pods have'
            writer.log.note(pod.path, what, "let it end by itself")
    spec = _common(experiment) | {
        **_hint(experiment, hints.PRIORITY, "priority", "normal"),
        "preemptible": False,
        "backoffLimit": experiment.workload.retries,
        "tasks": tasks,
    }
    return (spec | writer.job_volumes() if job_volumes else spec), []


def _old_tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    return _tasks_spec(experiment, pods, writer, job_volumes=False)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default


_SPECS = {"v0": _roles_spec, "v1.0": _template_spec, "v1.1.0": _old_tasks_spec, "v1.1": _tasks_spec}
