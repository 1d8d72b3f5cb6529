"""The experiment that a chart was made from, kept in the chart as ``experiment.yaml`` beside its configuration files.

Verbs that read a chart from disk or Git build its trees again from this file, so they render it without Helm. They do
so only if the same templates come out: a forked or edited chart, or one of another version, is left to Helm.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from symphony_charts.chart.build.chart import BuiltChart, build
from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import to_record, to_yaml
from symphony_charts.spec.model import Experiment, LocalSettings, Process
from symphony_charts.spec.services import Service, allocate
from symphony_charts.spec.shells import DEFAULT_SHELL
from symphony_charts.spec.sources import key_of

ORIGIN = "experiment.yaml"


def origin_text(experiment: Experiment, services: Iterable[Service]) -> bytes:
    """Return the file for a finished experiment: its ports are fixed, and nothing of this machine is in it."""
    ports, configs = {service.name: service.port for service in services}, experiment.configs
    portable = replace(
        experiment,
        groups={
            name: replace(group, processes={key: _portable(one, ports) for key, one in group.processes.items()})
            for name, group in experiment.groups.items()
        },
        processes={name: _portable(process, ports) for name, process in experiment.processes.items()},
        configs={name: replace(file, text=None, base64=None, file=f"files/{name}") for name, file in configs.items()},
        secrets=[replace(secret, file=key_of(secret), key=None) for secret in experiment.secrets],
        placement=replace(experiment.placement, pools=None),
        local=LocalSettings(),
    )
    return to_yaml(portable).encode()


def _portable(process: Process, ports: Mapping[str, int]) -> Process:
    fixed = {key: {name: ports[name] for name in getattr(process, key)} for key in ("binds", "exposes")}
    # Without them only lines of `local` need it.
    shell = process.shell if process.cmds or process.preamble else DEFAULT_SHELL
    return replace(process, **fixed, shell=shell, assign_to=None, local=None)


def open_chart(files: Mapping[str, bytes], at: str) -> BuiltChart:
    """Return the trees of the chart with these files, which is at `at`.

    Raises SpecError if the chart has no ``experiment.yaml``, or its templates are not those of the experiment.
    """
    if ORIGIN not in files:
        step = "publish the experiment again, or render the chart with helm"
        raise SpecError.one(f"the chart has no {ORIGIN}, so symph did not make it", at, step)
    written = to_record(load(files[ORIGIN].decode("utf-8", "replace")))
    experiment = finish(_with_files(written, files), for_cluster=True)
    chart = build(experiment, allocate(experiment)).with_values(_values(files))
    made = {f"templates/{name}": text.encode() for name, text in chart.texts().items()}
    changed = sorted(path for path, text in made.items() if files.get(path) != text)
    if changed:
        what = f"{', '.join(changed)}: edited, or made by another version of symph"
        raise SpecError.one(what, at, "render the chart with helm, or publish the experiment again")
    return chart


def _with_files(experiment: Experiment, files: Mapping[str, bytes]) -> Experiment:
    missing = [file.file for file in experiment.configs.values() if file.file not in files]
    if missing:
        raise SpecError.one(f"the chart has no {', '.join(map(str, missing))}", next="publish the experiment again")
    contents = {name: base64.b64encode(files[str(file.file)]).decode() for name, file in experiment.configs.items()}
    return replace(
        experiment,
        configs={name: replace(file, base64=contents[name], file=None) for name, file in experiment.configs.items()},
    )


def _values(files: Mapping[str, bytes]) -> dict[str, Any]:
    values = load(files.get("values.yaml", b"").decode("utf-8", "replace"))
    if not isinstance(values, dict) or not values.get("specDigest"):
        raise SpecError.one("values.yaml has no specDigest", next="publish the experiment again")
    return values
