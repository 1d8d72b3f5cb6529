"""The pods that an operator creates from each task of a DIJob, written as a Job or Deployment.

Sources: opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go (names, labels, domain, environment); v1.0.0; v0.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.environment.di_engine import node_variables
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.base import variable_in
from symphony_charts.spec import variable_names

__all__ = ["RANK", "group_of", "tasks_of"]

# The annotation with the number of a pod among all; that of a template is the number of the first.
RANK = "diengine/rank"
_ROLES = ("coordinator", "collector", "learner")


def tasks_of(item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()) -> Iterator[dict[str, object]]:
    """Yield a Job for each task of a DIJob. Its pods have our label of the group, from a variable of their processes.

    Operator v0 takes the pods of aggregators from the AggregatorConfig, which is one of the objects `beside` the job.
    """
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
                yield _role(name, role, sub(spec, role))
        for other in beside:
            if other.get("kind") == "AggregatorConfig":
                yield _role(name, "aggregator", sub(other, "spec", "aggregator"))


def _role(job: str, role: str, said: Mapping[str, object]) -> dict[str, object]:
    labels = {"dijob-name": job, "replica-type": role}
    return _job(f"{job}-{role}", 1, _pod(sub(said, "template"), ""), labels)


def group_of(pod: Mapping[str, object], task: str) -> str:
    """Return the group whose pod has this spec: that in a variable of its processes, else the name of its task."""
    return next((group for one in maps(pod, "containers") if (group := variable_in(one, variable_names.GROUP))), task)


def _job(name: str, replicas: int, template: dict[str, object], found_by: Mapping[str, str]) -> dict[str, object]:
    """Return a Job, or a Deployment if its pods never end. `found_by` are the operator's labels of the pods."""
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
    """Return the pod of a task with the variables and the domain that operator v1.1.2 and later give it."""
    template = _pod(sub(task, "template"), f"di-{job}")
    hosts = {
        str(one.get("name")): [f"{job}-{one.get('name')}-{index}.di-{job}" for index in range(_count(one, "replicas"))]
        for one in tasks
    }
    name = str(task.get("name"))
    types = {str(one.get("name")): str(one.get("type") or "") for one in tasks}
    variables = node_variables(job, name, 0, hosts, types)
    variables.pop(variable_names.DI_RANK)
    field = {"fieldRef": {"fieldPath": f"metadata.annotations['{RANK}']"}}
    added = [
        *({"name": variable, "value": value} for variable, value in variables.items()),
        {"name": variable_names.DI_RANK, "valueFrom": field},
    ]
    spec = sub(template, "spec")
    containers = [{**one, "env": [*maps(one, "env"), *added]} for one in maps(spec, "containers")]
    return {"metadata": {"annotations": {RANK: str(rank)}}, "spec": {**spec, "containers": containers}}


def _count(item: Mapping[str, object], key: str) -> int:
    count = item.get(key, 1)
    return count if isinstance(count, int) else 1
