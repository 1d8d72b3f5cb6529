"""Validate an experiment and convert its overlays to fields."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import join
from symphony_charts.spec.checks.names import (
    env_faults,
    name_faults,
    reference_faults,
    symph_reference_faults,
    with_clean_names,
)
from symphony_charts.spec.checks.pods import ProcessEntry, entries_of, image_faults, pod_faults, resource_faults
from symphony_charts.spec.checks.services import chart_faults, network_faults, storage_faults
from symphony_charts.spec.json_schema import added_kind
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.overlays import with_overlays_as_fields, written_at
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.sources import EnvValue
from symphony_charts.spec.workload import ADDED_KINDS

_Runs = TypeVar("_Runs", Process, Step)
# Larger integers are inexact in JSON as helm and browsers read it.
_LARGEST_INTEGER = 2**53
# An environment cannot hold NUL, and no encoding a lone surrogate. Helm's toJson fails on DEL and C1 controls. These
# and U+FFFE and U+FFFF are refused by the API server's server-side apply, which Helm 4 and Argo CD use.
_FORBIDDEN = re.compile("[\0\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_FORBIDDEN_JSON = re.compile(rb"\\u0000|\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")


def finish(exp: Experiment, *, for_cluster: bool = False) -> Experiment:
    """Return `exp` checked, with sanitised names, the owner's prefix, and overlays converted to fields.

    `for_cluster` adds requirements of clusters, such as an image for each process. Idempotent.
    Raises SpecError with all faults at once.
    """
    written, problems = with_clean_names(exp)
    experiment = with_overlays_as_fields(written)
    if experiment.env and not list(env_faults(experiment, [])):
        experiment = with_env(experiment, experiment.env)
    problems += name_faults(experiment)
    entries = entries_of(experiment)
    if not entries:
        problems.append(Problem("the experiment has no process", "processes", "add one"))
    for check in _CHECKS:
        problems += check(experiment, entries)
    if for_cluster:
        problems += image_faults(experiment, entries)
        if experiment.workload.kind in ADDED_KINDS:
            problems += added_kind(experiment.workload.kind).cluster_faults(experiment)
    if problems:
        raise SpecError(problem.moved_to(written_at(written, problem.path)) for problem in problems)
    return experiment


def with_env(experiment: Experiment, env: Mapping[str, EnvValue]) -> Experiment:
    """Return `experiment` with `env` in every process and step that has no variable of that name."""

    def below(members: Mapping[str, _Runs]) -> dict[str, _Runs]:
        return {name: msgspec.structs.replace(one, env={**env, **one.env}) for name, one in members.items()}

    groups = {
        name: msgspec.structs.replace(group, processes=below(group.processes))
        for name, group in experiment.groups.items()
    }
    processes, steps = below(experiment.processes), below(experiment.prepare)
    return msgspec.structs.replace(experiment, env={}, groups=groups, processes=processes, prepare=steps)


def _text_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield characters that a format cannot represent, and overlay values that are not plain data."""
    overlays = {f"{entry.path}.container_overlay": entry.process.container_overlay for entry in entries}
    overlays |= {f"{pod.path}.pod_overlay": pod.settings.pod_overlay for pod in pods_of(experiment).values()}
    overlays |= {
        f"prepare.{name}.container_overlay": step.container_overlay for name, step in experiment.prepare.items()
    }
    for path, overlay in overlays.items():
        yield from _overlay_faults(overlay, path)
    if _may_hold_forbidden(experiment):
        yield from _character_faults(experiment)


def _may_hold_forbidden(experiment: Experiment) -> bool:
    """Search the encoded experiment as a whole, which is faster than a walk."""
    try:
        return _FORBIDDEN_JSON.search(msgspec.json.encode(experiment)) is not None
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return True


def _character_faults(experiment: Experiment) -> Iterator[Problem]:
    # Values of other types are faults of their own.
    for path, value in _values(msgspec.to_builtins(experiment, enc_hook=str), ""):
        if isinstance(value, str) and (character := _FORBIDDEN.search(value)):
            what = f"a spec cannot contain the character U+{ord(character[0]):04X}"
            next_step = "use another character, or keep the text in a file (`configs: {name: {file: ...}}`)"
            yield Problem(what, path, next_step)
        for key in value if isinstance(value, dict) else ():
            if isinstance(key, str) and _FORBIDDEN.search(key):
                yield Problem(f"the key {key!r} contains a character that a spec cannot contain", path, "rename it")


def _overlay_faults(overlay: object, overlay_path: str) -> Iterator[Problem]:
    for path, value in _values(overlay, overlay_path):
        if value is None:
            yield Problem("an overlay cannot contain null", path, "remove the key: an overlay only adds and replaces")
        elif isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            yield Problem(f"{value} is above 2^53, and JSON would round it", path, "write it as text, in quotes")
        elif isinstance(value, float) and not math.isfinite(value):
            yield Problem(f"{value} is not a JSON number", path, "write it as text, in quotes")
        elif not isinstance(value, (str, int, float, dict, list, tuple)):
            what = f"{type(value).__name__} cannot be written as YAML"
            yield Problem(what, path, "use texts, numbers, lists and maps")
        for key in value if isinstance(value, dict) else ():
            if not isinstance(key, str):
                yield Problem(f"the key {key!r} is not text", path, "write it in quotes")


def _values(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield `value` and all values inside it, each with its path."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, join(path, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _values(item, join(path, index))


_CHECKS = (
    chart_faults,
    network_faults,
    reference_faults,
    pod_faults,
    resource_faults,
    env_faults,
    symph_reference_faults,
    storage_faults,
    _text_faults,
)
