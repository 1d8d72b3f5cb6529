"""The table of kinds and the checks of a workload's settings are read from the chart's ``files``, as its templates do.

A pattern of names or a message stands once, in ``kinds.yaml`` or ``checks.yaml``; comments there say what each means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.yaml_text import load
from symphony_charts.system.package_data import chart_file

__all__ = ["Check", "Fault", "Row", "fill", "rows", "settings_faults", "variant_of"]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a kind cannot run: the path in the values, and the reason; both may hold ``{part}``."""

    path: str
    says: str

    def problem(self, **parts: str) -> Problem:
        """The fault with its parts."""
        return Problem(what=fill(self.says, parts), path=fill(self.path, parts))


class Check(Fault, frozen=True, forbid_unknown_fields=True):
    """Settings that do not go together: all facts of `when` hold, and all of no item of `unless`."""

    when: Mapping[str, tuple[str, ...]] = {}
    unless: tuple[Mapping[str, tuple[str, ...]], ...] = ()

    def finds(self, facts: Mapping[str, str]) -> bool:
        """Whether settings with these facts cannot be."""
        return _hold(self.when, facts) and not any(_hold(item, facts) for item in self.unless)


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``kinds.yaml`` says of a kind."""

    workload: str
    pod: str
    unit_length: int = msgspec.field(name="unit")
    member_length: int = msgspec.field(name="member")
    is_one_object: bool = msgspec.field(name="whole")
    resources: str
    has_pod_groups: bool = msgspec.field(name="podGroups")
    reads_queue: bool = msgspec.field(name="queues")
    index: str
    failures: str = ""
    restarts: str = ""
    domain: str
    is_scaled_live: bool = msgspec.field(name="live")
    fixed: frozenset[str] | None = None
    settings: tuple[str, ...] = ()
    selector: Mapping[str, str] = {}
    roles: tuple[str, ...] = ()
    port: str = ""
    checks: tuple[Check, ...] = ()
    faults: Mapping[str, Fault] = {}
    variants: Mapping[str, Mapping[str, Any]] = {}


@cache
def rows() -> Mapping[str, Row]:
    """The row of each kind by its name, in the order of the file."""
    table: Any = load(chart_file("files/kinds.yaml"))
    return {name: msgspec.convert({**table["usual"], **own}, Row) for name, own in table["kinds"].items()}


@cache
def variant_of(kind: str, operator: str) -> Row:
    """The row of a kind under a version of its controller; the same for every version that has no variant."""
    row = rows()[kind]
    own = row.variants.get(operator)
    return msgspec.convert({**msgspec.to_builtins(row), **own}, Row) if own else row


def settings_faults(kind: str, settings: Mapping[str, str], scheduler: str) -> Iterator[Problem]:
    """Which settings do not go together, with their paths in the values.

    `settings` are the texts of ``workload``: gang, gangVersion, queue, queuePriority; `scheduler` is that of all pods,
    if named.
    """
    row = rows().get(kind)
    facts = {name: settings.get(name) or "" for name in ("gangVersion", "queue", "queuePriority")}
    facts |= {"kind": kind, "gang": settings.get("gang") or "none", "scheduler": scheduler}
    facts["ownQueue"] = "true" if row and row.reads_queue else "false"
    for check in (*_checks(), *(row.checks if row else ())):
        if check.finds(facts):
            yield check.problem(**facts)


@cache
def _checks() -> tuple[Check, ...]:
    return msgspec.convert(load(chart_file("files/checks.yaml")), tuple[Check, ...])


def fill(pattern: str, parts: Mapping[str, str]) -> str:
    """`pattern` with a text for each ``{part}``; what has none stays."""
    for key, text in parts.items():
        pattern = pattern.replace(f"{{{key}}}", text)
    return pattern


def _hold(wanted: Mapping[str, tuple[str, ...]], facts: Mapping[str, str]) -> bool:
    return all(facts[name] in values for name, values in wanted.items())
