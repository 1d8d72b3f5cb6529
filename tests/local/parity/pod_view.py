"""A model of the kubelet: derive what each container of rendered manifests would see, without running anything.

Source of the rules: kubernetes/kubernetes pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables) and
third_party/forked/golang/expansion/expand.go.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from symphony_charts.formats.data import sub
from symphony_charts.integrations.dijob.pods import RANK
from symphony_charts.kinds.base import WAITING, process_of
from symphony_charts.kinds.registry import kind_for, opened
from symphony_charts.local.plan.replicas import replica_name
from symphony_charts.spec.environment import expand
from symphony_charts.spec.variable_names import DI_FIRST_RANK, DI_RANK, beside_shells
from tests.local.parity.process_view import ProcessView, file_mark

Object: TypeAlias = Mapping[str, object]

# Placeholder for the address of a pod, which only a cluster assigns.
_POD_IP = "203.0.113.7"
_GROUP, _RUN = "symph.dev/group", "symph.dev/run"


def view_of_manifests(
    objects: Sequence[Object], without: Mapping[str, Collection[str]] = MappingProxyType({})
) -> dict[str, ProcessView]:
    """Return the view of every container in `objects`, by ``pod/process``; steps left out.

    Pods are named as on one machine: the group, with the replica's index if there are several. `without` names further
    containers of a group to leave out.
    """
    objects = opened(map(dict, objects))
    maps = {_text(sub(item, "metadata"), "name"): item for item in objects if item.get("kind") == "ConfigMap"}
    hosts, groups, views = _hosts(objects), {_group_of(item) for item in objects}, {}
    for item in objects:
        if _runs_pods(item):
            for view in _workload_views(item, maps, hosts, groups, without.get(_group_of(item), ())):
                views[view.name] = view
    return views


def _workload_views(
    item: Object,
    maps: Mapping[str, Object],
    hosts: frozenset[str],
    groups: Collection[str],
    without: Collection[str],
) -> Iterator[ProcessView]:
    spec, name = sub(item, "spec"), _text(sub(item, "metadata"), "name")
    count = _count(item)
    template = sub(spec, "template")
    labels = sub(sub(template, "metadata"), "labels")
    first_rank = int(_text(sub(sub(template, "metadata"), "annotations"), RANK) or 0)
    pod = sub(template, "spec")
    sidecars = [container for container in _list(pod, "initContainers") if container.get("restartPolicy") == "Always"]
    containers = [
        container
        for container in [*sidecars, *_list(pod, "containers")]
        if process_of(container) not in (*without, WAITING)
    ]
    for index in range(count):
        here = replica_name(str(labels[_GROUP]), index, count, groups)
        fields = {
            "status.podIP": _POD_IP,
            "metadata.name": f"{name}-{index}",
            "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index),
            "metadata.annotations['batch.kubernetes.io/job-index-failure-count']": "0",
            "metadata.labels['jobset.sigs.k8s.io/restart-attempt']": "0",
            "metadata.labels['apps.kubernetes.io/pod-index']": str(index),
            "metadata.labels['volcano.sh/task-index']": str(index),
            "metadata.annotations['diengine/task-rank']": str(index),
            f"metadata.annotations['{RANK}']": str(first_rank + index),
            **{f"metadata.labels['{key}']": str(value) for key, value in labels.items()},
        }
        for container in containers:
            env, unknown = _environment(container, maps, fields)
            words = [*_words(container, "command"), *_words(container, "args")]
            if words[3:4] == ["symph-rank"]:
                # The shell of a node adds its index to the first rank and then becomes the command behind it.
                words, first = _behind_shell(words, env), env.pop(DI_FIRST_RANK)
                env[DI_RANK] = str(int(first) + index)
            yield ProcessView(
                name=f"{here}/{process_of(container)}",
                argv=tuple(expand(argument, env) for argument in words),
                env=env,
                cwd=_text(container, "workingDir") or None,
                files=dict(_files(container, pod, maps)),
                hosts=hosts,
                unknown=unknown,
            )


def _behind_shell(words: list[str], env: Collection[str]) -> list[str]:
    """Return the command behind one of our scripts, without the variables passed on because shells drop them."""
    words, handed_on = words[4:], beside_shells(env)
    return words[len(handed_on) :] if words[: len(handed_on)] == handed_on else words


def _environment(
    container: Object, maps: Mapping[str, Object], fields: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the variables of a container, and the names of those whose values the manifests do not contain."""
    env: dict[str, str] = {}
    for source in _list(container, "envFrom"):
        name = _text(sub(source, "configMapRef"), "name")
        if name in maps:
            env.update({key: str(value) for key, value in sub(maps[name], "data").items()})
    own: dict[str, str] = {}
    unknown: set[str] = set()
    for entry in _list(container, "env"):
        name, source = _text(entry, "name"), sub(entry, "valueFrom")
        field = _text(sub(source, "fieldRef"), "fieldPath")
        if source and field not in fields:
            unknown.add(name)
        own[name] = fields.get(field, f"<{field}>") if source else expand(_text(entry, "value"), {**env, **own})
    return {**env, **own}, frozenset(unknown)


