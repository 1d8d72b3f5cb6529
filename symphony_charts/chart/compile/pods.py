"""A pod of the experiment becomes the values of one group.

What an overlay says and the experiment has a field for is that field already. Of the rest, what the values have a place
for goes there, so that it can be overridden; what is left stays an `overlay` that the templates merge into the
finished pod or container.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Literal

from symphony_charts.chart.compile.defaults import container_security
from symphony_charts.chart.compile.volumes import compile_volume, git_step, is_device, mounts_of
from symphony_charts.chart.render.values import Values
from symphony_charts.environment.entrypoint import entry_point
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.spec.model import Experiment, Probe, Process, Step, Toleration
from symphony_charts.spec.overlay_fields import merge_probe
from symphony_charts.spec.pods import Pod, ProcessRef, retries_of
from symphony_charts.spec.resources import resources_of, selector_of
from symphony_charts.spec.services import Service
from symphony_charts.spec.sources import AnyVolume, EnvSource, EnvValue, GitVolume, Mount

__all__ = ["compile_group", "refuse_nulls"]


def compile_group(experiment: Experiment, pod: Pod, services: Iterable[Service]) -> Values:
    """The values of one pod: its own settings, then containers, init containers and volumes keyed by name."""
    services = tuple(services)
    steps = _steps(experiment, pod)
    members: list[Process | Step] = [*pod.processes.values(), *steps.values()]
    mounts = [mount for member in members for mount in member.mounts]
    volumes = {mount.volume: experiment.volumes[mount.volume] for mount in mounts}
    init: Values = {
        f"git-{name}": git_step(name, volume) for name, volume in volumes.items() if isinstance(volume, GitVolume)
    }
    init |= {name: _step(experiment, step) for name, step in steps.items()}
    group: Values = {
        "replicas": pod.settings.replicas,
        "order": list(pod.processes),
        **_settings(experiment, pod),
        "containers": {
            name: _container(experiment, ProcessRef(pod.name, name), process, services)
            for name, process in pod.processes.items()
        },
    }
    if pod.settings.min_replicas is not None:
        group["minReplicas"] = pod.settings.min_replicas
    if init:
        group |= {"initOrder": list(init), "initContainers": init}
    if volumes:
        group["volumes"] = {name: compile_volume(volume) for name, volume in volumes.items()}
    return _absorb_pod(group, pod.settings.pod_overlay)


def _compile_env(env: Mapping[str, EnvValue]) -> Values:
    """Environment values as text, or as Kubernetes' `valueFrom` where they come from elsewhere."""
    return {name: value if isinstance(value, str) else _source(value) for name, value in env.items()}


def _compile_probe(probe: Probe | Literal["none"] | None, bound: Iterable[str]) -> Values:
    """The readiness probe: the given one, or else a connection to the first bound service; empty for none.

    Ports stay service names; the templates put the numbers in.
    """
    if probe is None:
        return next(({"tcpSocket": {"port": name}} for name in bound), {})
    if probe == "none":
        return {}
    values: Values = {}
    if probe.tcp is not None:
        values["tcpSocket"] = {"port": probe.tcp.port}
    elif probe.http is not None:
        values["httpGet"] = {"port": probe.http.port, "path": probe.http.path, "scheme": probe.http.scheme}
    elif probe.exec is not None:
        values["exec"] = {"command": list(probe.exec.command)}
    values |= {"periodSeconds": probe.period, "timeoutSeconds": probe.timeout, "failureThreshold": probe.failures}
    if probe.initial_delay:
        values["initialDelaySeconds"] = probe.initial_delay
    if probe.successes != 1:
        values["successThreshold"] = probe.successes
    return values


def refuse_nulls(values: Values) -> None:
    """Raises SpecError, all faults at once, where the values hold a null; only an overlay can bring one in."""
    paths = list(_nulls(values, ""))
    if paths:
        raise SpecError(
            Problem(what=f"{path} is null, which a chart cannot hold", path=path, next="leave the key out")
            for path in paths
        )


