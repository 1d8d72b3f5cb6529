"""What the pods of a run are called on one machine."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["replica_name"]


def replica_name(pod: str, index: int, count: int, pods: Collection[str]) -> str:
    """The name of replica `index` of `count`: ``agent-1``, or ``agent.1`` where a pod of that name is among `pods`.

    Folders, windows and host names are told apart by it.
    """
    if count <= 1:
        return pod
    usual = f"{pod}-{index}"
    return f"{pod}.{index}" if usual in pods else usual
