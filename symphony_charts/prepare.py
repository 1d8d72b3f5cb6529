"""Prepare an experiment: services, values, objects, findings, and the verdict that refuses it.

Every verb that reads a spec uses this module, so that all of them interpret the file in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from symphony_charts.chart.archive import FIRST_VERSION
from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.build.values import with_digest
from symphony_charts.chart.files import Chart, ChartTemplate, make_chart
from symphony_charts.chart.lint import SEVERITIES, Finding, Severity, lint_release
from symphony_charts.chart.release import ORIGIN, losses, merge_values, render_release
from symphony_charts.chart.schema import ValuesSchema, check_values, has_path
from symphony_charts.errors import ChartRefused, Conflict, PlacementError, Problem, SpecError
from symphony_charts.formats.data import Values
from symphony_charts.kinds.registry import left_after_run
from symphony_charts.placement.assign import (
    apply,
    has_machine_fractions,
    resolve_machine_fractions,
    without_machine_fractions,
)
from symphony_charts.placement.assign_rules import Decision
from symphony_charts.placement.fit.demand import Demand, demands_of, running_requests
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.pool import Pools, pools_of_spec
from symphony_charts.placement.report import price_per_hour
from symphony_charts.secrets.files import guard_of
from symphony_charts.settings.project import Settings, settings_of_spec
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service, allocate
from symphony_charts.spec.workload import GANGS_OF_PODS

# A path of the chart's values in a message.
_VALUE = re.compile(r"\bgroups\.[\w.\[\]-]*[\w\]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterRun:
    """The processes that keep running when the run is over, with their GPUs, and with known pools the nodes they need.

    `price_per_hour` is in dollars, and None if a node has no price.
    """

    processes: tuple[str, ...]
    nodes: int | None = None
    price_per_hour: float | None = None

    @property
    def text(self) -> str:
        """``keeps running after the run, until ...``; empty if nothing does."""
        if not self.processes:
            return ""
        price = "" if self.price_per_hour is None else f" for ${self.price_per_hour:.2f}/h"
        nodes = "" if self.nodes is None else f" on {self.nodes} node{'s' if self.nodes != 1 else ''}{price}"
        return f"keeps running after the run, until it is uninstalled: {', '.join(self.processes)}{nodes}"

    @property
    def data(self) -> dict[str, object]:
        return {"processes": list(self.processes), "nodes": self.nodes, "pricePerHour": self.price_per_hour}


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """A release of `chart`: its complete `values`, its `objects`, and the node pools on which they must fit."""

    chart: BuiltChart
    values: Values
    release: Release
    objects: tuple[dict[str, object], ...]
    pools: Pools | None = None
    decisions: tuple[Decision, ...] = ()

    @cached_property
    def plan(self) -> Plan | None:
        """The placement of all pods and its certainty, computed from the objects; None if no pools are known."""
        if self.pools is None:
            return None
        return replace(self._plan(self._demands, self.pools), decisions=self.decisions)

    @cached_property
    def _demands(self) -> list[Demand]:
        workload = self.chart.experiment.workload
        # Gang scheduling of pods needs a named scheduler; otherwise a scheduler name tells nothing about the fit.
        scheduler = workload.scheduler_name if workload.gang in GANGS_OF_PODS else ""
        return demands_of(self.objects, scheduler=scheduler or "", pools=self.pools)

    def _plan(self, demands: list[Demand], pools: Pools) -> Plan:
        return plan_demands(demands, pools, gang=self.chart.experiment.workload.gang, experiment=self.chart.name)

    @cached_property
    def after_run(self) -> AfterRun:
        """The processes that keep running when the run is over."""
        left = left_after_run(self.chart, self.values)
        if self.pools is None or not left:
            return AfterRun(processes=tuple(left.values()))
        pods = {pod for pod, _ in left}
        members = [(each.shape, [member for member in each.members if member[0] in pods]) for each in self._demands]
        plan = self._plan([Demand(shape, kept) for shape, kept in members if kept], self.pools)
        return AfterRun(processes=tuple(left.values()), nodes=plan.nodes, price_per_hour=price_per_hour(plan))

    @property
    def fit(self) -> str:
        """The verdict in one line; empty if no pools are known."""
        return self.plan.summary() if self.plan is not None else ""

    def refusal(self) -> PlacementError | None:
        """Return the error if a group cannot be scheduled on the pools."""
        refusal = self.plan.refusal() if self.plan is not None else None
        if refusal is not None:
            refusal.next = f"{refusal.next}; or continue anyway: --force-unschedulable".lstrip("; ")
        return refusal

    def refuse_unschedulable(self) -> None:
        if refusal := self.refusal():
            raise refusal


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An experiment with complete placement, and its chart.

    `built` is the chart without the overrides, and `schema` the schema of its values. `own` is the release with the
    overrides and the experiment's name. `losses` name the parts of the spec that the chart ignores. `settings` are
    those of the spec file's project; None without a file.
    """

    experiment: Experiment
    services: tuple[Service, ...]
    built: BuiltChart
    own: Rendering
    schema: ValuesSchema
    losses: tuple[Problem, ...] = ()
    settings: Settings | None = None

    @property
    def values(self) -> Values:
        """The values of the chart, with the overrides."""
        return self.own.values

    @property
    def objects(self) -> tuple[dict[str, object], ...]:
        """The objects of the release with the experiment's name."""
        return self.own.objects

    @property
    def plan(self) -> Plan | None:
        """The placement of all pods; None if no pools are known."""
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
        """Return a release with `values` over the chart's own; set `is_draft` if it is only inspected.

        Raises SpecError as `render_release` does.
        """
        given = {"name": release, "namespace": namespace, "service": service, "version": version}
        there = replace(self.own.release, is_draft=is_draft, **{key: value for key, value in given.items() if value})
        chart = self.own.chart
        merged = merge_values(self.schema, values, chart) if values else dict(chart.values)
        objects = render_release(chart, merged, there)
        return replace(self.own, values=merged, release=there, objects=tuple(objects))

    def chart(
        self,
        template: ChartTemplate,
        version: str | None = None,
        extra: Mapping[str, bytes] | None = None,
        *,
        with_overrides: bool = True,
    ) -> Chart:
        """Return the chart with the user's own files (``templates/extra-*``).

        Raises SpecError for content that helm cannot read.
        """
        chart = self.own.chart if with_overrides else self.built
        return make_chart(chart, self.schema, version or FIRST_VERSION, template, extra)


