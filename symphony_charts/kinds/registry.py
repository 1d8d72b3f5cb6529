"""The kinds of workload: what each calls its objects, what may not change in them, and what builds them.

Each kind is one module here and one template of the chart; ``_kinds.tpl`` holds the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symphony_charts.errors import Problem
from symphony_charts.kinds import appwrapper, jobset, volcano
from symphony_charts.kinds import job as jobs
from symphony_charts.kinds.argo import objects as argo
from symphony_charts.kinds.dijob import objects as dijob
from symphony_charts.kinds.group import Group, Unit
from symphony_charts.spec.checks.dijob import ROLES

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

    Some controllers make pods without our labels: `selector` holds the patterns of theirs, by which Services find a
    group's pods, and `domain` that of the pods' host names. `roles` names the groups that such a controller runs, where
    it is not all that end; `is_scaled_live`: another number of replicas is no new run. `check` finds what the kind
    cannot run of such groups, given all values. `variants` are the kind under other versions of its controller.
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
    domain: str = "{base}-pods"
    selector: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    is_scaled_live: bool = False
    check: Callable[[Sequence[Group], Mapping[str, object]], Iterable[Problem]] | None = None
    variants: Mapping[str, Kind] = field(default_factory=dict)


# A DIJob's pods are called <job>-<task>-<index>, in at most 63 characters; operator v1.0 counts generations before it.
_TASKS = Kind(
    build=dijob.objects,
    workload="{unit}-{run}",
    pod="{unit}-{run}-{member}-{index}",
    unit_length=22,
    fixed=frozenset(),
    is_one_object=False,
    has_pod_groups=False,
    index="metadata.annotations['diengine/task-rank']",
    settings=("dijob", "order"),
    check=dijob.faults_of,
    domain="di-{unit}-{run}",
    selector={"diengine/job": "{unit}-{run}", "diengine/task-name": "{member}"},
    is_scaled_live=True,
)
_DIJOB = replace(
    _TASKS,
    variants={
        # It labels pods by neither task nor type: a Service reaches the first of a task.
        "v1.1.0": replace(
            _TASKS,
            domain="{unit}-{run}",
            selector={"diengine/job": "{unit}-{run}", "diengine/pod": "{unit}-{run}-{member}-0"},
        ),
        "v1.0": replace(
            _TASKS,
            pod="{unit}-{run}-0-{index}",
            index="metadata.annotations['diengine/rank']",
            domain="{unit}-{run}",
            selector={"diengine/job": "{unit}-{run}"},
            is_scaled_live=False,
        ),
        "v0": replace(
            _TASKS,
            pod="",
            index="",
            selector={"dijob-name": "{unit}-{run}", "replica-type": "{member}"},
            roles=ROLES,
            is_scaled_live=False,
        ),
    },
)

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
    "dijob": _DIJOB,
}
