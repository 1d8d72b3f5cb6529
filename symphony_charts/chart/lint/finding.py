"""What lint finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from symphony_charts.spec.argo_manifest import manifests_of

__all__ = ["SEVERITIES", "Finding", "Objects", "Severity", "kind_of", "maps", "opened", "pod_of", "sub", "title"]

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
Objects = list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault or doubt: `rule` is its id, `path` where it is (experiment or object), `next` the way out."""

    rule: str
    severity: Severity
    path: str
    what: str
    next: str = ""


def title(item: dict[str, object]) -> str:
    """``Job/rl-agent-1a2b3c4d``."""
    return f"{item.get('kind')}/{sub(item, 'metadata').get('name')}"


def sub(value: object, *keys: str) -> dict[str, object]:
    """The map below `keys`, empty where there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return {}
        value = value.get(key)
    return value if isinstance(value, dict) else {}


def maps(value: object, key: str) -> list[dict[str, object]]:
    """The maps in the list at `key`."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def opened(objects: Objects) -> Objects:
    """`objects`, and after each that stands for others what its controller makes of it."""
    return [one for item in objects for one in (item, *opened(list(_inside(item))))]


def kind_of(item: Mapping[str, object]) -> str:
    """The kind of an object, the one of Volcano's Jobs being ``VolcanoJob``."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


def _inside(item: dict[str, object]) -> Iterator[dict[str, object]]:
    """The objects that JobSets, AppWrappers, Volcano's Jobs and Argo's templates hold, as their controllers name them.

    A Workflow of ours says what its template does, and is passed over.
    """
    kind, spec, name = kind_of(item), sub(item, "spec"), sub(item, "metadata").get("name")
    if kind == "JobSet":
        for member in maps(spec, "replicatedJobs"):
            yield _job(f"{name}-{member.get('name')}-0", sub(member, "template"))
    elif kind == "AppWrapper":
        yield from (sub(part, "template") for part in maps(spec, "components"))
        yield from (sub(part, "generictemplate") for part in maps(sub(spec, "resources"), "GenericItems"))
    elif kind == "WorkflowTemplate":
        yield from manifests_of(item)
    elif kind == "VolcanoJob":
        for task in maps(spec, "tasks"):
            yield _job(f"{name}-{task.get('name')}", {"spec": {"template": sub(task, "template"), "backoffLimit": 0}})


def _job(name: str, template: dict[str, object]) -> dict[str, object]:
    metadata = {**sub(template, "metadata"), "name": name}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": sub(template, "spec")}


def pod_of(item: dict[str, object]) -> tuple[str, dict[str, object]] | None:
    """The path of the pod (``metadata`` and ``spec``) inside an object, and the pod itself."""
    if item.get("kind") == "Pod":
        return "", item
    if kind_of(item) in ("Job", "StatefulSet", "Deployment"):
        return "spec.template.", sub(item, "spec", "template")
    return None
