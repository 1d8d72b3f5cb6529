"""`hera_flows` returns an experiment as hera objects, for use in a hera flow.

The extra `argo` installs hera; without hera, importing this module raises ToolMissing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, cast

from symphony_charts.errors import SpecError, ToolMissing
from symphony_charts.prepare import prepare
from symphony_charts.spec import files

try:
    from hera.workflows import CronWorkflow, Workflow, WorkflowTemplate
except ImportError as error:
    raise ToolMissing("hera is not installed", extra="argo") from error


Built: TypeAlias = WorkflowTemplate | CronWorkflow | Workflow
_KINDS: dict[str, type[Workflow]] = {
    "WorkflowTemplate": WorkflowTemplate,
    "CronWorkflow": CronWorkflow,
    "Workflow": Workflow,
}


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


def built(item: Mapping[str, object]) -> Built:
    """Return the hera object whose `to_dict()` is `item`, a generated WorkflowTemplate, CronWorkflow or Workflow.

    Raises SpecError for another kind.
    """
    kind = str(item.get("kind"))
    if kind not in _KINDS:
        raise SpecError.one(f"hera cannot build a {kind}")
    return cast("Built", _KINDS[kind].from_dict(dict(item)))
