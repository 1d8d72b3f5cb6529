"""Kind `jobs`: groups that end are Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time

__all__ = ["FAILED", "SUCCEEDED", "Jobs"]

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
