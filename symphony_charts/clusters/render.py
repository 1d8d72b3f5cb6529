"""`render_pod` gives the pod of a group as Kubernetes will get it."""

from __future__ import annotations

from typing import cast

from symphony_charts.errors import NotFound
from symphony_charts.formats.data import sub
from symphony_charts.kinds.children import opened
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment

__all__ = ["render_pod"]

_GROUP_LABEL = "symph.dev/group"


def render_pod(experiment: Experiment, pod: str) -> dict[str, object]:
    """Return the pod (``metadata`` and ``spec``) of the group or lone process `pod`, as its workload makes it."""
    for item in opened(prepare_experiment(experiment).objects):
        template = sub(item, "spec").get("template")
        if isinstance(template, dict) and sub(template, "metadata", "labels").get(_GROUP_LABEL) == pod:
            return cast("dict[str, object]", template)
    raise NotFound(f'no workload of "{pod}" among the objects of "{experiment.name}"')
