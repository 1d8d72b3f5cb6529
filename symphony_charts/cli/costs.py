"""What experiments have used, for the verbs that tell it: time, and money where prices are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.backend.cost import amount_of
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.cli import output
from symphony_charts.formats.age import age

__all__ = ["used_columns", "with_costs"]


def with_costs(watcher: Watcher, statuses: Sequence[ExperimentStatus]) -> list[ExperimentStatus]:
    """The statuses with what they cost; on this machine they have it already, by the price of their plan."""
    if watcher.backend != "kube" or not statuses:
        return list(statuses)
    # Placement takes 100 ms to import, which `symph ls` on this machine has not.
    from symphony_charts.cli.node_costs import with_node_costs

    return with_node_costs(watcher, statuses)


def used_columns(items: Sequence[Mapping[str, object]]) -> list[output.Column]:
    """Columns of the keys `seconds` and `cost`, each where an item has something to say that others do not."""
    columns = [output.Column("TOOK", _took)] if any(item["ended"] for item in items) else []
    return [*columns, output.Column("COST", _cost)] if any(map(_cost, items)) else columns


def _took(item: Mapping[str, object]) -> str:
    seconds = item["seconds"]
    return age(seconds) if isinstance(seconds, float) else ""


def _cost(item: Mapping[str, object]) -> str:
    cost = item["cost"]
    return amount_of(cost) if isinstance(cost, dict) else ""
