"""Experiments are written and read in the form that Symphony dumped them (``experiment.yaml``).

What that form cannot hold stands under the key ``symph``, which Symphony's own readers ignore.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from symphony_charts.compat.kube_dump import container_yml, pod_yml
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import sanitize
from symphony_charts.importers.common.input_file import from_data
from symphony_charts.importers.common.report import Imported, Report
from symphony_charts.importers.symphony.importer import import_legacy
from symphony_charts.spec.builder import experiment as builder
from symphony_charts.spec.data import to_data, to_record
from symphony_charts.spec.model import Experiment

__all__ = [
    "NATIVE",
    "dump_experiment",
    "dump_group",
    "dump_process",
    "read_experiment",
    "read_group",
    "read_process",
    "report_of",
]

Data = dict[str, Any]
NATIVE = "symph"
_NOTHING: Mapping[str, object] = MappingProxyType({})
_USUAL_RANGE = ("port_range", "7000-8999")


def dump_experiment(exp: builder.ExperimentSpec, backend: str, addresses: Mapping[str, Mapping[str, object]]) -> Data:
    """The experiment as Symphony's `backend` (kube, tmux, subproc) dumped it, with the address book under ``ab``."""
    experiment = exp.finish()
    volumes = sub(exp.to_data(), "volumes")
    data: Data = {
        "process_groups": [dump_group(group, backend, volumes) for group in exp.list_process_groups()],
        "processes": [dump_process(process, backend, volumes) for process in exp.list_processes()],
        "name": exp.name,
        "ab": {name: dict(entry) for name, entry in addresses.items()},
    }
    if backend != "subproc":
        low, high = experiment.port_range
        data["port_range"] = f"{low}-{high}"
    if backend == "tmux":
        data["start_dir"] = experiment.local.cwd or "."
        data["preamble_cmds"] = list(experiment.local.preamble)
    if backend == "kube":
        data["secrets"] = [secret.file for secret in experiment.secrets]
    if _differs(data, experiment):
        data[NATIVE] = to_data(experiment)
    return data


def dump_group(group: builder.ProcessGroupSpec, backend: str, volumes: Mapping[str, object] = _NOTHING) -> Data:
    """A group in the same form; `volumes` are those that its experiment declares."""
    data: Data = {
        "processes": [dump_process(process, backend, volumes) for process in group.list_processes()],
        "name": group.name,
    }
    if backend == "tmux":
        data |= {"start_dir": ".", "preamble_cmds": []}
    elif backend == "kube":
        containers = [one["container_yml"] for one in data["processes"]]
        data["pod_yml"] = pod_yml(group.name, group.to_data(), containers)
    return data


def dump_process(process: builder.ProcessSpec, backend: str, volumes: Mapping[str, object] = _NOTHING) -> Data:
    """A process in the same form; Symphony's local backends lost `env`, which is there where it says something."""
    fields = process.to_data()
    cmds = fields.get("cmds", [])
    lines = [cmds] if isinstance(cmds, str) else list(cmds if isinstance(cmds, list) else [])
    data: Data = {
        "name": process.name,
        "binded_services": process.binded_services,
        "connected_services": process.connected_services,
        "exposed_services": process.exposed_services,
    }
    if backend == "kube":
        container = container_yml(process.name, fields, volumes)
        data |= {"container_image": process.container_image, "standalone": process.group is None}
        data["container_yml"] = container
        if process.group is None:
            data["pod_yml"] = pod_yml(process.name, fields, [container])
        return data
    if backend == "tmux":
        data |= {"start_dir": fields.get("cwd") or ".", "cmds": lines}
    else:
        data["cmd"] = "\n".join(map(str, lines))
    if fields.get("env"):
        data["env"] = fields["env"]
    return data


def read_experiment(data: Mapping[str, object]) -> Experiment:
    """The experiment of a dump, Symphony's or ours; also of this package's own form. Raises SpecError."""
    if isinstance(data.get(NATIVE), dict):
        return to_record(data[NATIVE])
    if "process_groups" not in data and not isinstance(data.get("processes"), list):
        return to_record(dict(data))
    result: Data = to_data(_imported(data).experiment)
    for where, envs in _envs(data):
        holder = result["groups"][where[0]] if len(where) == 2 else result
        holder["processes"][where[-1]]["env"] = envs
    return to_record(result)


def report_of(dump: Mapping[str, object]) -> Report:
    """What of a dump's pods, as Symphony made them, ours say otherwise."""
    if NATIVE in dump:
        return Report(unproven="Symphony's pods: it says more than Symphony's dumps hold")
    return _imported(dump).report


def _imported(data: Mapping[str, object]) -> Imported:
    # The address book is computed again, and the usual range is what an experiment has anyway.
    plain = {key: value for key, value in data.items() if key != "ab" and (key, value) != _USUAL_RANGE}
    return import_legacy(from_data(_without_env(plain), str(data.get("name", "dump"))))


def read_process(data: Mapping[str, object]) -> tuple[str, Data]:
    """The name and fields of a process that was dumped by itself."""
    ((name, fields),) = _alone(processes=[dict(data)])["processes"].items()
    return name, fields


def read_group(data: Mapping[str, object]) -> tuple[str, Data, Data]:
    """The name of a group that was dumped by itself, the fields of its processes, and its own."""
    ((name, fields),) = _alone(process_groups=[dict(data)])["groups"].items()
    return name, fields.pop("processes"), fields


def _alone(**parts: object) -> Data:
    return to_data(read_experiment({"name": "dump", "process_groups": [], "processes": [], **parts}))


def _differs(data: Data, experiment: Experiment) -> bool:
    """Whether reading `data` gives anything else than `experiment`."""
    try:
        return to_data(read_experiment(data)) != to_data(experiment)
    except SpecError:
        return True


def _without_env(data: object) -> object:
    """The importer reads Symphony's own keys; `env` of a process is ours."""
    if isinstance(data, dict):
        return {
            key: _without_env(value) for key, value in data.items() if key != "env" or "binded_services" not in data
        }
    return [_without_env(item) for item in data] if isinstance(data, list) else data


def _envs(data: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Data]]:
    """The environments in a dump, by (group, process) or (process,)."""
    envs: list[tuple[tuple[str, ...], Data]] = []
    for process in data.get("processes") or []:
        if process.get("env"):
            envs.append(((process["name"],), process["env"]))
    for group in data.get("process_groups") or []:
        for process in group.get("processes") or []:
            if process.get("env"):
                envs.append(((sanitize(group["name"]), sanitize(process["name"])), process["env"]))
    return envs
