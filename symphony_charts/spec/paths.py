"""A path of a chart's values is traced back to the path of the spec that it was compiled from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec

from symphony_charts.spec.added_kinds import settings_record
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.sources import Record

# Values, and Kubernetes' words, whose fields have another name; `command` is what `cmds` became.
_OF_GROUP = {
    "backoffLimit": "retries",
    "restartPolicy": "restart",
    "activeDeadlineSeconds": "deadline",
    "minReplicas": "min_replicas",
    "terminationGracePeriodSeconds": "grace_period",
    "serviceAccountName": "service_account",
    "priorityClassName": "priority_class",
    "nodeSelector": "node_selector",
}
_OF_CONTAINER = {
    "workingDir": "cwd",
    "imagePullPolicy": "image_pull_policy",
    "overlay": "container_overlay",
    "volumes": "mounts",
    "volumeMounts": "mounts",
    "readinessProbe": "ready",
}
_OF_SERVICE = {
    "expose": "type",
    "className": "class_name",
    "loadBalancerClass": "class_name",
    "sourceRanges": "source_ranges",
}
_CAPITAL = re.compile("[A-Z]")


def spec_path(path: str, experiment: Experiment) -> str:
    """Return the path in the spec of what is at `path` of the values, or `path` where the spec has nothing of the kind.

    ``groups.a.containers.a.env.TOKEN`` is ``processes.a.env.TOKEN`` for a lone process.
    """
    head, *steps = path.split(".")
    if head == "workload":
        return ".".join([head, *(_CAPITAL.sub(lambda found: f"_{found[0].lower()}", step) for step in steps)])
    if head == "services" and len(steps) == 2 and steps[0] in experiment.expose:
        return f"expose.{steps[0]}.{_OF_SERVICE.get(steps[1], steps[1])}"
    pod = pods_of(experiment).get(steps[0]) if head == "groups" and steps else None
    if pod is None:
        return path
    rest = steps[1:]
    if rest[:1] == ["containers"] and len(rest) > 1 and rest[1] in pod.processes:
        process, rest = rest[1], rest[2:]
        if rest[:1] == ["command"] and pod.processes[process].cmds is not None:
            rest = ["cmds"]
        base = f"{pod.path}.processes.{process}" if pod.is_group else pod.path
        return ".".join([base, *(_OF_CONTAINER.get(step, step) for step in rest[:1]), *rest[1:]])
    return ".".join([pod.path, *(_OF_GROUP.get(step, step) for step in rest)])


def is_spec_path(path: str) -> bool:
    """Return True if an experiment may have something at `path`, whatever names its maps have."""
    types: list[Any] = [Experiment]
    for step in path.split("."):
        types = [inner for each in types for inner in _inside(each, step)]
    return bool(types)


def _inside(type_: Any, step: str) -> Iterator[Any]:
    """Yield the types that a value of `type_` may have under the key `step`."""
    if isinstance(type_, type) and (settings := settings_record(type_, step)):
        yield settings
    elif isinstance(type_, type) and issubclass(type_, Record):
        yield from (field.type for field in msgspec.structs.fields(type_) if field.encode_name == step)
    elif get_origin(type_) is dict:
        yield get_args(type_)[1]
    elif type_ is object:
        yield object
    else:
        arguments: Sequence[Any] = get_args(type_) if get_origin(type_) not in (list, tuple) else ()
        for each in arguments:
            yield from _inside(each, step)
