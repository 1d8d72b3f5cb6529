"""An experiment as hera objects, to be part of a flow that somebody writes with hera."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from symphony_charts.chart.values.merge import merge
from symphony_charts.clusters.hera import built
from symphony_charts.prepare import prepare
from symphony_charts.spec import files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symphony_charts.clusters.hera import Built

__all__ = ["hera_flows"]


def hera_flows(
    path: str | Path, *, release: str | None = None, values: Mapping[str, object] | None = None
) -> dict[str, Built]:
    """The flows of the experiment in `path` by kind, as hera objects: ``WorkflowTemplate``, and what runs it.

    They are those of its chart, installed as `release` (its own name) under `values`, as kind argo whatever its own.
    Raises SpecError, and ToolMissing without hera.
    """
    overrides = merge({"workload": {"kind": "argo"}}, values or {})
    prepared = prepare(files.read(path), overrides=overrides)
    objects = prepared.under({}, release=release or "").objects
    return {str(item["kind"]): built(item) for item in objects if str(item["apiVersion"]).startswith("argoproj.io/")}
