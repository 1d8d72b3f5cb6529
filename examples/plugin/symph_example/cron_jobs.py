"""Kind `cronjob`: a CronJob for each group that ends, in charts of specs with `workload: {kind: cronjob}`.

Its settings are those of `CronJobSettings`: `workload: {kind: cronjob, cronjob: {schedule: "0 3 * * *"}}`.

The fit also counts the pods of CronJobs in manifests that symph did not write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.chart.build.data import metadata
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.draft import Kind as Builder
from symphony_charts.chart.build.pods import job_spec
from symphony_charts.chart.fields import FIELDS, Field
from symphony_charts.chart.tree import Text, Tree, Value
from symphony_charts.errors import Problem
from symphony_charts.formats.data import sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import Record

# A value of the charts: `helm install --set workload.schedule='0 3 * * *'`.
FIELDS["workload.schedule"] = Field("When a run starts, as a line of cron.", "text")


class CronJobSettings(Record, frozen=True, kw_only=True):
    """Settings of a CronJob.

    Attributes:
        schedule: When a run starts, as a line of cron.
    """

    schedule: str = "@daily"


class CronJobCharts(Builder):
    """Writes the CronJobs."""

    name = "cronjob"

    def job_name(self, group: Group) -> str:
        """Return the format of the name of a CronJob. All of it may change, so its name does not contain the run."""
        return f"{{$fullname}}-{group.part}"

    def pod_name(self, group: Group) -> str:
        """Return nothing: the names of pods contain the time of their run."""
        return ""

    def group_objects(self, draft: Draft, group: Group) -> list[Tree]:
        """Return the CronJob of the group."""
        spec = {
            "schedule": Value(".Values.workload.schedule", is_text=True),
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": job_spec(draft, group)},
        }
        made = metadata(Text(draft.workload(group)), group=f'"{group.name}"', run="$run")
        return [{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": made, "spec": spec}]

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return nothing: Kubernetes lets all of a CronJob change."""
        return {}

    def values(self, draft: Draft) -> dict[str, Any]:
        """Return the schedule."""
        return {"schedule": self.workload.settings("cronjob", CronJobSettings).schedule}


class CronJobs(Kind):
    """Reads CronJobs."""

    name = "cronjob"
    gvks = (("batch/v1", "CronJob"),)
    runs_as = "CronJob"
    holds_groups = False
    settings = CronJobSettings
    builder = CronJobCharts

    def faults(self, experiment: Experiment) -> Iterator[Problem]:
        """Yield a schedule that is none."""
        schedule = experiment.workload.settings("cronjob", CronJobSettings).schedule
        if len(schedule.split()) != 5 and not schedule.startswith("@"):
            hint = 'a line of cron has five fields, such as "0 3 * * *"'
            yield Problem(what=f'"{schedule}" is no schedule', path="workload.cronjob.schedule", next=hint)

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield the next Job."""
        spec, name = sub(item, "spec", "jobTemplate", "spec"), sub(item, "metadata").get("name")
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """Yield the pods of the next Job."""
        spec = item.block("spec").block("jobTemplate").block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=at_a_time(spec))

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """Return True: its pods start later."""
        return True


CRON_JOBS = CronJobs()
