"""Rules about settings that no object of a release shows, since its kind, its gang or a way in does not read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.render.model import LiveService, Model
from symphony_charts.chart.render.run import has_pod_groups
from symphony_charts.chart.render.values import Values, scalar
from symphony_charts.formats.data import sub
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.registry import KINDS

__all__ = ["check_unread"]

# The ways in by which a setting of a service is read; `sourceRanges` is refused elsewhere, as far as it would protect.
_WAYS: Mapping[str, tuple[str, ...]] = {
    "host": ("Ingress", "Gateway"),
    "path": ("Ingress", "Gateway"),
    "pathType": ("Ingress",),
    "className": ("Ingress",),
    "tls": ("Ingress",),
    "gateway": ("Gateway",),
    "nodePort": ("NodePort", "LoadBalancer"),
    "externalTrafficPolicy": ("NodePort", "LoadBalancer"),
    "loadBalancerClass": ("LoadBalancer",),
    "sourceRanges": ("LoadBalancer",),
}
# The operators that read a setting of a DIJob, where others do not.
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "group": ("v0", "v1.0", "v1.1.0"),
    "topology": ("v1.0",),
    "parallelWorkers": ("v1.0",),
    "maxReplicas": ("v1.0",),
}


def check_unread(model: Model) -> Iterator[Finding]:
    """Warnings with paths in the values."""
    workload = sub(model.values, "workload")
    yield from _workload(model, workload)
    for group in model.groups.values():
        yield from _group(model, workload, group)
    for service in model.services.values():
        yield from _service(service)


def _workload(model: Model, workload: Values) -> Iterator[Finding]:
    for name in KINDS:
        if name != model.kind_name and sub(workload, name):
            what = f"kind {model.kind_name} reads none of it"
            yield _unread(f"workload.{name}", what, f"set `kind: {name}`, or leave it out")
    gang = scalar(workload.get("gang") or "none")
    if workload.get("gangScope") and not has_pod_groups(model):
        what = f"kind {model.kind_name} and gang {gang} make no PodGroup"
        yield _unread("workload.gangScope", what, "use gang native, coscheduling or volcano, or leave it out")
    if workload.get("gangVersion") and gang != "native":
        what = f"it is the version of gang native, and the gang is {gang}"
        yield _unread("workload.gangVersion", what, "set `gang: native`, or leave it out")
    rules = _OF_KIND.get(model.kind_name)
    if rules is not None:
        yield from rules(sub(workload, model.kind_name))


def _argo(own: Values) -> Iterator[Finding]:
    for key in () if own.get("schedules") else ("timezone", "concurrency"):
        if own.get(key):
            yield _unread(f"workload.argo.{key}", "there are no schedules", "add `schedules`, or leave it out")


def _dijob(own: Values) -> Iterator[Finding]:
    operator = scalar(own.get("operator") or "v1.1")
    for key, operators in _OPERATORS.items():
        if own.get(key) and operator not in operators:
            what = f"operator {operator} does not know it"
            yield _unread(f"workload.dijob.{key}", what, f"{', '.join(operators)} did: leave it out")


def _group(model: Model, workload: Values, group: Group) -> Iterator[Finding]:
    path = f"groups.{group.name}"
    is_counted = not group.keep if has_pod_groups(model) else group.in_unit and model.kind.reads_minimum(workload)
    if group.min_replicas is not None and not is_counted:
        what = f"kind {model.kind_name} and gang {scalar(workload.get('gang') or 'none')} do not start them together"
        yield _unread(f"{path}.minReplicas", what, "choose a gang that counts pods, or leave it out")
    if group.in_unit:
        if group.values.get("keep") is not None:
            what = "it says whether services outlive a run, and these pods end with theirs"
            yield _unread(f"{path}.keep", what, "leave it out")
        return
    if group.values.get("backoffLimit"):
        what = "a pod of services is started again whenever it has ended"
        yield _unread(f"{path}.backoffLimit", what, "leave it out, or make it finite")
    if group.values.get("activeDeadlineSeconds") is not None:
        what = "nothing ends a pod of services in time"
        yield _unread(f"{path}.activeDeadlineSeconds", what, "leave it out, or make it finite")


def _service(service: LiveService) -> Iterator[Finding]:
    for key, ways in _WAYS.items():
        if service.expose and service.values.get(key) and service.expose not in ways:
            what = f"exposed as {service.expose} it is not read"
            step = f"expose the service as {' or '.join(ways)}, or leave it out"
            yield _unread(f"services.{service.name}.{key}", what, step)


def _unread(path: str, what: str, step: str) -> Finding:
    return Finding(rule="unread", severity="warning", path=path, what=what, next=step)


# What one kind alone says of itself.
_OF_KIND = {"argo": _argo, "dijob": _dijob}
