"""Pods of services belong to a StatefulSet, which no spec asks for by name; the twin of ``statefulsets.yaml``.

What others wrote may have Deployments, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, PodSet, count_of
from symphony_charts.kinds.group import Group

__all__ = ["Services", "stateful_set"]


class Services(Kind):
    """StatefulSets and Deployments: their pods run until somebody ends them."""

    gvks = (("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"))
    is_finite = False
    holds_groups = False

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The replicas."""
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=count_of(spec, "replicas"))


def stateful_set(
    group: Group, metadata: Mapping[str, object], template: Mapping[str, object], selector: Mapping[str, str]
) -> dict[str, object]:
    """The StatefulSet of a group of services; all its pods start at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "template": template,
            "serviceName": group.pods,
            "podManagementPolicy": "Parallel",
            "replicas": group.replicas,
            "selector": {"matchLabels": selector},
        },
    }
