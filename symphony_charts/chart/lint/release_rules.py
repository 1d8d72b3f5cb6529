"""Rules about a whole release: settings that a cluster ignores or treats in an unexpected way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.build.conductor import is_conducted
from symphony_charts.chart.build.draft import Draft, Group, dials_of
from symphony_charts.chart.build.services import exposure
from symphony_charts.chart.evaluate import printed
from symphony_charts.chart.lint.finding import Finding, error, info, running, warning
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.registry import KINDS, runs_on
from symphony_charts.spec.model import Process
from symphony_charts.spec.pods import ProcessRef, Service
from symphony_charts.spec.sources import DeviceVolume
from symphony_charts.spec.variable_names import not_handed_on, shell_script
from symphony_charts.spec.workload import GANGS_OF_PODS, Workload

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIALS)(?:_|$)", re.IGNORECASE
)
# `$$` for a shell; `$$(NAME)` escapes a reference, and `$$$$` is right.
_PID = re.compile(r"(?<!\$)\$\$(?![$(])")
_SHELL_WORDS = ("cd ", "export ", "set ", "exec ", "#", "exit", "wait")


def check_release(chart: BuiltChart, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield unexpected effects, with paths in the values or the spec."""
    draft, groups = chart.draft, running(chart, values)
    for pod, name in runs_on(chart, values):
        group, limits = draft.groups[pod], sub(values["groups"][pod]["containers"][name], "resources", "limits")
        devices = [f"{printed(count)} {resource}" for resource, count in limits.items() if "/" in resource]
        if devices or not (group.is_kept and draft.finite):
            held = f" with {', '.join(devices)}" if devices else ""
            what = f"{ProcessRef(pod, name)} keeps running after the end of the run{held}"
            step = "set until: run, or uninstall the release when the run is over"
            yield warning("runs-on", f"groups.{pod}.containers.{name}", what, step)
    yield from _queue(draft, groups, values)
    if not groups:
        what = "nothing would run: no group has a replica"
        yield warning("no-replicas", "groups", what, "give one of them replicas")
    for group in groups:
        for name, process in group.pod.processes.items():
            path = f"groups.{group.name}.containers.{name}"
            yield from _container(values["groups"][group.name]["containers"][name], path)
            yield from _process(draft, group, name, process, path)
        yield from _group(draft, group, groups, values)
    if draft.kind.fails_when_evicted:
        what = f"with kind {draft.kind.name}, a pod that its node or the scheduler evicts has failed"
        yield info("evictions", "workload.kind", what, "use jobs, jobset or argo where nodes come and go")
    yield from _shared_retries(draft, groups, values)
    for severity, rule, problem in draft.kind.findings(draft, groups, values):
        yield Finding(rule=rule, severity=severity, path=problem.path, what=problem.what, next=problem.next)


