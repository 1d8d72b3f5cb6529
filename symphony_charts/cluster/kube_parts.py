"""What the workloads of other projects stand for: the Jobs that they make or would make, and how they ended. Pure.

A JobSet makes its Jobs late, takes them away early and hides them while it is queued; so what it says of its groups is
read from the set itself, and a Job that is there has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["STOPPED", "parts_of", "verdict_of"]

Object = Mapping[str, Any]

STOPPED = "symph.dev/Stopped"
"""The condition of a Job that its set took away when it was over."""

_ENDS: Mapping[str, Literal["succeeded", "failed"]] = {
    "Completed": "succeeded",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Error": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}


def parts_of(workload: Object) -> list[Object]:
    """The Jobs of a JobSet, AppWrapper or Volcano Job as it describes them; none of any other kind."""
    kind, group = workload["kind"], str(workload.get("apiVersion", "")).partition("/")[0]
    spec = workload["spec"]
    if workload["metadata"].get("deletionTimestamp"):
        return []
    if kind == "JobSet":
        return [_part(workload, f"{one['name']}-0", one["template"]) for one in spec.get("replicatedJobs") or []]
    if kind == "AppWrapper":
        return [part for one in spec.get("components") or [] for part in _wrapped(workload, one.get("template") or {})]
    if group == "batch.volcano.sh":
        return [_task(workload, one) for one in spec.get("tasks") or []]
    return []


def verdict_of(workloads: Sequence[Object]) -> Literal["succeeded", "failed"] | None:
    """How all ended, as the workload that holds the groups together says; None without one, or before its end.

    Where nothing holds them together, the Jobs whose success ends the experiment say that it has succeeded.
    """
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    sets = [_ENDS.get(_word(item)) for item in alive if _is_whole(item)]
    if sets:
        return next((end for end in sets if end), None)
    deciding = [item for item in alive if (item["metadata"].get("annotations") or {}).get("symph.dev/done-when")]
    is_failed = any("Failed" in _held(item) for item in alive)
    is_done = deciding and not is_failed and all("Complete" in _held(item) for item in deciding)
    return "succeeded" if is_done else None


def _part(whole: Object, name: str, template: Object) -> Object:
    """A Job by the template of `whole`; suspended with it, and gone with its end."""
    meta, spec = whole["metadata"], whole["spec"]
    end = _ENDS.get(_word(whole))
    gone = {"type": STOPPED, "status": "True", "message": f"its {whole['kind']} has {end}"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{meta['name']}-{name}",
            "namespace": meta.get("namespace", ""),
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "ownerReferences": [{"kind": whole["kind"], "name": meta["name"], "uid": meta.get("uid", "")}],
        },
        "spec": {**template["spec"], "suspend": bool(spec.get("suspend"))},
        "status": {"conditions": [gone] if end else []},
    }


def _wrapped(wrapper: Object, item: Object) -> list[Object]:
    if item.get("kind") == "Job":
        return [_part(wrapper, str(item["metadata"]["name"]), item)]
    whole = {**item, "metadata": wrapper["metadata"], "status": wrapper.get("status") or {}}
    return parts_of(whole) if item.get("kind") == "JobSet" else []


def _task(job: Object, task: Object) -> Object:
    template = task.get("template") or {"spec": {"containers": []}}
    shape = {"completions": task.get("replicas", 1), "template": template}
    return _part(job, str(task.get("name", "")), {"metadata": template.get("metadata") or {}, "spec": shape})


def _is_whole(item: Object) -> bool:
    """Whether it holds several groups together."""
    return item["kind"] not in ("Job", "StatefulSet") or str(item.get("apiVersion", "")).startswith("batch.volcano.sh")


def _word(item: Object) -> str:
    """Its state in its own word: where that stands differs by project."""
    status = item.get("status") or {}
    state = status.get("state")
    return str(
        status.get("terminalState") or status.get("phase") or (state.get("phase") if isinstance(state, Mapping) else "")
    )


def _held(item: Object) -> set[str]:
    conditions = (item.get("status") or {}).get("conditions") or []
    return {one["type"] for one in conditions if one.get("status") == "True"}
