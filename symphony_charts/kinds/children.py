"""What controllers make of Kubernetes objects that hold others, as far as it runs pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.kinds.registry import kind_for

__all__ = ["opened"]


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """`objects`, and after each that stands for others what its controller makes of it, under the names it gives."""
    return [one for item in objects for one in (item, *opened(_children(item)))]


def _children(item: Mapping[str, object]) -> Iterable[dict[str, object]]:
    kind = kind_for(item)
    return kind.children(item) if kind else ()
