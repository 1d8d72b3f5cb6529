"""The kinds of workload that integrations and other packages add, as far as the spec needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, cast

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import Record
from symphony_charts.spec.workload import ADDED_KINDS, Workload
from symphony_charts.system.installation import entry_points


class AddedKind(Protocol):
    """The part of a kind that reads and checks its settings. `symphony_charts.kinds.base.Kind` has the defaults."""

    settings: type[Record]
    short_forms: Mapping[str, Sequence[dict[str, Any]]]

    def expanded(self, settings: dict[str, object]) -> dict[str, object]:
        """Return the settings as they are written, with short forms expanded."""
        ...

    def with_clean_names(self, settings: Any) -> Record:
        """Return the settings with sanitised names of groups and processes."""
        ...

    def faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return the faults of its settings, whatever kind the experiment has."""
        ...

    def cluster_faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return what it cannot run of an experiment of this kind."""
        ...


@cache
def added_kind(name: str) -> AddedKind:
    """Return an added kind.

    Raises:
        ToolFailed: The package that adds it cannot be loaded.
    """
    return cast("AddedKind", entry_points("symph.kinds")[name].load())


def used_kinds(workload: Workload) -> dict[str, AddedKind]:
    """Return the added kinds that a workload has settings of."""
    return {name: added_kind(name) for name in ADDED_KINDS if workload.written(name)}


def settings_record(record: type, field: str) -> type[Record] | None:
    """Return the record that decodes a field of `record`; None unless it holds the settings of an added kind."""
    return added_kind(field).settings if record is Workload and field in ADDED_KINDS else None


def decoded(experiment: Experiment) -> Experiment:
    """Return the experiment with the settings of added kinds as their records write them: without defaults.

    Raises:
        msgspec.ValidationError: A setting has another type than its record wants.
    """
    workload = experiment.workload
    for name, kind in used_kinds(workload).items():
        workload = workload.with_settings(name, workload.settings(name, kind.settings))
    return experiment if workload is experiment.workload else msgspec.structs.replace(experiment, workload=workload)
