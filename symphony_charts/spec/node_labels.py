"""The labels that a pod demands of its node."""

from __future__ import annotations

from symphony_charts.spec.model import PodSettings

__all__ = ["selector_of"]

_CAPABILITIES = {
    "instance-type": "node.kubernetes.io/instance-type",
    "instance_type": "node.kubernetes.io/instance-type",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}


def selector_of(settings: PodSettings) -> dict[str, str]:
    """The node selector of a pod: its `capabilities` under the labels that Kubernetes has for them, and its own."""
    named = {_CAPABILITIES.get(name, name): value for name, value in settings.capabilities.items()}
    return {**named, **settings.node_selector}
