"""The registry finds the builder of a chart by the word in the spec."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.build.draft import Kind
from symphony_charts.chart.build.kinds.appwrapper import AppWrapper
from symphony_charts.chart.build.kinds.argo import Argo
from symphony_charts.chart.build.kinds.dijob import DIJob
from symphony_charts.chart.build.kinds.jobs import Jobs
from symphony_charts.chart.build.kinds.jobset import JobSet
from symphony_charts.chart.build.kinds.volcano import Volcano
from symphony_charts.kinds.registry import ADDED

KINDS: Mapping[str, type[Kind]] = {
    **{kind.name: kind for kind in (Jobs, JobSet, AppWrapper, Volcano, DIJob, Argo)},
    **{name: kind.builder for name, kind in ADDED.items() if kind.builder},
}