def _nulls(value: object, path: str) -> Iterable[str]:
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nulls(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nulls(item, f"{path}[{index}]")


def _settings(experiment: Experiment, pod: Pod) -> Values:
    """What belongs to the pod, in Kubernetes' words; what was not said is left out."""
    settings = pod.settings
    values: Values = {
        "nodeSelector": selector_of(settings),
        "tolerations": [_toleration(toleration) for toleration in settings.tolerations],
        "labels": dict(settings.labels),
        "annotations": dict(settings.annotations),
        "serviceAccountName": settings.service_account,
        "priorityClassName": settings.priority_class,
        "names": list(settings.names),
    }
    values = {key: value for key, value in values.items() if value}
    if settings.grace_period is not None:
        values["terminationGracePeriodSeconds"] = settings.grace_period
    if pod.is_finite:
        values |= _finite_settings(experiment, pod)
    said = {"keep": settings.keep, "activeDeadlineSeconds": settings.deadline, "backoffLimit": settings.retries}
    return values | {key: value for key, value in said.items() if value is not None}


def _finite_settings(experiment: Experiment, pod: Pod) -> Values:
    restarts = pod.settings.restart == "on-failure"
    policy = "OnFailure" if restarts else "Never"
    values: Values = {"restartPolicy": policy, "backoffLimit": retries_of(experiment, pod)}
    return values


def _container(experiment: Experiment, ref: ProcessRef, process: Process, services: Iterable[Service]) -> Values:
    bound = [service.name for service in services if service.listener == ref and service.is_bound]
    requests, limits = resources_of(process)
    if process.gpus:
        limits.setdefault("nvidia.com/gpu", str(process.gpus))
    optional: Values = {
        "resources": _resources(requests, limits),
        "imagePullPolicy": process.image_pull_policy,
        "connects": list(process.connects),
        "readinessProbe": _compile_probe(process.ready, [name for name in process.binds if name in bound]),
    }
    values: Values = {
        **_program(process, experiment.volumes),
        "lifecycle": process.lifecycle,
        **{key: value for key, value in optional.items() if value},
    }
    if any(is_device(experiment.volumes[mount.volume]) for mount in process.mounts):
        values["securityContext"] = container_security(experiment.security, device=True)
    return _absorb_container(values, process.container_overlay)


def _steps(experiment: Experiment, pod: Pod) -> dict[str, Step]:
    return {name: step for name, step in experiment.prepare.items() if not step.groups or pod.name in step.groups}


def _step(experiment: Experiment, step: Step) -> Values:
    resources = _resources(step.requests, step.limits)
    values = {**_program(step, experiment.volumes), **({"resources": resources} if resources else {})}
    return _absorb_container(values, step.container_overlay)


def _program(member: Process | Step, volumes: Mapping[str, AnyVolume]) -> Values:
    """What a process and a step have in common: image, entry point, environment, folder and mounts.

    Where none is named it is that of the experiment, which stands in the defaults.
    """
    command, args = entry_point(member)
    values: Values = {"image": member.image or ""}
    mounts: list[Mount] = member.mounts
    optional: Values = {
        "command": command,
        "args": args,
        "workingDir": member.cwd,
        "env": _compile_env(member.env),
        "mounts": mounts_of(mounts, volumes),
    }
    return values | {key: value for key, value in optional.items() if value}


def _resources(requests: Mapping[str, str], limits: Mapping[str, str]) -> Values:
    return {key: dict(value) for key, value in (("requests", requests), ("limits", limits)) if value}


def _source(source: EnvSource) -> Values:
    if source.field is not None:
        return {"fieldRef": {"fieldPath": source.field}}
    if source.resource is not None:
        return {"resourceFieldRef": {"resource": source.resource}}
    kind, name = ("secretKeyRef", source.secret) if source.secret is not None else ("configMapKeyRef", source.config)
    reference: Values = {"name": name, "key": source.key}
    if source.optional:
        reference["optional"] = True
    return {kind: reference}


def _toleration(toleration: Toleration) -> Values:
    fields: Values = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.seconds,
    }
    return copy.copy({key: value for key, value in fields.items() if value is not None})


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER = (*_PROBES, "resources", "securityContext")
_POD = (
    "affinity",
    "automountServiceAccountToken",
    "schedulerName",
    "securityContext",
    "tolerations",
    "topologySpreadConstraints",
)


def _absorb_container(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a container with `over`, the shape of a Kubernetes container, in them."""
    result, rest = dict(values), copy.deepcopy(dict(over))
    for key in _CONTAINER:
        if sub(rest, key):
            merge = merge_probe if key in _PROBES else merge_overlay
            result[key] = merge(sub(values, key), sub(rest, key))
            del rest[key]
    if _is_env(rest.get("env")):
        result["env"] = sub(values, "env") | {str(item["name"]): _env_value(item) for item in maps(rest, "env")}
        del rest["env"]
    return {**result, "overlay": rest} if rest else result


def _absorb_pod(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a group with `over`, a pod's ``metadata`` and ``spec``, in them."""
    result, rest = dict(values), copy.deepcopy(dict(over))
    metadata, spec = sub(rest, "metadata"), sub(rest, "spec")
    for key in ("labels", "annotations"):
        if sub(metadata, key):
            result[key] = {**sub(values, key), **sub(metadata, key)}
            del metadata[key]
    for key in _POD:
        # An empty map adds nothing to a pod; as a value it would take the default away.
        if key in spec and spec[key] != {}:
            result[key] = spec.pop(key)
    kept = {key: value for key, value in {**rest, "metadata": metadata, "spec": spec}.items() if value}
    return {**result, "overlay": kept} if kept else result


def _is_env(value: object) -> bool:
    shapes = ({"name", "value"}, {"name", "valueFrom"})
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and set(item) in shapes for item in value
    )


def _env_value(item: Mapping[str, object]) -> object:
    return item.get("value", item.get("valueFrom"))
