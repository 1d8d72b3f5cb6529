"""Kinds `jobs` and `jobset`: a Job per finite group, alone or in a JobSet that ends with those of `done_when`.

Source: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go. All of `replicatedJobs` and `successPolicy` is
immutable, and a child is named ``<set>-<member>-<index>``.
"""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.build.draft import Draft, Group, Kind
from symphony_charts.chart.build.pods import (
    fixed_of_job,
    job,
    job_spec,
    runs,
    when_any,
    with_group,
    workload_metadata,
    wrapped_metadata,
)
from symphony_charts.chart.tree import Merged, Text, Tree, When


class JobSet(Kind):
    """A JobSet of all finite groups. Their Services stay outside, so addresses do not depend on the kind."""

    name = "jobset"
    file = "jobset.yaml"
    more_letters = len("-0")

    def job_name(self, group: Group) -> str:
        return f"{{$fullname}}-{{$run}}-{group.part}-0"

    def attempt(self, group: Group) -> str:
        """Return the label with the restarts of the whole set, if it may restart."""
        if self.workload.jobset.max_restarts and not group.is_restarted_in_place:
            return "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
        return super().attempt(group)

    def objects(self, draft: Draft) -> list[Tree]:
        """Return the JobSet, which ends all members when those of `done_when` have succeeded."""
        members = []
        for group in draft.finite:
            template = {"metadata": wrapped_metadata(draft, group), "spec": job_spec(draft, group)}
            members.append(with_group(group, {"name": group.part, "replicas": 1, "template": template}))
        spec: dict[str, Tree] = {
            "network": {"enableDNSHostnames": False},
            "replicatedJobs": Merged(members, is_sure=True),
        }
        done = list(draft.done.values())
        if done:
            targets: Tree = [done[0].part]
            if len(done) > 1:
                targets = Merged([When(runs(group), group.part) for group in done], is_sure=True)
            policy = {"operator": "All", "targetReplicatedJobs": targets}
            spec["successPolicy"] = when_any(done, policy)
        restarts = self.workload.jobset.max_restarts
        if restarts:
            spec["failurePolicy"] = {"maxRestarts": restarts}
        job_set = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": workload_metadata(draft, Text("{$fullname}-{$run}"), {}, run="$run"),
            "spec": spec,
        }
        return [when_any(draft.finite, job_set)]

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        return job_spec(draft, group)

    def fixed_settings(self, draft: Draft) -> list[Tree]:
        return [[group.part for group in draft.done.values()], self.workload.jobset.max_restarts]


class Jobs(Kind):
    name = "jobs"

    def group_objects(self, draft: Draft, group: Group) -> list[Tree]:
        return [job(draft, group)]

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        return fixed_of_job(draft, group)