def _queue(draft: Draft, groups: Sequence[Group], values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield findings about the queue and the gang.

    A scheduler counts running pods only, so a replacement pod of a Job waits for gang members that have finished.
    """
    workload = draft.experiment.workload
    if workload.priority is not None and "priority" not in draft.kind.values(draft):
        what = "only MCAD (kind appwrapper, version v1beta1) queues by a number"
        step = "use queue_priority (Kueue) or priority_class (pods)"
        yield warning("priority", "workload.priority", what, step)
    finite = [group for group in groups if group.is_finite and not group.is_ended]
    if workload.gang not in GANGS_OF_PODS or workload.gang_scope == "group" or len(finite) == 1:
        return
    for group in finite:
        if _replacements(group, values) and group.pod.settings.min_replicas is None:
            what = "a pod that is retried after another group has finished waits for ever for its gang"
            step = "set workload.gang_scope: group, restart: on-failure, or min_replicas"
            yield warning("gang-retry", f"groups.{group.name}.retries", what, step)


def _replacements(group: Group, values: Mapping[str, Any]) -> int:
    return int(values["groups"][group.name].get("retries", 0)) if group.is_replaced else 0


def _group(draft: Draft, group: Group, groups: Sequence[Group], values: Mapping[str, Any]) -> Iterator[Finding]:
    path = f"groups.{group.name}"
    names = [one.name for one in groups]
    for service in dials_of(group):
        listener = draft.services[service].listener.pod
        if listener not in names:
            what = f'it connects to "{service}", on which nothing listens, and gets no address'
            yield warning("no-listener", path, what, f"give {listener} replicas")
    if group.is_restarted_in_place and not group.is_ended and KINDS[draft.experiment.workload.kind].restarts_in_place:
        count = int(values["groups"][group.name]["replicas"]) * len(group.pod.processes)
        together = f"the restarts of all {count} processes count together, and " if count > 1 else ""
        what = f"{together}an eviction counts as a failure"
        step = "use restart: never, with which each replica has its own retries"
        yield warning("restarts-in-place", f"{path}.restart", what, step)
    if group.pod.settings.until == "uninstall" and not group.is_kept:
        what = "it restarts with each run all the same, since it connects to processes whose addresses change with it"
        yield warning("kept-in-vain", f"{path}.until", what, "connect it to services only, or leave `until` out")


def _container(values: Mapping[str, Any], path: str) -> Iterator[Finding]:
    command = [str(word) for word in values["command"]]
    script = shell_script(command)
    if script is not None:
        lines = [line.strip() for line in script.splitlines() if line.strip()]
        if lines and not lines[-1].startswith(_SHELL_WORDS):
            what = (
                "the shell stays process 1 and does not pass TERM on, so its program is killed after the grace period"
            )
            yield warning("cmds-exec", f"{path}.command", what, "begin the last line with `exec`")
        if _PID.search(script):
            what = "Kubernetes turns `$$` into `$`, so the shell does not see its process id"
            yield warning("cmds-dollars", f"{path}.command", what, "write `$$$$` for the `$$` of the shell")
        lost = not_handed_on(command, values["env"])
        if lost:
            what = f"sh may be dash or busybox, which hide {', '.join(lost)} from the lines"
            yield warning("cmds-env", f"{path}.command", what, "use `shell: bash`, or `command` instead of lines")
    for name, value in sorted(values["env"].items()):
        text = "" if isinstance(value, dict) else str(value)
        if text and "$(" not in text and _SECRET_NAME.search(name):
            what = f"{name} looks like a secret, and the chart would contain its value"
            yield warning("secret-in-env", f"{path}.env.{name}", what, f"use `{name}: {{secret: NAME, key: KEY}}`")


def _process(draft: Draft, group: Group, name: str, process: Process, path: str) -> Iterator[Finding]:
    over = process.container_overlay
    of_pod = maps(sub(group.pod.settings.pod_overlay, "spec"), "containers")
    of_this = [(f"groups.{group.name}.pod_overlay", item) for item in of_pod if item.get("name") == name]
    for place, overlay in [(f"{path}.container_overlay", over), *of_this]:
        if maps(overlay, "envFrom"):
            what = "`envFrom` of an overlay replaces that of the chart, so the process lacks SYMPH_* variables"
            yield warning("addresses", f"{place}.envFrom", what, "use `env`: NAME: {secret: SECRET, key: KEY}")
    for index, mount in enumerate(process.mounts):
        is_privileged = sub(over, "securityContext").get("privileged", True) is True
        if isinstance(draft.experiment.volumes[mount.volume], DeviceVolume) and is_privileged:
            what = "a device of the node makes the container privileged"
            step = "use a device plugin if there is one"
            yield warning("privileged-device", f"{path}.mounts[{index}]", what, step)


def _shared_retries(draft: Draft, groups: Sequence[Group], values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a warning for each group whose replicas share their retries with other pods."""
    finite = [group for group in groups if group.is_finite]
    what = draft.kind.shared_retries(max((_replacements(group, values) for group in groups), default=0))
    if what and sum(int(values["groups"][group.name]["replicas"]) for group in finite) > 1:
        for group in finite:
            if _replacements(group, values):
                step = "use jobs, jobset or argo: each replica has its own"
                yield warning("retries-together", f"groups.{group.name}.retries", what, step)


_unread = partial(warning, "unread")

# Settings of an exposed service: the spec field, the value, and the types of exposure that read it.
_EXPOSED: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("host", "host", ("Ingress", "Gateway")),
    ("class_name", "loadBalancerClass", ("Ingress", "LoadBalancer")),
    ("gateway", "gateway", ("Gateway",)),
    ("source_ranges", "sourceRanges", ("LoadBalancer",)),
    ("", "nodePort", ("NodePort", "LoadBalancer")),
    ("", "externalTrafficPolicy", ("NodePort", "LoadBalancer")),
)


def check_unread(chart: BuiltChart, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield settings without effect, with paths in the values or the spec."""
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
        field = name.replace("-", "_")
        if name != kind and getattr(workload, field, None) != getattr(usual, field, None):
            step = f"set `kind: {name}`, or leave it out"
            yield _unread(f"workload.{name}", f"kind {kind} reads none of it", step)
    if workload.gang_scope and not has_pod_groups:
        what = f"kind {kind} and gang {gang} make no PodGroup"
        yield _unread("workload.gang_scope", what, "use gang native, coscheduling or volcano, or leave it out")
    if workload.gang_version and gang != "native":
        what = f"only gang native has a version, and the gang is {gang}"
        yield _unread("workload.gang_version", what, "set `gang: native`, or leave it out")
    if draft.experiment.linger and not draft.ended:
        yield _unread("linger", "no service ends with the run", "leave it out")
    elif draft.experiment.linger and not is_conducted(draft):
        what = f"kind {draft.kind.name} ends services at once"
        yield _unread("linger", what, "leave it out, or choose kind jobs")
    for problem in draft.kind.unread():
        yield _unread(problem.path, problem.what, problem.next)


def _unread_of_group(draft: Draft, group: Group, *, has_pod_groups: bool) -> Iterator[Finding]:
    path, settings = f"groups.{group.name}", group.pod.settings
    is_member = draft.kind.runs(group)
    is_counted = not group.is_kept if has_pod_groups else is_member and draft.kind.reads_minimum()
    if settings.min_replicas is not None and not is_counted:
        what = f"kind {draft.kind.name} and gang {draft.experiment.workload.gang} do not start its pods together"
        yield _unread(f"{path}.min_replicas", what, "choose a gang that counts pods, or leave it out")
    if not group.pod.is_finite and settings.retries:
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
