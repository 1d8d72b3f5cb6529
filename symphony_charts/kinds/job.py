"""Kind `jobs`, where groups that end are Jobs, and the kinds of services: StatefulSets and Deployments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time, count_of

# A Job has this time only once it has succeeded.
SUCCEEDED = "status.completionTime"
# Argo cannot search a list. A Job has at most the conditions Suspended, FailureTarget and Failed.
FAILED = ",".join(f"status.conditions.{place}.type in (FailureTarget,Failed)" for place in range(3))


class Jobs(Kind):
    """A Job for each group that ends."""

    name = "jobs"
    runs_as = "Job"
    gvks = (("batch/v1", "Job"),)
    holds_groups = False
    argo_conditions = (SUCCEEDED, FAILED)
    mutable = (
        "spec.parallelism",
        "spec.suspend",
        "spec.activeDeadlineSeconds",
        "spec.backoffLimit",
        "spec.ttlSecondsAfterFinished",
    )
    kueue_paths = ()

    def replicas(self, item: Object) -> int:
        spec = item["spec"]
        return int(spec.get("completions") or spec.get("parallelism") or 1)

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        status = item.get("status") or {}
        count = int(status.get("ready") or 0) + int(status.get("succeeded") or 0)
        return count >= self.pods_at_a_time(item)

    def pods_at_a_time(self, item: Object) -> int:
        return at_a_time(Fields.of(item["spec"], "spec", Faults()))

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=at_a_time(spec))


class StatefulSets(Kind):
    """StatefulSets: their pods run until they are deleted."""

    gvks: tuple[tuple[str, str], ...] = (("apps/v1", "StatefulSet"),)
    is_finite = False
    holds_groups = False
    mutable: tuple[str, ...] | None = (
        "spec.replicas",
        "spec.ordinals",
        "spec.template",
        "spec.updateStrategy",
        "spec.revisionHistoryLimit",
        "spec.persistentVolumeClaimRetentionPolicy",
        "spec.minReadySeconds",
    )

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        status, replicas = item.get("status") or {}, int(item["spec"].get("replicas", 1))
        counts = ("readyReplicas", "updatedReplicas")
        return _is_seen(item) and all(status.get(count, 0) >= replicas for count in counts)

    def is_former(self, item: Object, pod: Object) -> bool:
        """Return True also for a pod of an earlier template, if its controller replaces that pod by itself."""
        strategy = item["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete" or (strategy.get("rollingUpdate") or {}).get("partition"):
            return super().is_former(item, pod)
        newest = (item.get("status") or {}).get("updateRevision")
        revision = (pod["metadata"].get("labels") or {}).get("controller-revision-hash")
        is_other = bool(newest and revision) and newest != revision
        return is_other or not _is_seen(item) or super().is_former(item, pod)

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=count_of(spec, "replicas"))


def _is_seen(item: Object) -> bool:
    seen = (item.get("status") or {}).get("observedGeneration", 0)
    return int(seen) >= int(item["metadata"].get("generation", 0))


class Deployments(StatefulSets):
    """Deployments, which no chart of ours has."""

    gvks = (("apps/v1", "Deployment"),)
    mutable = None
