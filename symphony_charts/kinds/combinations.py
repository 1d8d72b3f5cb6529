"""Which settings of a workload go together; the twin of ``symph.checkWorkload``, word for word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["faults_of"]


def faults_of(kind: str, settings: Mapping[str, str], scheduler: str) -> Iterator[tuple[str, str]]:
    """What cannot be: the path in the values, and the reason with what to do.

    `settings` are the texts of ``workload``: gang, gangVersion, queue, queuePriority; `scheduler` is that of all pods,
    if named.
    """
    gang = settings.get("gang") or "none"
    queue = settings.get("queue") or ""
    if gang == "kueue" and not queue:
        yield "workload.queue", "gang kueue admits what a queue names: name one"
    if queue and gang not in ("kueue", "volcano") and kind != "volcano":
        yield (
            "workload.queue",
            f"a queue is read by gang kueue or volcano, not by {gang}: choose one, or drop the queue",
        )
    if settings.get("queuePriority") and gang != "kueue":
        yield "workload.queuePriority", "a priority class of the queue is read by gang kueue alone"
    if gang == "native" and not settings.get("gangVersion"):
        yield (
            "workload.gangVersion",
            "gang native needs the version that the cluster serves: v1alpha2 (Kubernetes 1.36) or v1beta1 (1.37)",
        )
    if gang == "coscheduling" and not scheduler:
        yield "workload.gang", "gang coscheduling needs the name of its scheduler: set defaults.schedulerName"
    if kind == "volcano" and gang not in ("none", "volcano"):
        yield "workload.gang", f"kind volcano makes its own gang, which {gang} would hold back: use volcano or none"
    if kind == "dijob" and (gang != "none" or queue):
        yield "workload.gang", "a DIJob can be neither queued nor started as a gang: use kind jobset"
