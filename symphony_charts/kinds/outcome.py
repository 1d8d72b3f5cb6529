"""What the workloads of other projects stand for: the Jobs that they make or would make, and how they ended. Pure.

A JobSet makes its Jobs late, takes them away early and hides them while it is queued; so what it says of its groups is
read from the set itself, and a Job that is there has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from symphony_charts.kinds.argo.manifest import manifests_of
from symphony_charts.kinds.dijob.pods import tasks_of

__all__ = ["STOPPED", "end_of", "is_whole", "may_start_again", "parts_of", "verdict_of", "word_of"]

Object = Mapping[str, Any]

STOPPED = "symph.dev/Stopped"
"""The condition of a Job that its set took away when it was over."""

_ENDS: Mapping[str, Literal["succeeded", "failed"]] = {
    "Completed": "succeeded",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Deleted": "failed",
    "Error": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}


def parts_of(workload: Object) -> list[Object]:
    """The Jobs of a JobSet, AppWrapper, Volcano Job, DIJob or Workflow as it describes them; none of other kinds."""
    kind, group = workload["kind"], str(workload.get("apiVersion", "")).partition("/")[0]
    spec = workload["spec"]
    if workload["metadata"].get("deletionTimestamp"):
        return []
    if kind == "JobSet":
        name = workload["metadata"]["name"]
        return [_part(workload, f"{name}-{one['name']}-0", one["template"]) for one in spec.get("replicatedJobs") or []]
    if kind == "AppWrapper":
        return [part for item in _wrapped_items(spec) for part in _wrapped(workload, item)]
    if kind == "DIJob":
        return [_di_task(workload, name, one) for name, one in tasks_of(workload)]
    if kind == "Workflow":
        return [_part(workload, str(item["metadata"]["name"]), item) for item in _created(workload)]
    if group == "batch.volcano.sh":
        return [_task(workload, one) for one in spec.get("tasks") or []]
    return []


def verdict_of(workloads: Sequence[Object]) -> Literal["succeeded", "failed"] | None:
    """How all ended, as the workload that holds the groups together says; None without one, or before its end.

    Where nothing holds them together, the Jobs whose success ends the experiment say that it has succeeded.
    """
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    is_failed = any("Failed" in _held(item) for item in alive)
    sets = _newest([item for item in alive if is_whole(item)])
    if is_failed and any(item["kind"] == "AppWrapper" and end_of(item) for item in sets):
        # MCAD calls a run complete whose Jobs have ended, whichever way.
        return "failed"
    if sets:
        return next((end for item in sets if (end := end_of(item))), None)
    deciding = [item for item in alive if (item["metadata"].get("annotations") or {}).get("symph.dev/done-when")]
    is_done = deciding and not is_failed and all("Complete" in _held(item) for item in deciding)
    return "succeeded" if is_done else None


def may_start_again(workloads: Sequence[Object]) -> bool:
    """Whether one that has not ended starts all again when a Job has failed: an AppWrapper, or such a JobSet."""
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    return any(end_of(item) is None for item in _newest([item for item in alive if _restarts_all(item)]))


def _restarts_all(item: Object) -> bool:
    spec = item["spec"]
    if item["kind"] == "AppWrapper":
        # MCAD does so only where it is told how many pods there have to be.
        return "components" in spec or bool((spec.get("schedulingSpec") or {}).get("minAvailable"))
    # Of a JobSet the attempts that are left do not count: the failed Job of the last one is there for a moment longer.
    return item["kind"] == "JobSet" and bool((spec.get("failurePolicy") or {}).get("maxRestarts"))


def end_of(item: Object) -> Literal["succeeded", "failed"] | None:
    """How a workload of another project ended, by its own word; None before that."""
    end = _ENDS.get(word_of(item))
    # MCAD says Completed of a run whose pods have ended, whichever way; it counts also failures that were made good.
    if end and item["kind"] == "AppWrapper" and item["status"].get("failed") and not _has_retries(item):
        return "failed"
    return end


def _has_retries(wrapper: Object) -> bool:
    specs = [one.get("spec") or {} for one in _wrapped_items(wrapper.get("spec") or {})]
    return any(spec.get("backoffLimit") or spec.get("backoffLimitPerIndex") for spec in specs)


def is_whole(item: Object) -> bool:
    """Whether it holds several groups together."""
    return item["kind"] not in ("Job", "StatefulSet") or str(item.get("apiVersion", "")).startswith("batch.volcano.sh")


def word_of(item: Object) -> str:
    """The state of a workload in its own word: where that stands differs by project."""
    status = item.get("status") or {}
    state = status.get("state") or ""
    word = state.get("phase") if isinstance(state, Mapping) else state
    # A JobSet has the condition a moment before the word.
    held = next((kind for kind in ("Failed", "Completed") if kind in _held(item)), "")
    return str(status.get("terminalState") or status.get("phase") or word or held)


def _part(whole: Object, name: str, template: Object) -> Object:
    """A Job by the template of `whole`; suspended with it, and gone with its end."""
    meta, spec = whole["metadata"], whole["spec"]
    end = end_of(whole)
    gone = {"type": STOPPED, "status": "True", "message": f"its {whole['kind']} has {end}"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": meta.get("namespace", ""),
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "ownerReferences": [{"kind": whole["kind"], "name": meta["name"], "uid": meta.get("uid", "")}],
        },
        "spec": {**template["spec"], "suspend": bool(spec.get("suspend"))},
        "status": {"conditions": [gone] if end else []},
    }


def _created(workflow: Object) -> list[Any]:
    """The Jobs that a Workflow creates, by what it says itself or took over from its template."""
    taken = (workflow.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    found = manifests_of({**workflow, "spec": {**taken, **workflow["spec"]}})
    return [item for item in found if item.get("kind") == "Job"]


def _newest(sets: list[Object]) -> list[Object]:
    """`sets` without the Workflows of a schedule that came before the last one."""
    flows = [item for item in sets if item["kind"] == "Workflow"]
    last = max(flows, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), default=None)
    return [item for item in sets if item["kind"] != "Workflow" or item is last]


def _wrapped_items(spec: Object) -> list[Object]:
    """The objects in an AppWrapper, of v1beta2 and of v1beta1."""
    items = [one.get("template") for one in spec.get("components") or []]
    items += [one.get("generictemplate") for one in (spec.get("resources") or {}).get("GenericItems") or []]
    return [item for item in items if item]


def _wrapped(wrapper: Object, item: Object) -> list[Object]:
    if item.get("kind") == "Job":
        return [_part(wrapper, str(item["metadata"]["name"]), item)]
    whole = {**item, "metadata": wrapper["metadata"], "status": wrapper.get("status") or {}}
    return parts_of(whole) if item.get("kind") == "JobSet" else []


def _task(job: Object, task: Object) -> Object:
    template = task.get("template") or {"spec": {"containers": []}}
    shape = {"completions": task.get("replicas", 1), "template": template}
    name = f"{job['metadata']['name']}-{task.get('name', '')}"
    return _part(job, name, {"metadata": template.get("metadata") or {}, "spec": shape})


def _di_task(job: Object, name: str, task: Object) -> Object:
    """A task; with the job all of them succeed, but under operator v0 its coordinator alone."""
    part = _part(job, f"{job['metadata']['name']}-{name}", task)
    is_decided = end_of(job) == "succeeded" and ("coordinator" not in job["spec"] or name == "coordinator")
    return {**part, "status": {"conditions": [{"type": "Complete", "status": "True"}]}} if is_decided else part


def _held(item: Object) -> set[str]:
    conditions = (item.get("status") or {}).get("conditions") or []
    return {one["type"] for one in conditions if one.get("status") == "True"}
