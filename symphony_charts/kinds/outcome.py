"""The outcome of a run, from its live objects: the Jobs that they describe, and how all of them ended.

A JobSet creates its Jobs late, deletes them early, and has none while it is queued. So its groups are read from the set
itself, and a Job that exists counts first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.formats.data import sub
from symphony_charts.kinds.base import STOPPED, End, Object, Restartable, conditions_of
from symphony_charts.kinds.job import Jobs
from symphony_charts.kinds.registry import kind_for

__all__ = [
    "STOPPED",
    "deciding_objects",
    "end_conditions",
    "end_of",
    "is_whole",
    "may_start_again",
    "parts_of",
    "verdict_of",
    "word_of",
]

_DONE = "symph.dev/done-when"
# The reader of an object of an unknown kind.
_UNKNOWN = Jobs()


def parts_of(workload: Object) -> list[Object]:
    """Return the Jobs that an object describes; none if it is being deleted."""
    kind = kind_for(workload)
    return kind.jobs(workload) if kind and not workload["metadata"].get("deletionTimestamp") else []


def verdict_of(workloads: Sequence[Object]) -> End | None:
    """Return how all ended, by the workload that holds the groups; None without one, or before its end.

    If no workload holds them all, the experiment has succeeded with the Jobs of `done_when`.
    """
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    is_failed = any("Failed" in conditions_of(item) for item in alive)
    sets = _newest([item for item in alive if is_whole(item)])
    if is_failed and any((kind_for(item) or _UNKNOWN).ends_either_way and end_of(item) for item in sets):
        return "failed"
    if sets:
        return next((end for item in sets if (end := end_of(item))), None)
    deciding = [item for item in alive if (item["metadata"].get("annotations") or {}).get(_DONE)]
    is_done = deciding and not is_failed and all("Complete" in conditions_of(item) for item in deciding)
    return "succeeded" if is_done else None


def may_start_again(workloads: Sequence[Object]) -> bool:
    """Return True if one that has not ended continues when a Job has failed, mostly by starting all again."""
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    again = [item for item in alive if isinstance(kind := kind_for(item), Restartable) and kind.restarts(item)]
    return any(end_of(item) is None for item in _newest(again))


def end_of(item: Object) -> End | None:
    """Return how a workload ended, by its own status; None before its end."""
    return (kind_for(item) or _UNKNOWN).outcome(item)


def is_whole(item: Object) -> bool:
    """Return True if one such object runs several groups."""
    kind = kind_for(item)
    return kind is None or kind.holds_groups


def word_of(item: Object) -> str:
    """Return the state of a workload in the word of its project."""
    return (kind_for(item) or _UNKNOWN).state(item)


def _newest(sets: list[Object]) -> list[Object]:
    """Return `sets` without the Workflows of a schedule that came before the last one."""
    repeated = [item for item in sets if (kind := kind_for(item)) and kind.is_repeated]
    last = max(repeated, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), default=None)
    return [item for item in sets if item not in repeated or item is last]


def deciding_objects(objects: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the workloads of a release that decide when it is done: those of `done_when`, or all that end."""
    workloads = [item for item in objects if end_conditions(item) is not None]
    return [item for item in workloads if _DONE in sub(item, "metadata", "annotations")] or workloads


def end_conditions(item: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the conditions of success and failure of an object for an Argo Workflow; None if it has none."""
    kind = kind_for(item)
    return kind.argo_conditions if kind else None
