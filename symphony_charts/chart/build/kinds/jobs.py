"""Kind `jobs`: a Job for each group that ends."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.build.draft import Draft, Group, Kind
from symphony_charts.chart.build.workloads import done_groups, job_spec, workload_metadata
from symphony_charts.chart.tree import Text, Tree

_MUTABLE = ("parallelism", "backoffLimit", "activeDeadlineSeconds")


class Jobs(Kind):
    """A Job for each group that ends."""

    name = "jobs"

    def group_objects(self, draft: Draft, group: Group) -> list[Tree]:
        own: dict[str, str] = {"symph.dev/done-when": "true"} if group in done_groups(draft) else {}
        name = Text(draft.workload(group))
        return [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": workload_metadata(draft, name, own, group=f'"{group.name}"', run="$run"),
                "spec": job_spec(draft, group),
            }
        ]

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        return {key: item for key, item in job_spec(draft, group).items() if key not in _MUTABLE}
