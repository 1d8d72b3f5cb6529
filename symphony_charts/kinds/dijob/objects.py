"""Kind `dijob`: groups that end are the tasks of one DIJob, which DI-orchestrator runs; the twin of ``dijob.yaml``.

Three shapes of the API share one version, so the operator's own is a value. Whatever the operator, it copies nothing of
a pod template but its spec: our labels are not on the pods, and Services select by the operator's. The minimal
definition of the kind has no defaults, so every field is said.

Source: opendilab/DI-orchestrator at v0.2.2 (controllers, utils), v1.0.0, v1.1.0 and v1.1.3 (pkg/context/pod.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.group import Group, Member, Unit
from symphony_charts.kinds.table import rows
from symphony_charts.spec.checks.dijob import CONTAINER, ROLES, TASK_TYPES
from symphony_charts.spec.checks.dijob import task_type as task_type_of

__all__ = ["GROUP", "faults_of", "in_order", "longest_task", "objects", "operator_of", "task_type"]

GROUP = "diengine.opendilab.org"
# Read by every coordinator of the cluster before it starts anything; helm and Argo CD must not take it away.
_AGGREGATOR = {"name": "aggregator-config", "namespace": "di-system"}
_WITH_TASKS = ("v1.1", "v1.1.0")
# What the longest name of a pod, 63 characters, leaves beside a run, the number of a replica and three hyphens.
_JOB_AND_TASK = 47
_KEPT = {"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "Prune=false,Delete=false"}


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """The DIJob; for operator v0 also its AggregatorConfig, for v1.1.0 the Service by which its pods are found."""
    own = sub(unit.settings, "dijob")
    operator = operator_of(unit.settings)
    apart = [member for member in unit.members if operator == "v0" and member.group.name == "aggregator"]
    members = in_order([member for member in unit.members if member not in apart], unit.settings)
    if not members:
        return
    spec: dict[str, object] = {"cleanPodPolicy": own.get("cleanPodPolicy") or "Running"}
    if own.get("group") and operator != "v1.1":
        spec["group"] = own["group"]
    if operator == "v0":
        spec |= {member.group.name: {"template": _template(member, own)} for member in members}
    else:
        spec |= {"priority": own.get("priority") or "normal", "preemptible": False}
        spec |= _one_template(members[0], own) if operator == "v1.0" else _tasks(members, own)
    version = "v1alpha1" if operator == "v0" else "v2alpha1"
    metadata = {"name": unit.name, "labels": unit.labels}
    yield {"apiVersion": f"{GROUP}/{version}", "kind": "DIJob", "metadata": metadata, "spec": spec}
    yield from (_aggregator(member, unit, own) for member in apart)
    if operator == "v1.1.0":
        yield _service(unit)


def operator_of(settings: Mapping[str, object]) -> str:
    """The version of the operator that the values of ``workload`` name."""
    return str(sub(settings, "dijob").get("operator") or "v1.1")


def faults_of(groups: Sequence[Group], values: Mapping[str, object]) -> Iterator[Problem]:
    """What no DIJob can run of the groups that are to be its tasks; the templates fail in the same words."""
    settings = sub(values, "workload")
    own, operator, says = sub(settings, "dijob"), operator_of(settings), rows()["dijob"].faults
    if values.get("networks"):
        yield says["networks"].problem()
    if operator == "v1.1.0" and _is_on(sub(values, "networkPolicy").get("enabled")):
        yield says["policy"].problem()
    types: list[str] = []
    for group in groups:
        if len(_lives(group)) > 1:
            yield says["mixed"].problem(group=group.name)
        most = longest_task(group.unit)
        if group.in_unit and len(group.member) > most and operator in _WITH_TASKS:
            yield says["long"].problem(group=group.name, most=str(most), unit=group.unit)
        if operator == "v0" and group.name not in ROLES:
            yield says["role"].problem(group=group.name, roles=", ".join(ROLES))
        if operator == "v0" and group.name == "coordinator" and group.replicas > 1:
            yield says["single"].problem()
        types.append(task_type(group.name, own))
    for kind in TASK_TYPES[:-1]:
        if operator in _WITH_TASKS and types.count(kind) > 1:
            yield says["type"].problem(type=kind)
    if operator == "v1.0" and len(groups) > 1:
        yield says["one"].problem()
    if operator == "v0" and groups and "coordinator" not in [group.name for group in groups]:
        yield says["coordinator"].problem()


def longest_task(job: str) -> int:
    """How long the name of a task may be in a release of this name, whose pods are called after both."""
    return _JOB_AND_TASK - min(rows()["dijob"].unit_length, len(job))


def in_order(members: Sequence[Member], settings: Mapping[str, object]) -> list[Member]:
    """Members by rank: those of ``order`` first, then the others by name."""
    said = settings.get("order")
    first = [str(name) for name in said] if isinstance(said, list) else [str(said)] if said else []
    by_name = {member.group.name: member for member in members}
    return [by_name[name] for name in dict.fromkeys([*first, *by_name]) if name in by_name]


def task_type(group: str, own: Mapping[str, object]) -> str:
    """The type of the task of a group: as said, else its own name if that is one."""
    return task_type_of({name: str(said or "") for name, said in sub(own, "tasks").items()}, group)


def _tasks(members: Sequence[Member], own: Mapping[str, object]) -> dict[str, object]:
    # A failed pod comes back with another rank, so retries are the exception; the job counts them, not its tasks.
    retries = max(member.group.retries for member in members)
    tasks = [
        {
            "name": member.group.member,
            "type": task_type(member.group.name, own),
            "replicas": member.group.replicas,
            "template": _template(member, own),
        }
        for member in members
    ]
    return {"backoffLimit": retries, "tasks": tasks}


def _one_template(member: Member, own: Mapping[str, object]) -> dict[str, object]:
    replicas = member.group.replicas
    engine = {"topology": own.get("topology") or "star", "parallelWorkers": _number(own.get("parallelWorkers"), 1)}
    return {
        "minReplicas": replicas,
        "maxReplicas": _number(own.get("maxReplicas"), replicas),
        "engineFields": engine,
        "template": _template(member, own),
    }


def _template(member: Member, own: Mapping[str, object]) -> dict[str, object]:
    """The spec of the pods, which is all that an operator takes; a deadline is each pod's own."""
    spec = dict(sub(member.template, "spec"))
    spec["containers"] = list(_named(member.group.name, maps(spec, "containers"), sub(own, "containers")))
    deadline = member.fields.get("activeDeadlineSeconds")
    if deadline is not None:
        spec.setdefault("activeDeadlineSeconds", deadline)
    # Operator v0 copies the policy, the later ones set it themselves.
    if member.group.is_finite and own.get("operator") != "v0":
        spec["restartPolicy"] = "Never"
    return {"spec": spec}