def prepare(
    spec: SpecFile,
    *,
    overrides: Values | None = None,
    pools: Sequence[str] = (),
    variables: Mapping[str, object] | None = None,
    system: str | None = None,
    force: bool = False,
) -> Prepared:
    """Prepare a spec file; merge `overrides` into its chart's values as helm does.

    Place it on the node pools of the files `pools`, else of its own `placement.pools`, else of the project's settings;
    `variables` are Terraform's, `system` is the value of `--system`. Raises SpecError with everything that helm would
    refuse, before anything is written, and PlacementError if a group cannot be scheduled, unless `force` is set.
    """
    named = spec.experiment.placement.pools
    settings = settings_of_spec(spec.path)
    given = pools or ([] if named else settings.pools)
    known = pools_of_spec(spec.path, named, given, variables=variables, system=system)
    try:
        prepared = prepare_experiment(
            spec.experiment, spec.pins, overrides=overrides, pools=known, force=force, version=spec.lock.version
        )
        return replace(prepared, settings=settings)
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
    """Prepare an experiment without a file; `pins` are the ports that its services keep."""
    settled, decisions = apply(finish(experiment, for_cluster=True), pools)
    services = allocate(settled, pins)
    release = Release(
        name=settled.name,
        namespace=settled.namespace or "default",
        version=version or FIRST_VERSION,
        is_draft=True,
    )
    if has_machine_fractions(settled):
        bare = build(without_machine_fractions(settled), services)
        settled = resolve_machine_fractions(settled, running_requests(render_release(bare, bare.values, release)))
    built = build(settled, services)
    schema = ValuesSchema(built)
    check_values(schema, built.values)
    chart = built.with_values(with_digest(merge_values(schema, overrides))) if overrides else built
    own = Rendering(
        chart=chart,
        values=dict(chart.values),
        release=release,
        objects=tuple(render_release(chart, chart.values, release)),
        pools=pools,
        decisions=tuple(decisions),
    )
    if not force:
        own.refuse_unschedulable()
    return Prepared(
        experiment=settled,
        services=services,
        built=built,
        own=own,
        schema=schema,
        losses=tuple(losses(settled)),
    )


