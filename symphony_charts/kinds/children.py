"""The objects with pods that controllers create from other Kubernetes objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symphony_charts.kinds.registry import kind_for

__all__ = ["opened"]


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return `objects`, each followed by those that its controller creates from it, with the names that it gives."""
    beside = list(objects)

    def with_children(item: dict[str, object]) -> Iterator[dict[str, object]]:
        yield item
        kind = kind_for(item)
        for child in kind.children(item, beside) if kind else ():
            yield from with_children(child)

    return [one for item in beside for one in with_children(item)]
