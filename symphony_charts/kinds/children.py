"""The objects with pods that controllers create from other Kubernetes objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symphony_charts.kinds.registry import kind_for

__all__ = ["opened"]


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return `objects`, each followed by those that its controller creates from it, with the names that it gives."""
    held = list(objects)
    return _opened(held, held)


def _opened(items: Iterable[dict[str, object]], beside: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [one for item in items for one in (item, *_opened(_children(item, beside), beside))]


def _children(item: dict[str, object], beside: Sequence[dict[str, object]]) -> Iterable[dict[str, object]]:
    kind = kind_for(item)
    return kind.children(item, beside) if kind else ()
