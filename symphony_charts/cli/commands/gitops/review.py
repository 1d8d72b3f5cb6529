"""What a branch for review does to objects, as text to paste into a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.cli.commands.chart.comparison_text import markdown_of
from symphony_charts.errors import NotFound
from symphony_charts.gitops.diff.comparison import Side, compare_sides
from symphony_charts.gitops.diff.sides import Published
from symphony_charts.gitops.operations.base import Change
from symphony_charts.gitops.store.store import Store

__all__ = ["difference_text"]


def difference_text(before: Store, after: Store, changes: Sequence[Change]) -> str:
    """What the changes do to objects, as Markdown: each experiment as one branch runs it, and as the other does."""
    texts = []
    for change in changes:
        env, team, name = (str(change.facts.get(key) or "") for key in ("env", "team", "name"))
        if env and team and name:
            sides = [_side(store, env, team, name) for store in (before, after)]
            texts.append(markdown_of(compare_sides(sides[0], sides[1])))
    return "\n\n".join(texts)


def _side(store: Store, env: str, team: str, name: str) -> Side:
    try:
        return Published(store.at_tip(), team, name).in_environment(env)
    except NotFound:
        return Side(title=f"nothing in {env}", objects=())
