"""Read what Symphony dumped (``experiment.yaml``), and dump experiments.

The tmux backend dumps Symphony's form if that form holds everything that was set. Every other dump has the form of this
package's experiment files, with the addresses of an experiment under ``ab``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symphony_charts.errors import SpecError
from symphony_charts.importers.input_file import from_data
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.spec.builder import experiment as builder
from symphony_charts.spec.data import to_data, to_record
from symphony_charts.spec.model import Experiment

__all__ = ["dump_experiment", "dump_group", "dump_process", "read_experiment", "read_group", "read_process"]

Data = dict[str, Any]
_USUAL_RANGE = ("port_range", "7000-8999")


def dump_experiment(exp: builder.ExperimentSpec, backend: str, addresses: Mapping[str, Mapping[str, object]]) -> Data:
    """Return the experiment as `backend` dumps it, with the address book under ``ab``."""
    experiment = exp.finish()
    book = {name: dict(entry) for name, entry in addresses.items()}
    low, high = experiment.port_range
    data: Data = {
        "process_groups": [_symphonys_group(group) for group in exp.list_process_groups()],
        "processes": [_symphonys_process(process) for process in exp.list_processes()],
        "name": exp.name,
        "ab": book,
        "port_range": f"{low}-{high}",
        "start_dir": experiment.local.cwd or ".",
        "preamble_cmds": list(experiment.local.preamble),
    }
    if backend == "tmux" and _holds(data, to_data(experiment)):
        return data
    return {**to_data(experiment), "ab": book}


def dump_group(group: builder.ProcessGroupSpec, backend: str) -> Data:
    """Return a group as `backend` dumps it."""
    data, own = _symphonys_group(group), group.to_data()
    if backend == "tmux" and _holds({"process_groups": [data]}, {"groups": {group.name: own}}):
        return data
    return {"name": group.name, **own}


def dump_process(process: builder.ProcessSpec, backend: str) -> Data:
    """Return a process as `backend` dumps it."""
    data, own = _symphonys_process(process), process.to_data()
    if backend == "tmux" and _holds({"processes": [data]}, {"processes": {process.name: own}}):
        return data
    return {"name": process.name, "standalone": process.standalone, **own}


def read_experiment(data: Mapping[str, object]) -> Experiment:
    """Return the experiment of a dump, which is Symphony's or this package's. Raises SpecError."""
    plain = {key: value for key, value in data.items() if key != "ab"}
    if "process_groups" not in plain and not isinstance(plain.get("processes"), list):
        return to_record(plain)
    # The address book is computed again, and the usual range is the default.
    symphonys = {key: value for key, value in plain.items() if (key, value) != _USUAL_RANGE}
    return import_legacy(from_data(symphonys, str(data.get("name", "dump")))).experiment


def read_process(data: Mapping[str, object]) -> tuple[str, Data]:
    """Return the name and the fields of a process that was dumped by itself."""
    if "binded_services" in data:
        ((name, fields),) = _alone(processes=[dict(data)])["processes"].items()
        return name, fields
    return str(data["name"]), {key: value for key, value in data.items() if key not in ("name", "standalone")}


def read_group(data: Mapping[str, object]) -> tuple[str, Data, Data]:
    """Return the name of a group that was dumped by itself, the fields of its processes, and its own."""
    if isinstance(data.get("processes"), list):
        ((name, fields),) = _alone(process_groups=[dict(data)])["groups"].items()
    else:
        name, fields = str(data["name"]), {key: value for key, value in data.items() if key != "name"}
    return name, fields.pop("processes"), fields


def _symphonys_group(group: builder.ProcessGroupSpec) -> Data:
    processes = [_symphonys_process(process) for process in group.list_processes()]
    return {"processes": processes, "name": group.name, "start_dir": ".", "preamble_cmds": []}


def _symphonys_process(process: builder.ProcessSpec) -> Data:
    fields = process.to_data()
    cmds = fields.get("cmds", [])
    return {
        "name": process.name,
        "binded_services": process.binded_services,
        "connected_services": process.connected_services,
        "exposed_services": process.exposed_services,
        "start_dir": fields.get("cwd") or ".",
        "cmds": [cmds] if isinstance(cmds, str) else list(cmds if isinstance(cmds, list) else []),
    }


def _alone(**parts: object) -> Data:
    return to_data(read_experiment({"name": "dump", "process_groups": [], "processes": [], **parts}))


def _holds(dump: Data, own: Data) -> bool:
    """Return True if reading `dump`, in Symphony's form, gives all of `own`."""
    try:
        return _alone(**dump) == to_data(to_record({"name": "dump", **own}))
    except SpecError:
        return False
