"""What controllers make of Kubernetes objects that hold others, as far as it runs pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.kinds.registry import kind_for

__all__ = ["kind_of", "opened"]


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """`objects`, and after each that stands for others what its controller makes of it, under the names it gives."""
    return [one for item in objects for one in (item, *opened(_children(item)))]


def kind_of(item: Mapping[str, object]) -> str:
    """The kind of an object, the one of Volcano's Jobs being ``VolcanoJob``."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


def _children(item: Mapping[str, object]) -> Iterable[dict[str, object]]:
    kind = kind_for(item)
    return kind.children(item) if kind else ()
