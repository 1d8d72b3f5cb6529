"""`prepare` is the one road from a spec to what runs: experiment, services, values, objects, and whether they fit.

Every verb that reads a spec takes it, so that no two of them can mean different things by the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from symphony_charts.chart.compile.experiment import compile_values, losses, with_digest
from symphony_charts.chart.files.chart import Chart, ChartTemplate, make_chart
from symphony_charts.chart.files.version import FIRST_VERSION
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.release import Release, render_release
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.kinds.gang import GANGS_OF_PODS
from symphony_charts.placement.assign.assign import apply
from symphony_charts.placement.assign.rules import Decision
from symphony_charts.placement.assign.shares import has_shares, share_out, without_shares
from symphony_charts.placement.fit.demand import demands_of, running_requests
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.of_spec import pools_of_spec
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.settings.spec_paths import spec_path
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import Service, allocate

__all__ = ["Prepared", "Rendering", "prepare", "prepare_experiment"]


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """A release: merged `values`, the `model` and `objects` they make, and the node pools that they are to fit on."""

    values: Values
    release: Release
    model: Model
    objects: tuple[dict[str, object], ...]
    pools: Pools | None = None
    decisions: tuple[Decision, ...] = ()

    @cached_property
    def plan(self) -> Plan | None:
        """What runs where, and how certain that is, read from the objects; None where no pools are known."""
        if self.pools is None:
            return None
        gang = str(sub(self.values, "workload").get("gang") or "none")
        # Whoever schedules pods as a gang names its scheduler; elsewhere a name that we do not know says nothing.
        scheduler = sub(self.values, "defaults").get("schedulerName") if gang in GANGS_OF_PODS else ""
        demands = demands_of(self.objects, scheduler=str(scheduler or ""))
        plan = plan_demands(demands, self.pools, gang=gang, experiment=self.release.chart_name)
        return replace(plan, decisions=self.decisions)

    @property
    def fit(self) -> str:
        """The verdict in one line; empty where no pools are known."""
        return self.plan.summary() if self.plan is not None else ""

    def refuse_unschedulable(self) -> None:
        """Raise PlacementError where a group cannot be scheduled on the pools."""
        refusal = self.plan.refusal() if self.plan is not None else None
        if refusal is not None:
            refusal.next = f"{refusal.next}; or go on all the same: --force-unschedulable".lstrip("; ")
            raise refusal


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An experiment whose placement is settled, and all that follows from it.

    `defaults` are the values that it compiles to, and `own` the release of its own name with the overrides in its
    values. `losses` name what the spec says and no chart carries.
    """

    experiment: Experiment
    services: tuple[Service, ...]
    defaults: Values
    own: Rendering
    losses: tuple[Problem, ...] = ()

    @property
    def values(self) -> Values:
        """The defaults of its chart, the overrides in them."""
        return self.own.values

    @property
    def objects(self) -> tuple[dict[str, object], ...]:
        """The objects that the chart makes as a release of the experiment's name."""
        return self.own.objects

    @property
    def plan(self) -> Plan | None:
        """The plan of what runs where; None where no pools are known."""
        return self.own.plan

    def under(
        self,
        values: Mapping[str, object],
        *,
        release: str = "",
        namespace: str = "",
        service: str = "",
        version: str = "",
        is_draft: bool = True,
    ) -> Rendering:
        """A release with `values` over the chart's own, only looked at where it `is_draft`.

        Raises SpecError as `render_release` does.
        """
        own = self.own.release
        there = replace(
            own,
            name=release or own.name,
            namespace=namespace or own.namespace,
            service=service or own.service,
            chart_version=version or own.chart_version,
            is_draft=is_draft,
        )
        merged = merge(self.values, values)
        _refuse_other_digest(merged, self.values)
        model, objects = render_release(merged, there)
        return replace(self.own, values=merged, release=there, model=model, objects=tuple(objects))

    def chart(
        self,
        template: ChartTemplate,
        version: str | None = None,
        extra: Mapping[str, bytes] | None = None,
        *,
        with_overrides: bool = True,
    ) -> Chart:
        """The chart, with the user's own files (``templates/extra-*``). Raises SpecError for what helm cannot read."""
        values = self.values if with_overrides else self.defaults
        name, about = self.experiment.name, self.experiment.chart
        return make_chart(name, values, version or FIRST_VERSION, template, about=about, extra=extra)


