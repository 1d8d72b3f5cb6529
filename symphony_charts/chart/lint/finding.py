"""What lint finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from symphony_charts.formats.data import sub
from symphony_charts.kinds.registry import kind_for

__all__ = ["SEVERITIES", "Finding", "Objects", "Severity", "pod_of", "title"]

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
Objects = Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault or doubt: `rule` is its id, `path` where it is (experiment or object), `next` the way out."""

    rule: str
    severity: Severity
    path: str
    what: str
    next: str = ""


def title(item: dict[str, object]) -> str:
    """``Job/rl-agent-1a2b3c4d``."""
    return f"{item.get('kind')}/{sub(item, 'metadata').get('name')}"


def pod_of(item: dict[str, object]) -> tuple[str, dict[str, object]] | None:
    """The path of the pod (``metadata`` and ``spec``) inside an object, and the pod itself."""
    if item.get("kind") == "Pod":
        return "", item
    kind = kind_for(item)
    if kind is not None and not kind.holds_groups:
        return "spec.template.", sub(item, "spec", "template")
    return None
