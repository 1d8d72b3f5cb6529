"""Kind `jobs`: groups that end are Jobs; the twin of ``jobs.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time
from symphony_charts.kinds.group import Group, Unit

__all__ = ["FAILED", "SUCCEEDED", "Jobs", "job_fields"]

# A Job has this time only once it has succeeded.
SUCCEEDED = "status.completionTime"
# Conditions cannot be searched, so each place is looked at: a Job has at most Suspended, FailureTarget and Failed.
FAILED = ",".join(f"status.conditions.{place}.type in (FailureTarget,Failed)" for place in range(3))


# Whoever drains a node, takes it away or needs the room of a pod marks it so.
_EVICTIONS_ARE_NO_FAILURES = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


def job_fields(group: Group, template: Mapping[str, object], *, deadline: int | None) -> dict[str, object]:
    """The fields of the Job of a finite group beside its pod `template`.

    Replicas are indexes, each replaced as often as the group says; so is a lone pod that may be replaced, since only
    pods with an index learn how often they have failed. Of pods that are restarted in place Kubernetes counts all
    restarts together, and an eviction is a failure.
    """
    fields: dict[str, object] = {}
    if group.is_indexed or group.replacements:
        fields |= {"completionMode": "Indexed", "completions": group.replicas, "parallelism": group.replicas}
    if group.replacements:
        fields |= {"backoffLimitPerIndex": group.replacements, "maxFailedIndexes": 0}
    else:
        fields["backoffLimit"] = group.last_restart(template) if group.is_restarted_in_place else 0
    if not group.is_restarted_in_place:
        fields["podFailurePolicy"] = _EVICTIONS_ARE_NO_FAILURES
    if deadline is not None:
        fields["activeDeadlineSeconds"] = deadline
    return fields


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

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
        """A Job for each member."""
        for member in unit.members:
            metadata = {"name": member.name, **member.metadata, "labels": {**unit.labels, **member.labels}}
            spec = {"template": member.template, **member.fields}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def replicas(self, item: Object) -> int:
        """One for each completion."""
        spec = item["spec"]
        return int(spec.get("completions") or spec.get("parallelism") or 1)

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """As the Job counts its pods."""
        status = item.get("status") or {}
        count = int(status.get("ready") or 0) + int(status.get("succeeded") or 0)
        return count >= self.pods_at_a_time(item)

    def pods_at_a_time(self, item: Object) -> int:
        """Its own."""
        return at_a_time(Fields.of(item["spec"], "spec", Faults()))

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The Job's pods."""
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=at_a_time(spec))
