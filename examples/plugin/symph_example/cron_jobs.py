"""CronJobs of other people's charts: `symph gitops lint` and the fit count their pods."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, PodSet


class CronJobs(Kind):
    """CronJobs: one pod at a time."""

    gvks = (("batch/v1", "CronJob"),)
    holds_groups = False

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The pod of the next Job."""
        template = item.block("spec").block("jobTemplate").block("spec").block("template")
        yield PodSet(name=item.block("metadata").text("name"), template=template, count=1)


CRON_JOBS = CronJobs()
