"""The pods that an operator would make of a DIJob are compared with those that it would make of ours.

One set of rules reads both, so that what an operator adds is equal where names, order and numbers are. A script counts
without its empty lines and comments, which an experiment does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.paths import join
from symphony_charts.importers.common.pod import PodParts
from symphony_charts.importers.common.proof import Object, OriginalPod, Pods, proven
from symphony_charts.importers.common.report import Imported, Note
from symphony_charts.importers.dijob.roles import PORTS
from symphony_charts.kinds.children import opened
from symphony_charts.kinds.dijob.children import group_of
from symphony_charts.spec.checks.dijob import CONTAINER

__all__ = ["compared"]

_TOOL = "the operator"
# What its definition says of a field that is left out.
_USUAL = {"cleanPodPolicy": "Running", "backoffLimit": 3, "replicas": 1, "priority": "normal", "topology": "star"}
_FIELDS = ("cleanPodPolicy", "backoffLimit", "group", "priority", "minReplicas", "engineFields")
_COUNTED = ("completions", "parallelism", "replicas")


def compared(
    imported: Imported, job: Object, place: str, pods: Sequence[tuple[str, PodParts]], aggregator: Object
) -> Imported:
    """`imported`, its report completed by how the operator's pods of `job`, which stands at `place`, differ from ours.

    `pods` are those that were read, in the order of the job, then that of its `aggregator`.
    """
    theirs = [*_templates([job]), *_aggregators(aggregator)]
    shared = maps(sub(job, "spec"), "volumes")
    originals = [
        OriginalPod(
            pod=name,
            spec={**spec, "volumes": [*maps(spec, "volumes"), *shared]},
            place=join(parts.path, "spec"),
            processes=[(container, parts.paths[container]) for container in parts.processes],
        )
        for (name, parts), spec in zip(pods, theirs, strict=False)
    ]

    def of_job(objects: Sequence[dict[str, object]]) -> Pods:
        ours = [item for item in objects if item.get("kind") == "DIJob"]
        notes = [note for one in ours[:1] for note in _unlike(job, one, place)]
        found = [*_templates(ours), *(spec for item in objects for spec in _aggregators(item))]
        return {group_of(spec, ""): spec for spec in found}, notes

    return proven(imported, originals, _TOOL, of_job)


def _templates(jobs: Sequence[Object]) -> list[Object]:
    """The pods of jobs, in the order of their ranks or roles."""
    items = [item for item in opened(map(dict, jobs)) if item.get("kind") != "DIJob"]
    roles = [str(sub(item, "spec", "template", "metadata", "labels").get("replica-type") or "") for item in items]
    pods = [_plain(sub(item, "spec", "template", "spec"), role) for item, role in zip(items, roles, strict=True)]
    said = [sub(job, "spec", role, "template", "spec").get("restartPolicy") for job in jobs for role in roles if role]
    # Later operators give all pods this one, v0 the coordinator alone.
    usual = {"": "Never", "coordinator": "Never"}
    return [
        {**pod, "restartPolicy": usual.get(role, "Always")} if not (role and policy) else pod
        for pod, role, policy in zip(pods, roles, said or roles, strict=True)
    ]


def _aggregators(item: Object) -> Iterator[Object]:
    spec = sub(item, "spec", "aggregator", "template", "spec")
    if spec:
        yield {"restartPolicy": "Always", **_plain(spec, "aggregator")}


def _unlike(theirs: Object, ours: Object, place: str) -> Iterator[Note]:
    """What the two say of the job itself, and of how many pods of which names there are in which order."""
    wanted, held = sub(theirs, "spec"), sub(ours, "spec")
    for key in _FIELDS:
        if _said(wanted, key) != _said(held, key):
            what = f"`{key}` of the job differs: {_said(wanted, key)} there, {_said(held, key)} in ours"
            yield Note(path=join(join(place, "spec"), key), what=what, verdict="changed")
    if _counted(theirs) != _counted(ours):
        what = "the operator gives its pods other names, numbers or ranks than ours"
        yield Note(path=join(join(place, "spec"), "tasks"), what=what, verdict="changed")


def _said(spec: Object, key: str) -> object:
    value = spec.get(key)
    if isinstance(value, Mapping):
        return {name: part for name, part in value.items() if part not in (None, "", _USUAL.get(name))} or None
    return _USUAL.get(key) if value in (None, "", {}) else value


def _counted(job: Object) -> list[object]:
    """The tasks in the order of their ranks: name, type and number of pods."""
    tasks = maps(sub(job, "spec"), "tasks")
    return [
        (task.get("name") or task.get("type"), task.get("type") or "none", _said(task, "replicas")) for task in tasks
    ]


def _plain(spec: Object, role: str) -> Object:
    """The pod as its containers see it; operator v0, which knows roles, tells them who they are."""
    port = next(
        (
            port.get("containerPort")
            for container in maps(spec, "containers")
            if container.get("name") == CONTAINER
            for port in maps(container, "ports")
            if port.get("name") == "di-port"
        ),
        PORTS.get(role),
    )
    told = [{"name": f"{role.upper()}_PORT", "value": str(port)}] if role else []
    parts: dict[str, object] = {}
    for key in ("initContainers", "containers"):
        items = [_with_argv(item) for item in maps(spec, key)]
        if role and key == "containers":
            # The last of a name counts.
            items = [
                {**item, "env": [*(one for one in maps(item, "env") if not _is_told(one)), *told]} for item in items
            ]
        if items:
            parts[key] = items
    # The domain is called after the job, which every run of ours has a name of its own for.
    return {**{key: value for key, value in spec.items() if key != "subdomain"}, **parts}


def _is_told(variable: Object) -> bool:
    return variable.get("name") in ("KUBERNETES_POD_NAME", "KUBERNETES_POD_NAMESPACE")


def _with_argv(container: dict[str, object]) -> dict[str, object]:
    lists = [container.get(key) for key in ("command", "args")]
    words = [str(word) for one in lists if isinstance(one, list) for word in one]
    kept = {key: value for key, value in container.items() if key not in ("command", "args")}
    image = not container.get("command") and words
    argv = [*(["<the image's own>"] if image else []), *map(_script, words)]
    return {**kept, **({"command": argv} if argv else {})}


def _script(word: str) -> str:
    lines = (line for line in word.split("\n") if line.strip() and not re.match(r"\s*#", line))
    return "\n".join(lines)
