"""Chart values on this machine: apply the values of `-f` and `--set` for processes to the experiment.

Processes here use replicas, retries, commands, arguments, variables and ports. All other values are for a cluster only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from symphony_charts.chart.build.chart import build
from symphony_charts.chart.evaluate import printed
from symphony_charts.chart.release import merge_values
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import allocate

Record: TypeAlias = dict[str, Any]

_WHERE = "--set or --values"
_SEEN = ("command", "args", "env")


def under_values(spec: SpecFile, overrides: Values) -> SpecFile:
    """Return `spec` under `overrides`. Raises SpecError if the chart or a process here cannot have a value."""
    if not overrides:
        return spec
    services = allocate(spec.experiment, spec.pins)
    chart = build(spec.experiment, services)
    try:
        values = merge_values(ValuesSchema(chart), overrides)
    except SpecError as error:
        raise SpecError(error.problems, at=_WHERE) from error
    base, pins, data = dict(chart.values), dict(spec.pins), to_data(spec.experiment)
    problems: list[Problem] = []
    for name in chart.draft.groups:
        problems += _put_group(data, name, sub(base, "groups", name), sub(values, "groups", name))
    if problems:
        raise SpecError(problems, at=_WHERE)
    for service in services:
        port = int(sub(values, "services", service.name)["port"])  # type: ignore[call-overload]  # the schema has checked it
        if port != service.port:
            pins[service.name] = port
            process = _process(data, *service.listener)
            for field in ("binds", "exposes"):
                # Do not pin a port that the spec fixes.
                if process.get(field, {}).get(service.name) is not None:
                    process[field][service.name] = port
    _put_workload(data, sub(base, "workload"), sub(values, "workload"))
    return replace(spec, experiment=from_data(data), lock=msgspec.structs.replace(spec.lock, ports=pins))


def _put_group(data: Record, name: str, base: Values, group: Values) -> Iterator[Problem]:
    """Put the values of a group into `data`; yield a problem for each that processes here cannot have."""
    pod = _pod(data, name)
    if group["replicas"] != base["replicas"]:
        pod["replicas"] = group["replicas"]
        # Only a cluster uses it, and it may exceed the new number of replicas.
        pod.pop("min_replicas", None)
    if group.get("retries") != base.get("retries"):
        pod["retries"] = group["retries"]
    for step in data.get("prepare", {}):
        before, after = sub(base, "initContainers", step), sub(group, "initContainers", step)
        changed = [key for key in _SEEN if after.get(key) != before.get(key)]
        if changed:
            path = f"groups.{name}.initContainers.{step}.{changed[0]}"
            way = f"set it for all groups: --spec-set prepare.{step}.{changed[0]}=..."
            yield Problem(what=f"local runs cannot set {path} for a single group", path=path, next=way)
    for process, values in sub(group, "containers").items():
        path = f"groups.{name}.containers.{process}"
        yield from _put_process(_process(data, name, process), sub(base, "containers", process), values, path)


def _put_process(process: Record, base: Values, values: Any, path: str) -> Iterator[Problem]:
    """Put the values of the process at `path` into its data; yield a problem for each variable of the cluster."""
    if any(values[key] != base[key] for key in ("command", "args")):
        # The command of the values replaces shell lines.
        for lines in ("cmds", "preamble", "shell"):
            process.pop(lines, None)
        process.update({key: [printed(word) for word in values[key]] for key in ("command", "args")})
    before, env = sub(base, "env"), process.setdefault("env", {})
    for variable in before.keys() - values["env"].keys():
        env.pop(variable, None)
    for variable, value in values["env"].items():
        if isinstance(value, Mapping) and value != before.get(variable):
            what = f"the value of {variable} comes from the cluster, and a local run has none"
            yield Problem(what=what, path=f"{path}.env.{variable}", next="set it to a text")
        elif value != before.get(variable):
            env[variable] = printed(value)


def _put_workload(data: Record, base: Values, values: Values) -> None:
    """Apply the common retries, and Argo's parameters, which are variables of processes here."""
    if values.get("retries") != base.get("retries"):
        data["workload"]["retries"] = values["retries"]
    parameters = sub(values, "parameters")
    for pod in [*data.get("groups", {}).values(), data]:
        for process in pod.get("processes", {}).values():
            env = process.get("env", {})
            env.update({name: printed(value) for name, value in parameters.items() if name in env})


def _pod(data: Record, name: str) -> Record:
    groups: Record = data.get("groups", {})
    return groups[name] if name in groups else data["processes"][name]  # type: ignore[no-any-return]  # data of JSON


def _process(data: Record, group: str, name: str) -> Record:
    pod = _pod(data, group)
    return pod["processes"][name] if "processes" in pod else pod
