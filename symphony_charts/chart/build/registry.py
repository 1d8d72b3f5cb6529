"""The builders of charts by the word in the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.build.appwrapper import AppWrapper
from symphony_charts.chart.build.draft import Kind, Peers
from symphony_charts.chart.build.jobset import Jobs, JobSet
from symphony_charts.chart.build.volcano import Volcano
from symphony_charts.kinds.registry import ADDED, compat_kind
from symphony_charts.system.launching import EntryPoint


def _class_of(value: type[Any] | str) -> Any:
    return EntryPoint("", value, "the package").load() if isinstance(value, str) else value


KINDS: Mapping[str, type[Kind]] = {
    **{kind.name: kind for kind in (Jobs, JobSet, AppWrapper, Volcano)},
    **{name: _class_of(kind.builder) for name, kind in ADDED.items() if kind.builder},
}


def peers_of(compat: str | None) -> Peers:
    """Return the builder of the additions of `compat`."""
    kind = compat_kind(compat)
    peers: Peers = _class_of(kind.peers)() if kind and kind.peers else Peers()
    return peers
