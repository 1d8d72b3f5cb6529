"""Rules about settings without effect: the kind of workload, its gang, or the exposure of a service ignores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.services import exposure
from symphony_charts.chart.lint.finding import Finding, error, running, warning
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.services import Service
from symphony_charts.spec.workload import GANGS_OF_PODS, Workload

# Settings of an exposed service: the field of the spec, the value, and the types of exposure that read it.
_EXPOSED: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("host", "host", ("Ingress", "Gateway")),
    ("class_name", "loadBalancerClass", ("Ingress", "LoadBalancer")),
    ("gateway", "gateway", ("Gateway",)),
    ("source_ranges", "sourceRanges", ("LoadBalancer",)),
    ("", "nodePort", ("NodePort", "LoadBalancer")),
    ("", "externalTrafficPolicy", ("NodePort", "LoadBalancer")),
)


def check_unread(chart: BuiltChart, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield findings with paths in the values or the spec."""
    draft, groups = chart.draft, running(chart, values)
    has_pod_groups = draft.kind.has_pod_groups and draft.experiment.workload.gang in GANGS_OF_PODS
    yield from _workload(draft, has_pod_groups=has_pod_groups)
    for group in groups:
        yield from _unread_of_group(draft, group, has_pod_groups=has_pod_groups)
    for service in draft.services.values():
        if service.is_exposed and draft.groups[service.listener.pod] in groups:
            yield from _service(draft, service, values["services"][service.name])


def _workload(draft: Draft, *, has_pod_groups: bool) -> Iterator[Finding]:
    usual, workload = Workload(), draft.experiment.workload
    kind, gang = workload.kind, workload.gang
    for name in KINDS:
        if name != kind and getattr(workload, name.replace("-", "_"), None) != getattr(
            usual, name.replace("-", "_"), None
        ):
            step = f"set `kind: {name}`, or leave it out"
            yield _unread(f"workload.{name}", f"kind {kind} reads none of it", step)
    if workload.gang_scope and not has_pod_groups:
        what = f"kind {kind} and gang {gang} make no PodGroup"
        yield _unread("workload.gang_scope", what, "use gang native, coscheduling or volcano, or leave it out")
    if workload.gang_version and gang != "native":
        what = f"only gang native has a version, and the gang is {gang}"
        yield _unread("workload.gang_version", what, "set `gang: native`, or leave it out")
    for problem in draft.kind.unread():
        yield _unread(problem.path, problem.what, problem.next)


def _unread_of_group(draft: Draft, group: Group, *, has_pod_groups: bool) -> Iterator[Finding]:
    path, settings = f"groups.{group.name}", group.pod.settings
    is_member = draft.kind.runs(group)
    is_counted = not group.is_kept if has_pod_groups else is_member and draft.kind.reads_minimum()
    if settings.min_replicas is not None and not is_counted:
        what = f"kind {draft.kind.name} and gang {draft.experiment.workload.gang} do not start its pods together"
        yield _unread(f"{path}.min_replicas", what, "choose a gang that counts pods, or leave it out")
    if is_member and settings.keep is not None:
        what = "it decides if services outlive a run, and these pods end with theirs"
        yield _unread(f"{path}.keep", what, "leave it out")
    elif not is_member and settings.retries:
        what = "a pod of services is always started again"
        yield _unread(f"{path}.retries", what, "leave it out, or make it finite")
    if not is_member and settings.deadline is not None:
        what = "a pod of services has no deadline"
        yield _unread(f"{path}.deadline", what, "leave it out, or make it finite")


def _service(draft: Draft, service: Service, values: Mapping[str, Any]) -> Iterator[Finding]:
    settings = exposure(draft, service)
    type_ = values.get("type", settings.type)
    for field, key, types in _EXPOSED:
        given = values.get(key, getattr(settings, field, None))
        path = f"services.{service.name}.{key}"
        if not given or type_ in types:
            continue
        if key == "sourceRanges" and type_ == "NodePort":
            what = "only a LoadBalancer keeps others out; with NodePort everyone can connect"
            step = "expose the service as LoadBalancer, or leave it out"
            yield error("source-ranges", path, what, step)
        else:
            step = f"expose the service as {' or '.join(types)}, or leave it out"
            yield _unread(path, f"exposure as {type_} does not read it", step)


def _unread(path: str, what: str, step: str) -> Finding:
    return warning("unread", path, what, step)