def _files(container: Object, pod: Object, maps: Mapping[str, Object]) -> Iterator[tuple[str, str]]:
    """Yield path and mark of every file that comes from a ConfigMap in the manifests."""
    volumes = {_text(volume, "name"): volume for volume in _list(pod, "volumes")}
    for mount in _list(container, "volumeMounts"):
        source = sub(volumes.get(_text(mount, "name"), {}), "configMap")
        item = maps.get(_text(source, "name"))
        if item is None:
            continue
        content = {key: str(value).encode() for key, value in sub(item, "data").items()}
        content |= {key: base64.b64decode(str(value)) for key, value in sub(item, "binaryData").items()}
        default = source.get("defaultMode")
        for key in _list(source, "items") or [{"key": key, "path": key} for key in content]:
            mode = key.get("mode", default if isinstance(default, int) else 0o644)
            path = f"{_text(mount, 'mountPath')}/{_text(key, 'path')}"
            yield path, file_mark(content[_text(key, "key")], mode if isinstance(mode, int) else 0o644)


def _hosts(objects: Sequence[Object]) -> frozenset[str]:
    """Return the names of services and single pods, and the placeholder of a pod's own address."""
    services = {_text(sub(item, "metadata"), "name") for item in objects if item.get("kind") == "Service"}
    workloads = [item for item in objects if _runs_pods(item)]
    return frozenset({_POD_IP, *services}.union(*map(_replica_hosts, workloads)))


def _runs_pods(item: Object) -> bool:
    """Return True for a Job, StatefulSet or Deployment of one of our pods; all other kinds result in these."""
    kind = kind_for(item)
    return kind is not None and not kind.holds_groups and bool(_group_of(item))


def _group_of(item: Object) -> str:
    """Return the pod of the experiment that a workload runs; empty for other objects."""
    return _text(sub(sub(sub(sub(item, "spec"), "template"), "metadata"), "labels"), _GROUP)


def _replica_hosts(item: Object) -> set[str]:
    spec, name = sub(item, "spec"), _text(sub(item, "metadata"), "name")
    domain = _text(sub(sub(spec, "template"), "spec"), "subdomain") or _text(spec, "serviceName")
    # Operator v1.1.0 gives the pods of a DIJob a domain without the prefix of later versions.
    domains = (domain, domain.removeprefix("di-"))
    return {f"{name}-{number}.{suffix}" for number in range(_count(item)) for suffix in domains}


def _count(item: Object) -> int:
    spec = sub(item, "spec")
    count = spec.get("completions", spec.get("replicas"))
    return count if isinstance(count, int) else 1


def _list(item: Object, key: str) -> list[Object]:
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _words(item: Object, key: str) -> list[str]:
    value = item.get(key)
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _text(item: Object, key: str) -> str:
    value = item.get(key)
    return str(value) if value is not None else ""
