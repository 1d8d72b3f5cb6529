"""A comparison sets two renderings side by side: what differs, Argo CD's effect, and what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from symphony_charts.gitops.argocd.effect import Effect, Outcome, effect_of, effect_of_move, outcome_of
from symphony_charts.gitops.argocd.projects import is_one_cluster, place_key
from symphony_charts.gitops.diff.fields import Difference, compare
from symphony_charts.gitops.operations.pointer import place_of
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.settings.project import Destination

__all__ = ["Comparison", "Line", "Side", "compare_sides"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One rendering: what it is called, and its objects. `notes` say what the objects may not show.

    `destination` is where they run, of two sides between which something may move; None for what only is compared.
    """

    title: str
    objects: tuple[Mapping[str, object], ...]
    destination: Destination | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One object's difference with its effect."""

    difference: Difference
    effect: Effect
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole answer.

    `amounts` are requests of all pods before and after (CPU in millicores, memory in bytes, others counted).
    `move` is from where to where all of it moves, and whether it ends there; None if it stays.
    """

    before: str
    after: str
    lines: tuple[Line, ...]
    outcome: Outcome
    amounts: dict[str, tuple[int, int]]
    notes: tuple[str, ...] = field(default=())
    move: tuple[str, str, bool] | None = None

    @property
    def summary(self) -> str:
        """Return a sentence about what the change does."""
        if self.move:
            before, after, ends = self.move
            if ends:
                return f"everything ends in {before} and starts in {after}"
            return f"everything starts in {after}; in {before} it goes on until it is deleted there: retire it first"
        runs = [line.difference.name for line in self.lines if line.effect == "new run"]
        fails = [line.difference.name for line in self.lines if line.effect == "fails"]
        restarts = [line.difference.name for line in self.lines if line.effect == "restarted"]
        gone = [line.difference.name for line in self.lines if line.effect == "pruned"]
        parts = []
        if fails:
            parts.append(f"the sync fails at {', '.join(fails)}")
        if runs:
            parts.append(f"a new run: {', '.join(runs)} of before {_are(runs)} pruned, new ones start together")
        if restarts:
            parts.append(f"pods of {', '.join(restarts)} are replaced")
        if gone:
            parts.append(f"{', '.join(gone)} {_are(gone)} pruned")
        if not parts:
            return "nothing restarts" if any(line.effect != "nothing" for line in self.lines) else "nothing happens"
        return "; ".join([*parts, "nothing else restarts"] if not fails else parts)


def compare_sides(before: Side, after: Side) -> Comparison:
    """Return what changes from `before` to `after`. Raises SpecError for unreadable pods."""
    differences = compare(_kept(before.objects), _kept(after.objects))
    move = _move(before.destination, after.destination)
    lines = []
    for difference in differences:
        effect, why = effect_of(difference) if move is None else effect_of_move(difference, ends=move[2])
        lines.append(Line(difference=difference, effect=effect, why=why))
    totals = _totals(before.objects), _totals(after.objects)
    names = dict.fromkeys(["cpu", "memory", *totals[0], *totals[1]])
    return Comparison(
        before=before.title,
        after=after.title,
        lines=tuple(lines),
        outcome=outcome_of(differences) if move is None else "new run",
        amounts={name: (totals[0].get(name, 0), totals[1].get(name, 0)) for name in names if name != "pods"},
        notes=tuple(dict.fromkeys((*before.notes, *after.notes))),
        move=move,
    )


def _move(before: Destination | None, after: Destination | None) -> tuple[str, str, bool] | None:
    if before is None or after is None or place_key(before) == place_key(after):
        return None
    return place_of(before), place_of(after), is_one_cluster(before, after)


def _kept(objects: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Drop helm's test hooks, which Argo CD leaves out."""
    return [item for item in objects if "helm.sh/hook" not in str(item.get("metadata"))]


def _totals(objects: Iterable[Mapping[str, object]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for demand in demands_of(_kept(objects)):
        for name, amount in demand.shape.requests:
            totals[name] = totals.get(name, 0) + amount * demand.count
    return totals


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