def prepare(
    spec: SpecFile,
    *,
    overrides: Values | None = None,
    pools: Sequence[str] = (),
    variables: Mapping[str, object] | None = None,
    system: str | None = None,
    force: bool = False,
) -> Prepared:
    """What becomes of a spec file: `overrides` are merged into its chart's values as helm would merge them.

    It is placed on the node pools of the files `pools`, else of its own `placement.pools`; `variables` are Terraform's,
    `system` is what `--system` says.
    Raises SpecError with everything that helm would refuse, before anything is written, and PlacementError where a
    group cannot be scheduled, unless `force` is set.
    """
    known = pools_of_spec(spec.path, spec.experiment.placement.pools, pools, variables=variables, system=system)
    try:
        return prepare_experiment(
            spec.experiment, spec.pins, overrides=overrides, pools=known, force=force, version=spec.lock.version
        )
    except SpecError as error:
        raise SpecError(_located(problem, spec, overrides or {}) for problem in error.problems) from error


def prepare_experiment(
    experiment: Experiment,
    pins: Mapping[str, int] | None = None,
    *,
    overrides: Values | None = None,
    pools: Pools | None = None,
    force: bool = False,
    version: str | None = None,
) -> Prepared:
    """`prepare` of an experiment that stands in no file; `pins` are the ports that its services keep."""
    settled, decisions = apply(finish(experiment, for_cluster=True), pools)
    services = allocate(settled, pins)
    release = Release(
        name=settled.name,
        namespace=settled.namespace or "default",
        chart_name=settled.name,
        chart_version=version or FIRST_VERSION,
        is_draft=True,
    )
    if has_shares(settled):
        bare = compile_values(without_shares(settled), services)
        settled = share_out(settled, running_requests(render_release(bare, release)[1]))
    defaults = compile_values(settled, services)
    values = defaults
    if overrides:
        merged = merge(defaults, overrides)
        _refuse_other_digest(merged, defaults)
        values = with_digest(merged)
    model, objects = render_release(values, release)
    own = Rendering(
        values=values,
        release=release,
        model=model,
        objects=tuple(objects),
        pools=pools,
        decisions=tuple(decisions),
    )
    if not force:
        own.refuse_unschedulable()
    return Prepared(experiment=settled, services=services, defaults=defaults, own=own, losses=tuple(losses(settled)))


def _refuse_other_digest(values: Values, own: Values) -> None:
    """Raise SpecError, as the chart does, for values that were written for another version of the experiment."""
    if values.get("specDigest") != own.get("specDigest"):
        what = "the values are those of another version of the experiment, and the chart refuses them"
        raise SpecError.one(what, "specDigest", "leave `specDigest` out of them")


def _located(problem: Problem, spec: SpecFile, overrides: Values) -> Problem:
    """The problem with where it was said: the overrides, where they hold its path, else the file."""
    if problem.path.startswith(str(spec.path)):
        return problem
    is_override = bool(problem.path) and _holds(overrides, problem.path.split("."))
    where = "--set or --values" if is_override else str(spec.path)
    path = problem.path if is_override else spec_path(problem.path, spec.experiment)
    return Problem(what=problem.what, path=", ".join(filter(None, (where, path))), next=problem.next)


def _holds(values: object, steps: Sequence[str]) -> bool:
    for step in steps:
        if not isinstance(values, dict) or step not in values:
            return False
        values = values[step]
    return True
