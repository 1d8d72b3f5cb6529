"""Kueue's own objects, made by a cluster's administrator, so that experiments can be queued."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.programs import Programs

_API = "kueue.x-k8s.io/v1beta2"


def make_queue(
    programs: Programs, namespace: str, cpu: str, *, flavor: str = "any", more: Mapping[str, object] | None = None
) -> None:
    """Make or change the LocalQueue `mine` of a namespace with `cpu` processors of `flavor`."""
    resources = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "4Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": flavor, "resources": resources}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups, **(more or {})}
    flavors = [{"kind": "ResourceFlavor", "metadata": {"name": "any"}}] if flavor == "any" else []
    make_objects(
        programs,
        *flavors,
        {"kind": "ClusterQueue", "metadata": {"name": namespace}, "spec": spec},
        {
            "kind": "LocalQueue",
            "metadata": {"name": "mine", "namespace": namespace},
            "spec": {"clusterQueue": namespace},
        },
    )


def make_objects(programs: Programs, *objects: Mapping[str, object]) -> None:
    programs.apply(*({"apiVersion": _API, **item} for item in objects))
