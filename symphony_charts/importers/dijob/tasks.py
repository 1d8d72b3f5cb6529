"""DIJobs of the operators v1.0 have one template, those of v1.1 have tasks."""

from __future__ import annotations

from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.dijob.import_pods import AddedPod, add_pod
from symphony_charts.integrations.dijob.settings import TASK_TYPES
from symphony_charts.spec.variable_names import di_group_nodes

__all__ = ["read_single_template", "read_tasks"]

_DEFAULT_BACKOFF = 3  # the CRD's default
_UNLIMITED = 100
_MOST_REPLICAS = 100_000


def read_tasks(spec: Fields, draft: Draft) -> None:
    """Add a process for each task."""
    _read_backoff(spec, draft)
    tasks = spec.maps("tasks")
    if not tasks:
        draft.log.fault(spec.at("tasks"), "the DIJob has no tasks; it would stay Pending for ever", "add a task")
    seen: set[str] = set()
    types: set[str | None] = set()
    for task in tasks:
        kind = task.text("type")
        if kind is not None and kind not in TASK_TYPES:
            choices = ", ".join(TASK_TYPES)
            draft.log.fault(task.at("type"), f'"{kind}" is no type of task', f"one of {choices}")
        name = _task_name(task, kind, draft)
        if name in seen:
            draft.log.fault(task.at("name"), f'two tasks are called "{name}"', "rename one of them")
            name = f"{name}-{len(seen)}"
        seen.add(name)
        pod = add_pod(task.map("template"), name, task.at("name"), spec.maps("volumes"), draft)
        if (replicas := task.integer("replicas", 1, _MOST_REPLICAS)) not in (None, 1):
            pod.settings["replicas"] = replicas
        _note_variable(task, name, pod.name, draft)
        task.note_unread("of a task is not carried over")
        _complete(pod, draft, task.path)
        if kind in types and kind not in (None, "none"):
            what = f'the operator refuses a second task of type "{kind}"; this one is of type none here'
            draft.log.changed(task.at("type"), what)
            kind = "none"
        types.add(kind)
        if kind not in (None, name) or (kind is None and name in TASK_TYPES):
            draft.tasks[pod.name] = kind or "none"
    spec.skip("volumes")


def read_single_template(spec: Fields, draft: Draft) -> None:
    """Add the one process of a v1.0 job; all its pods are alike."""
    engine = spec.map("engineFields")
    for fields in (engine, spec):  # before v1.0 was released they stood in the spec itself
        if (topology := fields.text("topology")) is not None:
            if topology not in ("star", "alone", "mesh"):
                draft.log.fault(fields.at("topology"), f'"{topology}" is no topology', "star, alone or mesh")
            elif topology != "star":
                draft.say("topology", topology)
        if (workers := fields.integer("parallelWorkers", 1, 1000)) not in (None, 1):
            draft.say("parallel_workers", workers)
    engine.note_unread("of the engine fields is not carried over")
    pod = add_pod(spec.map("template"), "worker", spec.at("template"), spec.maps("volumes"), draft)
    spec.skip("volumes")
    replicas = spec.integer("minReplicas", 0, _MOST_REPLICAS)
    if not replicas:
        what = "without `minReplicas` the operator never starts a pod; one replica is assumed"
        draft.log.changed(spec.at("minReplicas"), what)
    elif replicas > 1:
        pod.settings["replicas"] = replicas
    if (most := spec.integer("maxReplicas", 1, _MOST_REPLICAS)) is not None and most != replicas:
        draft.say("max_replicas", most)
        what = "no released operator starts more pods than `minReplicas`; `maxReplicas` is kept, and means nothing"
        draft.log.changed(spec.at("maxReplicas"), what)
    _complete(pod, draft, spec.path)


def _read_backoff(spec: Fields, draft: Draft) -> None:
    if isinstance(spec.raw("backoffLimit"), str):
        draft.log.fault(spec.at("backoffLimit"), "a number of restarts is no text", "write it without quotes")
    if "backoffLimit" in spec:
        retries = spec.integer("backoffLimit", 0, 2**31 - 1) or 0
    elif "backoffLimit" in spec.keys():  # noqa: SIM118 - null means something else than absent
        spec.skip("backoffLimit")
        retries = _UNLIMITED
        what = f"`backoffLimit: null` means restarts without end; {_UNLIMITED} are allowed here"
        draft.log.changed(spec.at("backoffLimit"), what)
    else:
        retries = _DEFAULT_BACKOFF
    if retries:
        draft.workload["retries"] = retries
        what = (
            f"a pod restarted by the operator (up to {retries} times) gets another DI_RANK; only the last rank bears it"
        )
        draft.log.changed(spec.at("backoffLimit"), what, "use `workload.retries: 0` on kind dijob, or another kind")


def _task_name(task: Fields, kind: str | None, draft: Draft) -> str:
    name = task.text("name")
    if name:
        return name
    if kind in (None, "none"):
        draft.log.fault(task.at("name"), "a task without type needs a name", "add `name`")
        return "task"
    return str(kind)


def _note_variable(task: Fields, theirs: str, ours: str, draft: Draft) -> None:
    """Say where the nodes of a task stand, if another name of it makes another variable."""
    told = f"DI_{theirs.upper().replace('-', '_')}_NODES"
    if told != di_group_nodes(ours):
        draft.log.changed(task.at("name"), f"its nodes stand in {di_group_nodes(ours)}, and not in {told}")


def _complete(pod: AddedPod, draft: Draft, path: str) -> None:
    if len(pod.parts.processes) > 1:
        what = f"{len(pod.parts.processes)} containers in one pod: the operator never takes such a job for Running"
        draft.log.changed(path, what)
    for container, ports in pod.parts.port_objects.items():
        if not ports:
            continue
        overlay = pod.processes[container].setdefault("container_overlay", {})
        if isinstance(overlay, dict):
            overlay["ports"] = ports
        what = "the ports are kept as an overlay; the operator gives the pods one headless Service"
        draft.log.changed(f"{pod.parts.paths[container]}.ports", what, "say `binds` for ports that others dial")
    if pod.parts.restart not in (None, "never"):
        what = f"`restartPolicy` {pod.parts.restart} is overruled by the operator; pods are never restarted in place"
        draft.log.changed(pod.parts.path, what)
