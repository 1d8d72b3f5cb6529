"""`hera_flows` returns an experiment as hera objects, for use in a hera flow.

The extra `argo` installs hera; without hera, importing this module raises ToolMissing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from symphony_charts.errors import SpecError, ToolMissing
from symphony_charts.prepare import prepare
from symphony_charts.spec import files

try:
    from hera.workflows import (
        DAG,
        CronWorkflow,
        Parameter,
        Resource,
        RetryStrategy,
        Task,
        Workflow,
        WorkflowTemplate,
    )
    from hera.workflows.models import (
        Metadata,
        Mutex,
        PodGC,
        Synchronization,
        TemplateRef,
        WorkflowTemplateRef,
    )
except ImportError as error:
    raise ToolMissing("hera is not installed", extra="argo") from error


Built: TypeAlias = WorkflowTemplate | CronWorkflow | Workflow
Item: TypeAlias = Mapping[str, object]
_Made = TypeVar("_Made")


def hera_flows(
    path: str | Path, *, release: str | None = None, values: Mapping[str, object] | None = None
) -> dict[str, Built]:
    """Return the flows of the experiment in `path` as hera objects by kind: a WorkflowTemplate, and its runner.

    They equal the objects of its chart, installed as `release` (default: the experiment's name) with `values`. The kind
    of workload is always argo. Raises SpecError.
    """
    prepared = prepare(files.read(path, ["workload.kind=argo"]), overrides=dict(values or {}))
    objects = prepared.under({}, release=release or "").objects
    return {str(item["kind"]): built(item) for item in objects if str(item["apiVersion"]).startswith("argoproj.io/")}


def built(item: Item) -> Built:
    """Return the hera object whose `to_dict()` is `item`, a generated WorkflowTemplate, CronWorkflow or Workflow.

    Raises SpecError for another kind.
    """
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
    inputs = _parameters(_map(template, "inputs"))
    fields: dict[str, object] = {"name": template["name"], **_tries(template), **({"inputs": inputs} if inputs else {})}
    if "dag" in template:
        return _dag(_make(DAG, fields), template)
    words = {"successCondition": "success_condition", "failureCondition": "failure_condition"}
    resource = {words.get(key, key): value for key, value in _map(template, "resource").items()}
    return _make(Resource, fields | resource)


def _tries(template: Item) -> dict[str, object]:
    """Return the retry, mutex and parallelism settings of a template."""
    fields: dict[str, object] = {}
    if "retryStrategy" in template:
        retries = _map(template, "retryStrategy")
        fields["retry_strategy"] = _make(
            RetryStrategy, {"limit": retries["limit"], "retry_policy": retries["retryPolicy"]}
        )
    if "synchronization" in template:
        mutexes = _maps(_map(template, "synchronization"), "mutexes")
        fields["synchronization"] = Synchronization(mutexes=[_make(Mutex, mutex) for mutex in mutexes])
    if "parallelism" in template:
        fields["parallelism"] = template["parallelism"]
    return fields


def _dag(dag: DAG, template: Item) -> DAG:
    for item in _maps(_map(template, "dag"), "tasks"):
        task: dict[str, object] = {"name": item["name"]}
        if "templateRef" in item:
            task["template_ref"] = _make(TemplateRef, _map(item, "templateRef"))
        else:
            task["template"] = item["template"]
        if "dependencies" in item:
            task["dependencies"] = item["dependencies"]
        if "arguments" in item:
            task["arguments"] = _parameters(_map(item, "arguments"))
        dag.tasks.append(_make(Task, task))
    return dag


def _parameters(holder: Item) -> Sequence[object]:
    return [_make(Parameter, parameter) for parameter in _maps(holder, "parameters")]


def _map(item: Item, key: str) -> dict[str, object]:
    value = item.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def _maps(item: Item, key: str) -> list[dict[str, object]]:
    value = item.get(key)
    return [dict(one) for one in value] if isinstance(value, list) else []