def _named(
    group: str, containers: Sequence[Mapping[str, object]], said: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    """The containers by the names that the operator looks for."""
    for container in containers:
        process = str(container.get("name"))
        usual = CONTAINER if len(containers) == 1 and process == group else process
        yield {**container, "name": said.get(process if process == group else f"{group}/{process}") or usual}


def _aggregator(member: Member, unit: Unit, own: Mapping[str, object]) -> dict[str, object]:
    metadata = {**_AGGREGATOR, "labels": unit.labels, "annotations": _KEPT}
    spec = {"aggregator": {"template": _template(member, own)}}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AggregatorConfig", "metadata": metadata, "spec": spec}


def _service(unit: Unit) -> dict[str, object]:
    """The pods' domain, which operator v1.1.0 gives them and makes no Service for."""
    spec = {"clusterIP": "None", "selector": {"diengine/job": unit.name}, "publishNotReadyAddresses": True}
    metadata = {"name": unit.name, "labels": unit.labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _lives(group: Group) -> set[str]:
    containers = sub(group.values, "containers")
    return {str(sub(containers, name).get("lifecycle") or "finite") for name in containers}


def _is_on(value: object) -> bool:
    """Whether a value says yes, as a boolean or as the text ``true``."""
    return value is True or value == "true"


def _number(value: object, default: int) -> int:
    return default if value is None else int(str(value))
