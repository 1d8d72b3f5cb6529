"""An experiment as the Kubernetes objects of a release, without helm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from symphony_charts.chart.assemble import Release, assemble
from symphony_charts.chart.compile import compile_values
from symphony_charts.errors import NotFound
from symphony_charts.network.services import allocate
from symphony_charts.placement.assign import apply
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.opened import opened

__all__ = ["objects_of", "render_pod"]

_GROUP_LABEL = "symph.dev/group"


def objects_of(
    experiment: Experiment, pinned: Mapping[str, int] | None = None, namespace: str | None = None
) -> list[dict[str, object]]:
    """All objects that the experiment's chart gives when it is installed under the experiment's own name."""
    settled, _ = apply(experiment, None)
    values = compile_values(settled, allocate(experiment, pinned))
    release = Release(
        name=experiment.name, namespace=namespace or experiment.namespace or "default", chart_name=experiment.name
    )
    return assemble(values, release)


def render_pod(experiment: Experiment, pod: str) -> dict[str, object]:
    """The pod (``metadata`` and ``spec``) of the group or lone process `pod`, as its workload makes it."""
    for item in opened(objects_of(experiment)):
        template = cast("dict[str, object]", cast("dict[str, object]", item.get("spec", {})).get("template"))
        if isinstance(template, dict) and "spec" in template and _group_of(template) == pod:
            return template
    raise NotFound(f'no workload of "{pod}" among the objects of "{experiment.name}"')


def _group_of(template: dict[str, object]) -> object:
    metadata = template.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels.get(_GROUP_LABEL) if isinstance(labels, dict) else None