def _located(problem: Problem, spec: SpecFile, overrides: Values) -> Problem:
    """Return the problem with its place: the overrides, if they hold its path, else the file."""
    if problem.path.startswith(str(spec.path)):
        return problem
    if problem.path and has_path(overrides, problem.path.split(".")):
        return problem.moved_to(f"--set or --values, {problem.path}")
    path = spec.spec_path(problem.path)
    what, step = (_VALUE.sub(lambda found: spec.spec_path(found[0]), text) for text in (problem.what, problem.next))
    return Problem(what=what, path=", ".join(filter(None, (str(spec.path), path))), next=step)


# `symph validate` prints the findings; `symph package`, `publish` and `install` refuse charts with errors. All of them
# use this module, so that they agree.

# The files of a chart that contain text of the spec. All others come from the template or from these.
_OF_SPEC = ("Chart.yaml", "values.yaml", ORIGIN, "files/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The `findings` about the chart of the spec file `path`, the worst first."""

    path: str
    findings: Sequence[Finding]

    @property
    def warnings(self) -> int:
        return sum(finding.severity == "warning" for finding in self.findings)

    def refuse(self) -> None:
        """Raise an error if a finding is one.

        Raises ChartRefused with all errors. If all of them are secrets in the chart, or all are groups that cannot be
        scheduled, raises Conflict or PlacementError, which have their own exit codes.
        """
        errors = [finding for finding in self.findings if finding.severity == "error"]
        problems = [Problem(what=one.what, path=f"{self.path}, {one.path}", next=one.next) for one in errors]
        rules = {finding.rule for finding in errors}
        if rules == {"leak"}:
            raise Conflict("; ".join(one.what for one in errors), problems[0].path, problems[0].next)
        if rules == {"fit"}:
            raise PlacementError(problems[0].what, problems[0].path, problems[0].next)
        if errors:
            raise ChartRefused(problems)


def judge(
    spec: SpecFile,
    prepared: Prepared,
    chart: Chart,
    rendering: Rendering | None = None,
    *,
    is_forced: bool = False,
    kube_version: str | None = None,
) -> Verdict:
    """Return the verdict on the `chart` of `spec`.

    `rendering` is the release to check (default: the one with the chart's own values). With `is_forced`, a group that
    cannot be scheduled is a warning. Without a `kube_version` such as ``1.34`` the objects are checked against a
    version that has their kinds.
    """
    seen = rendering or prepared.own
    found = lint_release(chart, seen.chart, seen.values, seen.objects, kube_version=kube_version)
    findings = [replace(finding, path=spec.spec_path(finding.path)) for finding in found]
    for loss in prepared.losses:
        findings.append(Finding(rule="unread", severity="warning", path=loss.path, what=loss.what, next=loss.next))
    settings = prepared.settings or settings_of_spec(spec.path)
    guard = guard_of([spec], settings.allow_leaks)
    leaks = guard.find({path: content for path, content in chart.files.items() if path.startswith(_OF_SPEC)})
    # The origin file repeats content of other files.
    for leak in {leak.fingerprint: leak for leak in leaks}.values():
        findings.append(Finding(rule="leak", severity="error", path=leak.path, what=str(leak), next=leak.remediation))
    if refusal := seen.refusal():
        severity: Severity = "warning" if is_forced else "error"
        text = {"path": "placement", "what": refusal.what, "next": refusal.next}
        findings.append(Finding(rule="fit", severity=severity, **text))
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Verdict(path=str(spec.path), findings=worst_first)
