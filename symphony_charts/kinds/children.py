"""What stands in Kubernetes objects that hold others: what controllers make of them, as far as it runs pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.argo.manifest import manifests_of
from symphony_charts.kinds.dijob.children import tasks_of

__all__ = ["kind_of", "opened"]


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """`objects`, and after each that stands for others what its controller makes of it, under the names it gives."""
    return [one for item in objects for one in (item, *opened(_inside(item)))]


def kind_of(item: Mapping[str, object]) -> str:
    """The kind of an object, the one of Volcano's Jobs being ``VolcanoJob``."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


def _inside(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The objects in JobSets, AppWrappers, Volcano Jobs, DIJobs and WorkflowTemplates, which say what Workflows do."""
    kind, spec, name = kind_of(item), sub(item, "spec"), sub(item, "metadata").get("name")
    if kind == "JobSet":
        for member in maps(spec, "replicatedJobs"):
            yield _job(f"{name}-{member.get('name')}-0", sub(member, "template"))
    elif kind == "AppWrapper":
        yield from (sub(part, "template") for part in maps(spec, "components"))
        yield from (sub(part, "generictemplate") for part in maps(sub(spec, "resources"), "GenericItems"))
    elif kind == "DIJob":
        yield from tasks_of(item)
    elif kind == "WorkflowTemplate":
        yield from manifests_of(item)
    elif kind == "VolcanoJob":
        for task in maps(spec, "tasks"):
            yield _job(f"{name}-{task.get('name')}", {"spec": _of_task(task)})


def _job(name: str, template: Mapping[str, object]) -> dict[str, object]:
    metadata = {**sub(template, "metadata"), "name": name}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": sub(template, "spec")}


def _of_task(task: Mapping[str, object]) -> dict[str, object]:
    return {"template": sub(task, "template"), "backoffLimit": 0, "completions": task.get("replicas", 1)}
