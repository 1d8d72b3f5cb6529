"""The kinds of workload: what each calls its objects, what may not change in them, and what builds them.

Each kind is one module here and one template of the chart; ``_kinds.tpl`` holds the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from symphony_charts.workloads import appwrapper, argo, jobs, jobset, volcano
from symphony_charts.workloads.group import Unit

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of workload.

    `workload` and `pod` are patterns of the names of a group's Job and of a replica's pod: ``{base}``, ``{unit}``,
    ``{member}``, ``{workload}``, ``{run}``, ``{index}``. `unit_length` bounds the unit's name without the run, and
    `member_length` a group's name in it. `fixed` are the fields of a Job whose change needs a new run (None: all).
    `is_one_object`: whether one object runs all groups that end, whose `done_when` cannot change in a run.
    `has_pod_groups`: whether the chart makes the PodGroups of a gang; a controller of the kind's own may do so. `index`
    is the field of a pod that tells the number of its replica. `settings` of ``workload`` cannot change in a run.
    """

    build: Callable[[Unit], Iterable[dict[str, object]]]
    workload: str = "{base}-{run}"
    pod: str = "{workload}-{index}"
    unit_length: int = 43
    member_length: int = 18
    fixed: frozenset[str] | None = None
    is_one_object: bool = True
    has_pod_groups: bool = True
    index: str = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    settings: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {
    "jobs": Kind(build=jobs.objects, fixed=jobs.IMMUTABLE_JOB_FIELDS, is_one_object=False),
    # With the run, the index and three hyphens a child Job has at most 52 characters.
    "jobset": Kind(build=jobset.objects, workload="{unit}-{run}-{member}-0", unit_length=22),
    "appwrapper": Kind(build=appwrapper.objects),
    "volcano": Kind(
        build=volcano.objects,
        workload="{unit}-{run}-{member}",
        unit_length=22,
        has_pod_groups=False,
        index=volcano.INDEX,
        settings=("queue", "volcano"),
    ),
    "argo": Kind(build=argo.objects, settings=("argo",)),
}
