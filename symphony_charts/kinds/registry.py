"""The registry holds every kind of workload: a module here, a template of the chart and a row of ``kinds.yaml``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.errors import Problem
from symphony_charts.kinds import appwrapper, jobset, volcano
from symphony_charts.kinds import job as jobs
from symphony_charts.kinds.argo import objects as argo
from symphony_charts.kinds.dijob import objects as dijob
from symphony_charts.kinds.group import Group, Unit
from symphony_charts.kinds.table import Row, rows

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of workload.

    `build` makes its objects; `check` finds what the kind cannot run of the groups that are to be in them, given all
    values. `row` is what the templates know of it, too.
    """

    row: Row
    build: Callable[[Unit], Iterable[dict[str, object]]]
    check: Callable[[Sequence[Group], Mapping[str, object]], Iterable[Problem]] | None = None


_BUILD = {
    "jobs": jobs.objects,
    "jobset": jobset.objects,
    "appwrapper": appwrapper.objects,
    "volcano": volcano.objects,
    "argo": argo.objects,
    "dijob": dijob.objects,
}
_CHECK = {"dijob": dijob.faults_of}

KINDS: dict[str, Kind] = {
    name: Kind(row=row, build=_BUILD[name], check=_CHECK.get(name)) for name, row in rows().items()
}
