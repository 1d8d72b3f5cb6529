"""The pods of DIJobs: as an operator creates them, and live ones with the labels of our charts.

Sources: opendilab/DI-orchestrator v1.1.3, pkg/common/config.go; v0.2.2, common/const.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.formats.data import maps, sub
from symphony_charts.integrations.dijob.settings import node_variables
from symphony_charts.kinds.base import process_of, variable_in
from symphony_charts.spec import variable_names
from symphony_charts.spec.variable_names import ROLE

# Sources: opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go (names, labels, domain, environment); v1.0.0; v0.2.2.

# The annotation with the number of a pod among all; in a template, the number of the first pod.
RANK = "diengine/rank"
_NUMBERED_ROLES = ("coordinator", "collector", "learner")


def created_by(item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()) -> Iterator[dict[str, object]]:
    """Yield a Job for each task of a DIJob. Its pods have our group label, from a variable of their processes.

    Operator v0 takes the pods of aggregators from the AggregatorConfig, one of the objects `beside` the job.
    """
    spec, name = sub(item, "spec"), str(sub(item, "metadata").get("name"))
    tasks = maps(spec, "tasks")
    if "tasks" in spec:
        rank = 0
        for task in tasks:
            called = f"{name}-{task.get('name')}"
            # Under operator v1.1.0 a Service selects the first pod of a task by the last label.
            labels = {"diengine/job": name, "diengine/task-name": str(task.get("name")), "diengine/pod": f"{called}-0"}
            yield _job(called, _count(task, "replicas"), _with_ranks(name, task, tasks, rank), labels)
            rank += _count(task, "replicas")
    elif "template" in spec:
        pod = _pod(sub(spec, "template"), name)
        yield _job(f"{name}-0", _count(spec, "minReplicas"), pod, {"diengine/job": name})
    else:
        for role in _NUMBERED_ROLES:
            if role in spec:
                yield _role(name, role, sub(spec, role))
        for other in beside:
            if other.get("kind") == "AggregatorConfig":
                yield _role(name, "aggregator", sub(other, "spec", "aggregator"))


def _role(job: str, role: str, said: Mapping[str, object]) -> dict[str, object]:
    labels = {"dijob-name": job, "replica-type": role}
    return _job(f"{job}-{role}", 1, _pod(sub(said, "template"), ""), labels)


def group_of(pod: Mapping[str, object], task: str) -> str:
    """Return the group of a pod: from a variable of its processes, else the name of its task."""
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


Object = Mapping[str, Any]

KINDS = (("diengine.opendilab.org/v2alpha1", "DIJob"), ("diengine.opendilab.org/v1alpha1", "DIJob"))
# Selects the pods of all jobs of operators from v1.0 on.
OPERATOR = "diengine/operator=di-operator"

_JOB, _JOB_V0 = "diengine/job", "dijob-name"
_RANKS = ("diengine/task-rank", "diengine/rank")
_INDEX = "batch.kubernetes.io/job-completion-index"
_GROUP, _PROCESS = "symph.dev/group", "symph.dev/process"
_EXPERIMENT, _INSTANCE = "symph.dev/experiment", "app.kubernetes.io/instance"
_INHERITED = (_INSTANCE, "app.kubernetes.io/name", _EXPERIMENT, "symph.dev/run")
# Our name for the task of a job with one template, which has none.
_ONE = "worker"
_COUNTS = ("active", "succeeded", "failed")
# Roles of operator v0. A job has no template for the aggregator, which is cluster-wide.
_ROLES = ("aggregator", "coordinator", "collector", "learner")
# The pods of a learner with several GPUs, which the operator counts as learners.
_PARTS = {"ddp-learner": "learner"}


def pods_of_jobs(jobs: Sequence[Object], listed: Callable[[str], Iterable[Object]]) -> list[dict[str, Any]]:
    """Return the pods of `jobs` with our labels. `listed` returns the pods that a selector matches."""
    pairs = ((selector.partition(" ")[0], listed(selector)) for selector in selectors_of(jobs))
    return [pod for label, pods in pairs for pod in dressed(jobs, pods, label)]


def selectors_of(jobs: Sequence[Object]) -> list[str]:
    """Return the selectors of the pods of `jobs`, one for each label in use."""
    names: dict[str, set[str]] = {}
    for item in jobs:
        names.setdefault(_JOB_V0 if is_of_v0(item) else _JOB, set()).add(item["metadata"]["name"])
    return [f"{label} in ({','.join(sorted(names[label]))})" for label in sorted(names)]


def is_of_v0(job: Object) -> bool:
    """Return True if a DIJob has the shape of operator v0: roles instead of tasks or a template."""
    return not {"tasks", "template"} & set(job["spec"])


def dressed(jobs: Iterable[Object], pods: Iterable[Object], label: str) -> Iterator[dict[str, Any]]:
    """Yield the pods of `jobs` with the labels of our charts: experiment, group and index."""
    by_place = {(item["metadata"].get("namespace"), item["metadata"]["name"]): item for item in jobs}
    counts: dict[tuple[str, str, str], int] = {}
    for pod in sorted(pods, key=lambda one: (str(one["metadata"].get("creationTimestamp")), one["metadata"]["name"])):
        meta = pod["metadata"]
        name = (meta.get("labels") or {}).get(label, "")
        job = by_place.get((meta.get("namespace"), name))
        if job is None:
            continue
        labels = meta.get("labels") or {}
        task = str(labels.get("diengine/task-name") or labels.get("replica-type") or _ONE)
        task = _PARTS.get(task, task) if label == _JOB_V0 else task
        group, spec = group_of(pod["spec"], task), _told(pod["spec"], task)
        place = (str(meta.get("namespace")), str(name), group)
        counts[place] = counts.get(place, -1) + 1
        notes = meta.get("annotations") or {}
        # Operator v0 does not number pods.
        index = next((notes[key] for key in _RANKS if key in notes), str(counts[place]))
        labels = {**labels, **_labels(job, spec, group)}
        yield {**pod, "spec": spec, "metadata": {**meta, "labels": labels, "annotations": {**notes, _INDEX: index}}}


def tasks_of(job: Object) -> list[tuple[str, Object]]:
    """Return the name of each task of a DIJob, and a Job with its labels, number of pods and their template."""
    spec = job["spec"]
    if "tasks" in spec:
        parts = [(str(one.get("name")), one.get("replicas", 1), one.get("template")) for one in spec["tasks"] or []]
    elif "template" in spec:
        parts = [("", spec.get("minReplicas") or 0, spec["template"])]
    else:
        roles = [role for role in _ROLES if role in spec or any(counts_of(job, role).values())]
        # A job contains only the number of its aggregator's pods.
        unknown = {"template": {"spec": {"containers": [{"name": "di-container"}]}}}
        parts = [(role, 1, spec.get(role, unknown).get("template")) for role in roles]
    return [(name, _task(job, name, count, (template or {}).get("spec") or {})) for name, count, template in parts]


def counts_of(job: Object, role: str) -> dict[str, int]:
    """Return the numbers of active, succeeded and failed replicas of a role, from the status of operator v0."""
    said = (job.get("status") or {}).get("replicaStatus") or {}
    return {key: int(count) for key, count in (said.get(role.capitalize()) or {}).items() if key in _COUNTS}


def message_of(job: Object) -> str:
    """Return the message of the condition that is named like the phase of a DIJob."""
    status = job.get("status") or {}
    conditions = (one for one in status.get("conditions") or [] if one.get("type") == status.get("phase"))
    return str(next((one["message"] for one in conditions if one.get("message")), ""))


def adopted(job: Object) -> dict[str, Any] | None:
    """Return a foreign DIJob with the labels of an experiment of its name; None for one of our charts."""
    meta = job["metadata"]
    labels = meta.get("labels") or {}
    if _EXPERIMENT in labels:
        return None
    return {**job, "metadata": {**meta, "labels": {**labels, _EXPERIMENT: meta["name"], _INSTANCE: meta["name"]}}}


def _told(pod: Object, task: str) -> Object:
    """Return the pod with a variable that names its task as its process, if its only container has none."""
    containers = pod.get("containers") or []
    if len(containers) != 1 or process_of(containers[0]) != containers[0]["name"]:
        return pod
    env = [*(containers[0].get("env") or []), {"name": ROLE, "value": group_of(pod, task)}]
    return {**pod, "containers": [{**containers[0], "env": env}]}


def _task(job: Object, name: str, count: int, pod: Object) -> Object:
    pod = _told(pod, name or _ONE)
    labels = _labels(job, pod, group_of(pod, name or _ONE))
    template = {"metadata": {"labels": labels}, "spec": {"containers": [], **pod}}
    # Operator v0 never starts a pod again.
    limit = 0 if is_of_v0(job) else job["spec"].get("backoffLimit")
    return {"metadata": {"labels": labels}, "spec": {"completions": count, "backoffLimit": limit, "template": template}}


def _labels(job: Object, pod: Object, group: str) -> dict[str, str]:
    own = job["metadata"].get("labels") or {}
    containers = pod.get("containers") or []
    labels = {key: str(own[key]) for key in _INHERITED if key in own}
    labels |= {_GROUP: group, "app.kubernetes.io/component": "experiment"}
    return {**labels, _PROCESS: process_of(containers[0])} if len(containers) == 1 else labels
