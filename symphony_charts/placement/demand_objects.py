"""What Kubernetes objects ask of the cluster: the twin of `placement.demand` for charts under other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from symphony_charts.placement.demand import Demand, Shape, in_order, pod_affinity
from symphony_charts.placement.inputs.fields import Faults, Fields
from symphony_charts.placement.inputs.podspec import pod_ports, pod_requests, read_node_affinity, read_tolerations
from symphony_charts.spec.argo_manifest import manifests_of
from symphony_charts.spec.dijob_object import tasks_of

__all__ = ["demands_of_objects"]

_GROUP_LABEL = "symph.dev/group"


def demands_of_objects(objects: Iterable[Mapping[str, object]]) -> list[Demand]:
    """The demands of all pods that `objects` make at a time, sorted by shape.

    Known are Job, StatefulSet, Deployment, JobSet, Volcano's Job, AppWrapper, DIJob, WorkflowTemplate and lists of
    these; other kinds make no pods. Raises SpecError for a pod that cannot be read.
    """
    faults = Faults()
    found = [pod for item in objects for pod in _pods(Fields.of(dict(item), "", faults))]
    faults.check()
    with_labels = any(template.block("spec").block("affinity").has("podAntiAffinity") for _, template, _ in found)
    by_shape: dict[Shape, Demand] = {}
    for name, template, count in found:
        if count > 0:
            shape = _shape(template, with_labels=with_labels)
            by_shape.setdefault(shape, Demand(shape)).add(name, count)
    faults.check()
    for demand in by_shape.values():
        demand.members.sort()
    return in_order(by_shape.values())


def _pods(item: Fields) -> Iterator[tuple[str, Fields, int]]:
    """Name, pod template and number at a time of every kind of pod that an object makes."""
    kind, spec = item.text("kind"), item.block("spec")
    name = item.block("metadata").text("name")
    if kind == "Job" and spec.has("tasks"):
        for task in spec.blocks("tasks"):
            yield _named(task.block("template"), task.text("name")), task.block("template"), _count(task, "replicas")
    elif kind in ("Job", "StatefulSet", "Deployment"):
        template = spec.block("template")
        yield _named(template, name), template, _at_a_time(kind, spec)
    elif kind == "JobSet":
        for job in spec.blocks("replicatedJobs"):
            inner = job.block("template").block("spec")
            template = inner.block("template")
            yield _named(template, job.text("name")), template, _count(job, "replicas") * _at_a_time("Job", inner)
    elif kind == "AppWrapper":
        wrapped = [part.block("template") for part in spec.blocks("components")]
        wrapped += [part.block("generictemplate") for part in spec.block("resources").blocks("GenericItems")]
        for part in wrapped:
            yield from _pods(part)
    elif kind in ("DIJob", "WorkflowTemplate"):
        for created in tasks_of(item.data) if kind == "DIJob" else manifests_of(item.data):
            yield from _pods(Fields.of(created, item.path, item.faults))
    elif kind == "List":
        for part in item.blocks("items"):
            yield from _pods(part)


def _at_a_time(kind: str, spec: Fields) -> int:
    if kind != "Job":
        return _count(spec, "replicas")
    return (
        min(_count(spec, "parallelism"), _count(spec, "completions"))
        if spec.has("completions")
        else _count(spec, "parallelism")
    )


def _count(spec: Fields, key: str) -> int:
    number = spec.number(key)
    return 1 if number is None else number


def _named(template: Fields, name: str) -> str:
    return template.block("metadata").mapping("labels").get(_GROUP_LABEL) or name


def _shape(template: Fields, *, with_labels: bool) -> Shape:
    spec = template.block("spec")
    repels, unproven = pod_affinity(spec)
    labels = template.block("metadata").mapping("labels") if with_labels else {}
    return Shape(
        requests=tuple(sorted((name, amount) for name, amount in pod_requests(spec).items() if amount > 0)),
        selector=tuple(sorted(spec.mapping("nodeSelector").items())),
        affinity=read_node_affinity(spec),
        tolerations=read_tolerations(spec),
        ports=pod_ports(spec),
        repels=repels,
        labels=tuple(sorted(labels.items())),
        unproven=unproven,
    )
