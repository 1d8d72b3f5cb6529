"""Kind `jobs`: groups that end are Jobs, all others StatefulSets; the twin of ``jobs.yaml``, ``statefulsets.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.kinds.group import Group, Unit

__all__ = ["job_fields", "objects", "stateful_set"]


def job_fields(group: Group, *, retries: int, deadline: int | None) -> dict[str, object]:
    """The fields of the Job of a finite group beside its pod template.

    Replicas are indexes, each started again `retries` times where Kubernetes can count them one by one.
    """
    fields: dict[str, object] = {}
    if group.is_indexed:
        fields |= {"completionMode": "Indexed", "completions": group.replicas, "parallelism": group.replicas}
    if group.is_indexed and retries > 0 and (group.values.get("restartPolicy") or "Never") == "Never":
        fields |= {"backoffLimitPerIndex": retries, "maxFailedIndexes": 0}
    else:
        fields["backoffLimit"] = retries
    if deadline is not None:
        fields["activeDeadlineSeconds"] = deadline
    return fields


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """A Job for each member."""
    for member in unit.members:
        metadata = {"name": member.name, **member.metadata, "labels": {**unit.labels, **member.labels}}
        spec = {"template": member.template, **member.fields}
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def stateful_set(
    group: Group, metadata: Mapping[str, object], template: Mapping[str, object], selector: Mapping[str, str]
) -> dict[str, object]:
    """The StatefulSet of a group of services; all its pods start at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "template": template,
            "serviceName": group.pods,
            "podManagementPolicy": "Parallel",
            "replicas": group.replicas,
            "selector": {"matchLabels": selector},
        },
    }
