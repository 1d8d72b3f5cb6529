"""A DIJob as its operator reads it: what it makes of each task, written as a Job or Deployment.

Sources: opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go (names, labels, domain, environment); v1.0.0; v0.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.environment.di_engine import node_facts
from symphony_charts.environment.variables import Fact
from symphony_charts.formats.data import maps, sub
from symphony_charts.spec import variable_names

__all__ = ["RANK", "group_of", "process_of", "tasks_of"]

# Where the pods of a task find their number among all; the template says that of the first.
RANK = "diengine/rank"
_ROLES = ("coordinator", "collector", "learner")


def tasks_of(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """A Job for each task of a DIJob: its pods bear our label of the group, which their processes are told."""
    spec, name = sub(item, "spec"), str(sub(item, "metadata").get("name"))
    tasks = maps(spec, "tasks")
    if "tasks" in spec:
        rank = 0
        for task in tasks:
            called = f"{name}-{task.get('name')}"
            # By the last one a Service under operator v1.1.0 finds the first pod of a task.
            labels = {"diengine/job": name, "diengine/task-name": str(task.get("name")), "diengine/pod": f"{called}-0"}
            yield _job(called, _count(task, "replicas"), _with_ranks(name, task, tasks, rank), labels)
            rank += _count(task, "replicas")
    elif "template" in spec:
        pod = _pod(sub(spec, "template"), name)
        yield _job(f"{name}-0", _count(spec, "minReplicas"), pod, {"diengine/job": name})
    else:
        for role in _ROLES:
            if role in spec:
                pod = _pod(sub(sub(spec, role), "template"), "")
                yield _job(f"{name}-{role}", 1, pod, {"dijob-name": name, "replica-type": role})


def group_of(pod: Mapping[str, object], task: str) -> str:
    """The group whose pod has this spec; the name of a task may be cut, so its processes say it."""
    return next((group for one in maps(pod, "containers") if (group := _told(one, variable_names.GROUP))), task)


def process_of(container: Mapping[str, object]) -> str:
    """The process that a container runs: as it is told, since operators look for containers of given names."""
    return _told(container, variable_names.ROLE) or str(container["name"])


def _told(container: Mapping[str, object], variable: str) -> str:
    values = (entry.get("value") for entry in maps(container, "env") if entry.get("name") == variable)
    return str(next(values, None) or "")


def _job(name: str, replicas: int, template: dict[str, object], found_by: Mapping[str, str]) -> dict[str, object]:
    """A Job, or for pods that never end a Deployment; `found_by` are the labels that the operator gives the pods."""
    spec = sub(template, "spec")
    group = {"symph.dev/group": group_of(spec, found_by.get("diengine/task-name") or found_by.get("replica-type", ""))}
    labels = {**found_by, **group}
    template = {**template, "metadata": {**sub(template, "metadata"), "labels": labels}}
    if spec.get("restartPolicy") == "Always":
        api, kind = "apps/v1", "Deployment"
        shape: dict[str, object] = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    else:
        api, kind = "batch/v1", "Job"
        shape = {"backoffLimit": 0, "completions": replicas, "parallelism": replicas, "template": template}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": group}, "spec": shape}


def _pod(template: Mapping[str, object], domain: str) -> dict[str, object]:
    spec = {"restartPolicy": "Never", **sub(template, "spec")}
    return {"spec": {**spec, **({"subdomain": domain} if domain else {})}}


def _with_ranks(
    job: str, task: Mapping[str, object], tasks: Sequence[Mapping[str, object]], rank: int
) -> dict[str, object]:
    """The pod of a task with the variables that its operator adds; the service of operator v1.1.2 and later."""
    template = _pod(sub(task, "template"), f"di-{job}")
    hosts = {
        str(one.get("name")): [f"{job}-{one.get('name')}-{index}.di-{job}" for index in range(_count(one, "replicas"))]
        for one in tasks
    }
    name = str(task.get("name"))
    facts = node_facts(job, name, 0, hosts, {str(one.get("name")): str(one.get("type") or "") for one in tasks})
    added = [
        {"name": "DI_JOB_ID", "value": job},
        {"name": variable_names.DI_NODES, "value": facts[Fact.DI_NODES]},
        {"name": f"DI_{name.upper().replace('-', '_')}_NODES", "value": facts[Fact.DI_GROUP_NODES]},
        {"name": variable_names.DI_RANK, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{RANK}']"}}},
    ]
    spec = sub(template, "spec")
    containers = [{**one, "env": [*maps(one, "env"), *added]} for one in maps(spec, "containers")]
    return {"metadata": {"annotations": {RANK: str(rank)}}, "spec": {**spec, "containers": containers}}


def _count(item: Mapping[str, object], key: str) -> int:
    count = item.get(key, 1)
    return count if isinstance(count, int) else 1
