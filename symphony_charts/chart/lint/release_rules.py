"""Rules about a release as a whole: what its values say that a cluster does not do, or does otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.lint.security import Level
from symphony_charts.chart.render.model import Model, connects_of
from symphony_charts.chart.render.values import Values, is_true, scalar, texts
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.gang import GANGS_OF_PODS
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.leftovers import runs_on
from symphony_charts.spec import variable_names
from symphony_charts.spec.shells import not_handed_on, shell_script

__all__ = ["check_release", "promised_level"]

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIALS)(?:_|$)", re.IGNORECASE
)
_SHELL_WORDS = ("cd ", "export ", "set ", "exec ", "#", "exit", "wait")
# What DI-orchestrator since v1.0 adds to every container.
_OWNED = {variable_names.DI_JOB_ID, variable_names.DI_NODES, variable_names.DI_RANK, "DI_SERVER_URL"}


def promised_level(values: Mapping[str, object]) -> Level:
    """The Pod Security level that the defaults of the values were made for."""
    defaults = sub(values, "defaults")
    if is_true(sub(defaults, "podSecurityContext").get("runAsNonRoot")):
        return "restricted"
    hardened = sub(defaults, "securityContext").get("allowPrivilegeEscalation")
    return "baseline" if hardened is not None and not is_true(hardened) else "privileged"


def check_release(model: Model) -> Iterator[Finding]:
    """Warnings with paths in the values."""
    yield from _ends(model)
    yield from _queue(model)
    if not model.groups:
        yield _warning(
            "no-replicas", "groups", "nothing would run: no group has a replica", "give one of them replicas"
        )
    for group in model.groups.values():
        for name, container in sorted(sub(dict(group.values), "containers").items()):
            path = f"groups.{group.name}.containers.{name}"
            yield from _container(container if isinstance(container, dict) else {}, group, path)
        yield from _silent(model, group)
        yield from _untold(model, group)
        if group.is_restarted_in_place and model.kind.restarts_in_place:
            yield _in_place(group)
        if is_true(group.values.get("keep")) and not (group.keep or group.in_unit):
            what = "it begins anew with each run all the same: what it connects to tells it the pods of the run by name"
            step = "connect it to services of one process, or leave `keep` out"
            yield _warning("kept-in-vain", f"groups.{group.name}.keep", what, step)
    rules = _OF_KIND.get(model.kind_name)
    if rules is not None:
        yield from rules(model)


def _silent(model: Model, group: Group) -> Iterator[Finding]:
    """Connections to services that the values have and nothing runs of."""
    services = sub(model.values, "services")
    for name in dict.fromkeys(connects_of(group)):
        if name in services and name not in model.services:
            what = f'it connects to "{name}", on which nothing listens, and is told no address'
            step = f"give {sub(services, name).get('group')} replicas"
            yield _warning("no-listener", f"groups.{group.name}", what, step)


def _untold(model: Model, group: Group) -> Iterator[Finding]:
    """Overlays whose `envFrom` takes the place of that of the addresses, as every list without keys does."""
    for name, container in sorted(sub(dict(group.values), "containers").items()):
        laid = [sub(container, "overlay")]
        laid += [
            item for item in maps(sub(dict(group.values), "overlay", "spec"), "containers") if item.get("name") == name
        ]
        if model.addresses and any(maps(item, "envFrom") for item in laid):
            path = f"groups.{group.name}.containers.{name}"
            what = "envFrom of an overlay takes the place of the addresses: no SYMPH_* of services is told"
            yield _warning(
                "addresses", f"{path}.overlay", what, f"use `env`, or {path}.envFrom in a values file, which adds"
            )


def _ends(model: Model) -> Iterator[Finding]:
    """What nothing stops."""
    for group, process in runs_on(model.values, model.groups, model.kind_name):
        yield Finding(
            rule="runs-on",
            severity="warning",
            path=f"groups.{group}.containers.{process}",
            what=f"{group if group == process else f'{group}/{process}'} runs on after the experiment is done;"
            " nothing stops it",
            next="uninstall the release when the rest is done",
        )


def _queue(model: Model) -> Iterator[Finding]:
    """A scheduler counts pods that run: a new pod of a Job waits for members of its gang that have finished."""
    workload = sub(model.values, "workload")
    if workload.get("priority") is not None and not model.kind.reads_priority(workload):
        what = "only MCAD, by kind appwrapper v1beta1, queues by a number"
        step = "use queuePriority (Kueue) or defaults.priorityClassName (pods)"
        yield _warning("priority", "workload.priority", what, step)
    if workload.get("gang") not in GANGS_OF_PODS or workload.get("gangScope") == "group":
        return
    finite = [group for group in model.groups.values() if group.is_finite]
    for group in finite:
        if group.replacements and group.min_replicas is None and len(finite) > 1:
            what = "a pod that is tried again after another group has finished waits for ever for its gang"
            step = "set workload.gangScope: group, restartPolicy: OnFailure, or minReplicas"
            yield _warning("gang-retry", f"groups.{group.name}.backoffLimit", what, step)


def _in_place(group: Group) -> Finding:
    """What Kubernetes cannot keep of the retries of pods that are restarted where they are."""
    count = group.replicas * len(sub(dict(group.values), "containers"))
    together = f"the restarts of all {count} processes are counted together, " if count > 1 else ""
    what = f"{together}one too many is ended only when it has begun, and an eviction is a failure"
    step = "use restartPolicy: Never, under which each replica has its retries"
    return _warning("restarts-in-place", f"groups.{group.name}.restartPolicy", what, step)


def _evictions(model: Model) -> Finding:
    what = f"under kind {model.kind_name} a pod that its node or the scheduler evicts has failed"
    step = "use jobs, jobset or argo where nodes come and go"
    return Finding(rule="evictions", severity="info", path="workload.kind", what=what, next=step)


def _volcano(model: Model) -> Iterator[Finding]:
    """What Volcano counts otherwise. Source: volcano-sh/volcano v1.15.1, pkg/controllers/job."""
    yield _evictions(model)
    most = max((group.replacements for group in model.groups.values() if group.in_unit), default=0)
    yield from _together(model, f"Volcano counts the failures of all pods together: the job has {most} retries")


def _appwrapper(model: Model) -> Iterator[Finding]:
    """What the AppWrapper controller retries; under MCAD retries are those of the Jobs."""
    if sub(model.values, "workload", "appwrapper").get("version") != "v1beta1":
        yield from _together(model, "an AppWrapper starts all its groups again when a pod has failed")


def _together(model: Model, what: str) -> Iterator[Finding]:
    """A warning for each group whose retries are not those of each of its replicas, where there are several pods."""
    members = [group for group in model.groups.values() if group.in_unit]
    if sum(group.replicas for group in members) > 1:
        for group in members:
            if group.replacements:
                step = "use jobs, jobset or argo: each replica has its own"
                yield _warning("retries-together", f"groups.{group.name}.backoffLimit", what, step)


def _argo(model: Model) -> Iterator[Finding]:
    if not sub(model.values, "workload", "argo").get("serviceAccount"):
        what = "the chart makes a service account with rights on Jobs, which Argo CD does not take from Git"
        step = "make one by hand, once for the namespace, and name it (docs/argo.md)"
        path = "workload.argo.serviceAccount"
        yield Finding(rule="argo-rights", severity="info", path=path, what=what, next=step)


def _container(container: Values, group: Group, path: str) -> Iterator[Finding]:
    command = texts(container.get("command"))
    if (script := shell_script(command)) is not None:
        yield from _script(script, path)
        if lost := not_handed_on(command, sub(container, "env")):
            what = f"a sh that is dash or busybox's does not hand on {', '.join(lost)}: the lines do not see it"
            yield _warning("cmds-env", f"{path}.command", what, "say `shell: bash`, or `command` in place of lines")
    for name, value in sorted(sub(container, "env").items()):
        text = "" if isinstance(value, dict) else scalar(value)
        if text and "$(" not in text and _SECRET_NAME.search(name):
            what = f"{name} looks like a secret, and its value would stand in the chart"
            yield _warning("secret-in-env", f"{path}.env.{name}", what, f"use `{name}: {{secret: NAME, key: KEY}}`")
    if is_true(sub(container, "securityContext").get("privileged")):
        for mount in sorted(sub(container, "mounts")):
            source = sub(dict(group.values), "volumes", mount, "hostPath").get("path")
            if isinstance(source, str) and source.startswith("/dev/"):
                what = "a device of the node makes the container privileged"
                yield _warning(
                    "privileged-device", f"{path}.mounts.{mount}", what, "use a device plugin if there is one"
                )


def _script(script: str, path: str) -> Iterator[Finding]:
    lines = [line.strip() for line in script.splitlines() if line.strip()]
    if lines and not lines[-1].startswith(_SHELL_WORDS):
        what = "the shell stays process 1 and passes no TERM on: what it runs is killed after the grace period"
        yield _warning("cmds-exec", f"{path}.command", what, "begin the last line with `exec`")


def _dijob(model: Model) -> Iterator[Finding]:
    """What DI-orchestrator ignores, or does otherwise.

    Source: opendilab/DI-orchestrator v1.1.3, pkg/controllers/dijob.go and pkg/context/pod.go; v1.0.0; v0.2.2.
    """
    operator = str(sub(model.values, "workload", "dijob").get("operator") or "v1.1")
    yield _evictions(model)
    for group in (one for one in model.groups.values() if one.in_unit):
        path = f"groups.{group.name}"
        for field in ("labels", "annotations"):
            if sub(dict(group.values), field):
                yield _dropped(field, f"{path}.{field}")
        yield from _dijob_restarts(group, operator, path)
        containers = sub(dict(group.values), "containers")
        for name in containers:
            for variable in sorted(_OWNED & set(sub(containers, name, "env"))):
                what = f"DI-orchestrator sets {variable} itself, after what is said here"
                yield _warning("dijob-env", f"{path}.containers.{name}.env.{variable}", what, "leave it out")
        if len(containers) > 1:
            what = "the operator counts containers for pods: a job with several in a pod never leaves Starting"
            yield _warning("dijob-containers", path, what, "give each process a pod of its own")
    if sub(model.values, "annotations"):
        yield _dropped("annotations", "annotations")


def _dropped(field: str, path: str) -> Finding:
    what = f"DI-orchestrator drops {field} of pods"
    return _warning("dijob-labels", path, what, "use another workload.kind if something reads them")


def _dijob_restarts(group: Group, operator: str, path: str) -> Iterator[Finding]:
    if group.values.get("restartPolicy") == "OnFailure":
        what = "DI-orchestrator never restarts a container in place"
        yield _warning("dijob-restart", f"{path}.restartPolicy", what, "use retries, or another workload.kind")
    if not group.retries:
        return
    if operator in ("v0", "v1.0"):
        what = f"operator {operator} starts no failed pod again"
        step = "use a newer operator, or another workload.kind"
    else:
        what = "a pod that comes back has the rank after the last, which DI_NODES does not have: only the last bears it"
        step = "use jobset with compat: di-engine"
    yield _warning("dijob-retries", f"{path}.backoffLimit", what, step)


def _warning(rule: str, path: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="warning", path=path, what=what, next=next)


# What one kind alone does otherwise.
_OF_KIND = {"appwrapper": _appwrapper, "argo": _argo, "dijob": _dijob, "volcano": _volcano}
