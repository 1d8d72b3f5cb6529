"""Argo's objects as hera builds them, for those who write their flows with it. The extra `argo` brings hera."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from symphony_charts.errors import SpecError, ToolMissing

if TYPE_CHECKING:
    from hera.workflows import DAG, CronWorkflow, Resource, Workflow, WorkflowTemplate

    Built: TypeAlias = WorkflowTemplate | CronWorkflow | Workflow

__all__ = ["built"]

Item: TypeAlias = Mapping[str, object]
_Made = TypeVar("_Made")


def built(item: Item) -> Built:
    """The hera object that gives `item`, a WorkflowTemplate, CronWorkflow or Workflow of ours, by ``to_dict()``.

    Raises ToolMissing where hera is not installed, SpecError for another kind.
    """
    try:
        from hera.workflows import CronWorkflow, Workflow, WorkflowTemplate
        from hera.workflows.models import WorkflowTemplateRef
    except ImportError as error:
        raise ToolMissing("hera is not installed", extra="argo") from error
    kinds: dict[str, Callable[..., Built]] = {
        "WorkflowTemplate": WorkflowTemplate,
        "CronWorkflow": CronWorkflow,
        "Workflow": Workflow,
    }
    kind = str(item.get("kind"))
    if kind not in kinds:
        raise SpecError.one(f"hera builds no {kind}")
    metadata, spec = _map(item, "metadata"), _map(item, "spec")
    head: dict[str, object] = {"name": metadata["name"], "labels": dict(_map(metadata, "labels"))}
    if kind == "CronWorkflow":
        head |= {
            "schedules": spec["schedules"],
            "concurrency_policy": spec["concurrencyPolicy"],
            "timezone": spec.get("timezone"),
        }
        spec = _map(spec, "workflowSpec")
    if "workflowTemplateRef" in spec:
        reference = _make(WorkflowTemplateRef, _map(spec, "workflowTemplateRef"))
        return kinds[kind](**head, workflow_template_ref=reference)
    return kinds[kind](**head, **_flow(spec))


def _make(kind: Callable[..., _Made], fields: Item) -> _Made:
    return kind(**fields)


def _flow(spec: Item) -> dict[str, object]:
    """The arguments of a Workflow."""
    from hera.workflows.models import Metadata, PodGC

    flow: dict[str, object] = {
        "entrypoint": spec["entrypoint"],
        "templates": [_template(template) for template in _maps(spec, "templates")],
    }
    if "serviceAccountName" in spec:
        flow["service_account_name"] = spec["serviceAccountName"]
    if "podGC" in spec:
        flow["pod_gc"] = _make(PodGC, _map(spec, "podGC"))
    if "workflowMetadata" in spec:
        flow["workflow_metadata"] = _make(Metadata, _map(spec, "workflowMetadata"))
    if "parallelism" in spec:
        flow["parallelism"] = spec["parallelism"]
    if "arguments" in spec:
        flow["arguments"] = _parameters(_map(spec, "arguments"))
    return flow


def _template(template: Item) -> DAG | Resource:
    from hera.workflows import DAG, Resource

    inputs = _parameters(_map(template, "inputs"))
    fields: dict[str, object] = {"name": template["name"], **_tries(template), **({"inputs": inputs} if inputs else {})}
    if "dag" in template:
        return _dag(_make(DAG, fields), template)
    words = {"successCondition": "success_condition", "failureCondition": "failure_condition"}
    resource = {words.get(key, key): value for key, value in _map(template, "resource").items()}
    return _make(Resource, fields | resource)


def _tries(template: Item) -> dict[str, object]:
    """What a template says beyond what it runs."""
    from hera.workflows import RetryStrategy
    from hera.workflows.models import Mutex, Synchronization

    said: dict[str, object] = {}
    if "retryStrategy" in template:
        retries = _map(template, "retryStrategy")
        said["retry_strategy"] = _make(
            RetryStrategy, {"limit": retries["limit"], "retry_policy": retries["retryPolicy"]}
        )
    if "synchronization" in template:
        mutexes = _maps(_map(template, "synchronization"), "mutexes")
        said["synchronization"] = Synchronization(mutexes=[_make(Mutex, mutex) for mutex in mutexes])
    if "parallelism" in template:
        said["parallelism"] = template["parallelism"]
    return said


def _dag(dag: DAG, template: Item) -> DAG:
    from hera.workflows import Task
    from hera.workflows.models import TemplateRef

    for said in _maps(_map(template, "dag"), "tasks"):
        task: dict[str, object] = {"name": said["name"]}
        if "templateRef" in said:
            task["template_ref"] = _make(TemplateRef, _map(said, "templateRef"))
        else:
            task["template"] = said["template"]
        if "dependencies" in said:
            task["dependencies"] = said["dependencies"]
        if "arguments" in said:
            task["arguments"] = _parameters(_map(said, "arguments"))
        dag.tasks.append(_make(Task, task))
    return dag


def _parameters(holder: Item) -> Sequence[object]:
    from hera.workflows import Parameter

    return [_make(Parameter, parameter) for parameter in _maps(holder, "parameters")]


def _map(item: Item, key: str) -> dict[str, object]:
    value = item.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def _maps(item: Item, key: str) -> list[dict[str, object]]:
    value = item.get(key)
    return [dict(one) for one in value] if isinstance(value, list) else []
