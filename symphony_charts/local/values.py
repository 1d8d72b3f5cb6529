"""Chart values on this machine: what `-f` and `--set` say, put back into the experiment that tmux runs.

A value that processes here would see becomes the field that it was made from; compiling the result again must give the
same values, or the path is refused. Values that only a cluster reads change nothing here, as their fields do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.files.values_schema import schema_faults
from symphony_charts.chart.render.values import Values, scalar, texts
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate

__all__ = ["under_values"]

Steps: TypeAlias = tuple[str, ...]
Record: TypeAlias = dict[str, Any]

_WHERE = "--set or --values"

# What processes of this machine never see, in sections that hold for all and in those of a group or a container.
_CLUSTER_ONLY = {
    "workload", "networkPolicy", "tests", "labels", "annotations", "networks", "nameOverride", "fullnameOverride",
    "extra", "global", "runKey", "hold", "defaults", "secrets", "specDigest",
}  # fmt: skip
_OF_GROUP = {
    "nodeSelector", "tolerations", "labels", "annotations", "serviceAccountName", "priorityClassName", "schedulerName",
    "affinity", "securityContext", "topologySpreadConstraints", "imagePullSecrets", "automountServiceAccountToken",
    "keep", "runtimeClassName", "hostNetwork", "dnsPolicy", "dnsConfig",
}  # fmt: skip
_OF_CONTAINER = {"image", "imagePullPolicy", "securityContext", "resources", "connects"}
_OF_SERVICE = {
    "expose", "host", "className", "gateway", "sourceRanges", "annotations", "nodePort", "externalTrafficPolicy",
    "loadBalancerClass",
}  # fmt: skip
# Values of a group, and the fields that they are made of.
_POD_FIELDS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "replicas": ("replicas", lambda value: int(scalar(value))),
    "minReplicas": ("min_replicas", lambda value: int(scalar(value))),
    "backoffLimit": ("retries", lambda value: int(scalar(value))),
    "activeDeadlineSeconds": ("deadline", lambda value: int(scalar(value))),
    "terminationGracePeriodSeconds": ("grace_period", lambda value: int(scalar(value))),
    "names": ("names", texts),
    "restartPolicy": ("restart", lambda value: "on-failure" if value == "OnFailure" else "never"),
}
_PROCESS_FIELDS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "args": ("args", texts),
    "command": ("command", texts),
    "workingDir": ("cwd", scalar),
    "lifecycle": ("lifecycle", scalar),
}


def under_values(spec: SpecFile, overrides: Values) -> SpecFile:
    """`spec` under `overrides`: its experiment, and the ports that its services keep.

    Raises SpecError for every value that the chart refuses, and for those that nothing on this machine can follow.
    """
    if not overrides:
        return spec
    pins = dict(spec.pins)
    base = _compiled(spec.experiment, pins)
    merged = merge(base, overrides)
    faults_before = set(schema_faults(base))
    problems = [problem for problem in schema_faults(merged) if problem not in faults_before]
    if problems:
        raise SpecError(problems, at=_WHERE)
    data: Record = to_data(spec.experiment)
    paths = _here(base, merged)
    # A field may bring others along: a pod that restarts is tried again more often. So what is still wrong is put, too.
    for _ in range(2):
        problems = [_refusal(path) for path in paths if not _put(data, pins, path, _at(merged, path), spec.experiment)]
        if problems:
            raise SpecError(problems, at=_WHERE)
        experiment = from_data(data)
        paths = _here(_compiled(experiment, pins), merged)
    if paths:
        raise SpecError([_refusal(path) for path in paths], at=_WHERE)
    return replace(spec, experiment=experiment, lock=msgspec.structs.replace(spec.lock, ports=pins))


def _here(before: Values, after: Values) -> list[Steps]:
    """The paths of what differs and can be seen on this machine."""
    # An empty map takes the default away, where there is one.
    is_same = not sub(after, "defaults", "env")
    paths = [path for path in _changed(before, after, ()) if not _is_of_cluster(path)]
    return [path for path in paths if not (is_same and path[-1] == "env" and not _at(after, path))]


def _compiled(experiment: Experiment, pins: Mapping[str, int]) -> Values:
    return compile_values(experiment, allocate(experiment, pins))


def _refusal(path: Steps) -> Problem:
    what = f"{'.'.join(path)} cannot be set for processes of this machine"
    return Problem(what=what, path=".".join(path), next="set it in the spec")


def _changed(before: object, after: object, path: Steps) -> Iterator[Steps]:
    """The paths of all that differs; a list is one value, and no variables are an empty map of them."""
    if path[-1:] == ("env",) and (before or after):
        before, after = before or {}, after or {}
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _changed(before.get(key), after.get(key), (*path, str(key)))
    elif _as_text(before) != _as_text(after):
        yield path


def _as_text(value: object) -> object:
    """A number or boolean as the text that the chart prints."""
    return value if value is None or isinstance(value, (dict, list)) else scalar(value)


def _at(values: object, path: Steps) -> object:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values


def _is_of_cluster(path: Steps) -> bool:
    match path:
        case ("defaults", "env", *_):
            return False
        case ("groups", _, "containers", _, key, *_):
            return key in _OF_CONTAINER
        case ("groups", _, key, *_):
            return key in _OF_GROUP
        case ("services", _, key, *_):
            return key in _OF_SERVICE
        case (key, *_):
            return key in _CLUSTER_ONLY
    return False


def _put(data: Record, pins: dict[str, int], path: Steps, value: object, experiment: Experiment) -> bool:
    """Whether the value at `path` has a field, which then holds it."""
    match path:
        case ("groups", group, key) if key in _POD_FIELDS and value is not None:
            field, convert = _POD_FIELDS[key]
            _pod(data, group)[field] = convert(value)
        case ("groups", group, "containers", name, key) if key in _PROCESS_FIELDS:
            field, convert = _PROCESS_FIELDS[key]
            process = _process(data, group, name)
            _set(process, field, None if value is None else convert(value))
            if key in ("command", "args"):
                # Shell lines became this command; it is said in full now.
                for lines in ("cmds", "preamble", "shell"):
                    process.pop(lines, None)
        case ("groups", group, "containers", name, "env", variable) if not isinstance(value, dict):
            env = _process(data, group, name).setdefault("env", {})
            _set(env, variable, None if value is None else scalar(value))
        case ("services", service, "port") if value is not None and _is_free(experiment, service):
            pins[service] = int(scalar(value))
        case ("configs", name, "text") if value is not None and name in sub(data, "configs"):
            data["configs"][name]["text"] = scalar(value)
        case ("doneWhen",):
            data["done_when"] = texts(value)
        case _:
            return False
    return True


def _set(record: Record, field: str, value: object) -> None:
    if value is None:
        record.pop(field, None)
    else:
        record[field] = value


def _pod(data: Record, group: str) -> Record:
    data_of_pod = sub(data, "groups", group) or sub(data, "processes", group)
    if not data_of_pod:
        raise SpecError.one(
            f'there is no group "{group}"', f"groups.{group}", "add it to the spec", "--set or --values"
        )
    return data_of_pod


def _process(data: Record, group: str, name: str) -> Record:
    pod = _pod(data, group)
    data_of_process = sub(pod, "processes", name) if "processes" in pod else pod if name == group else {}
    if not data_of_process:
        path = f"groups.{group}.containers.{name}"
        raise SpecError.one(f'group "{group}" has no process "{name}"', path, "add it to the spec", _WHERE)
    return data_of_process


def _is_free(experiment: Experiment, service: str) -> bool:
    """Whether the port of a service is given out, not fixed by the process that listens there."""

    def fixed(ports: Mapping[str, int | None]) -> bool:
        return bool(ports.get(service))

    processes: Sequence[Any] = [
        *experiment.processes.values(),
        *(process for group in experiment.groups.values() for process in group.processes.values()),
    ]
    return not any(fixed(process.binds) or fixed(process.exposes) for process in processes)
