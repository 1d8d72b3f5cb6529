"""Anti-affinity terms in a pod's overlay keep other pods off its node or its part of the network."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay

__all__ = ["with_anti_affinity"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_anti_affinity(overlay: Mapping[str, object], term: dict[str, object]) -> dict[str, object]:
    """Return a pod's `overlay` with the required anti-affinity `term` before its own ones; as it is if it has it."""
    own = maps(sub(overlay, "spec", "affinity", "podAntiAffinity"), _REQUIRED)
    if term in own:
        return dict(overlay)
    return merge_overlay(overlay, {"spec": {"affinity": {"podAntiAffinity": {_REQUIRED: [term, *own]}}}})
