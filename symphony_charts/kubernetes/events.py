"""Which of a cluster's events are about an experiment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symphony_charts.kubernetes.client import Object

__all__ = ["about"]


def about(events: Iterable[Object], objects: Sequence[Object]) -> list[Object]:
    """The events about `objects`, and about pods of theirs that are gone, by the names of their workloads."""
    names = {item["metadata"]["name"] for item in objects}
    makers = [item for item in objects if item["kind"] not in ("Pod", "Service")]
    # Kueue's record of a workload is called after its kind, too.
    owners = tuple(
        f"{start}{item['metadata']['name']}-" for item in makers for start in ("", f"{item['kind'].lower()}-")
    )
    return [item for item in events if _is_about(str(item["involvedObject"].get("name") or ""), names, owners)]


def _is_about(name: str, names: set[str], owners: tuple[str, ...]) -> bool:
    return name in names or name.startswith(owners)
