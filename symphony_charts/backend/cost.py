"""`Cost` says what an experiment has cost so far, by listed prices; what has none is named, and never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Cost", "amount_of", "sum_of", "to_data"]

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars so far (`total`), and an hour while all of it runs, of all that has a price; `unpriced` names the rest.

    `source` completes the amount for people: ``as planned on pools.yaml``, ``for 2 nodes``.
    """

    total: float
    per_hour: float
    source: str
    unpriced: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """``$0.41 as planned on pools.yaml``, and what has no price."""
        amount = amount_of(to_data(self))
        parts = [f"{amount} {self.source}"] if amount else []
        parts += [f"no price: {', '.join(self.unpriced)}"] if self.unpriced else []
        return "; ".join(parts)


def to_data(cost: Cost | None) -> dict[str, Any] | None:
    """A cost as JSON types; None where nobody knows any prices."""
    if cost is None:
        return None
    return {
        "currency": "USD",
        "total": round(cost.total, 6),
        "perHour": cost.per_hour,
        "source": cost.source,
        "noPrice": list(cost.unpriced),
    }


def amount_of(data: Data | None) -> str:
    """``$0.41``; ``$0.41+`` beside what has no price, and nothing where all of it has none."""
    if data is None or not data["perHour"]:
        return ""
    shown = f"${data['total']:.2f}" if data["total"] >= 0.005 else "<$0.01"
    return f"{shown}+" if data["noPrice"] else shown


def sum_of(costs: Iterable[Data | None]) -> dict[str, Any] | None:
    """What all of these cost together; None where of none a cost is known."""
    known = [cost for cost in costs if cost is not None]
    if not known:
        return None
    sums = {key: round(sum(cost[key] for cost in known), 6) for key in ("total", "perHour")}
    missing = dict.fromkeys(text for cost in known for text in cost["noPrice"])
    sources = dict.fromkeys(cost["source"] for cost in known)
    return {"currency": "USD", **sums, "source": "; ".join(sources), "noPrice": list(missing)}
