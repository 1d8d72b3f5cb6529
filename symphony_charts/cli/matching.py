"""`choose` finds the experiment or process that a loosely written name means; it asks where somebody can answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from symphony_charts.cli import output
from symphony_charts.errors import NotFound, UsageError

__all__ = ["Backend", "choose", "choose_experiment"]


class Backend(Protocol):
    """What the parser itself asks of a cluster; verbs use the full protocol of `symphony_charts.clusters`."""

    def fuzzy_match_experiment(self, name: str) -> tuple[Sequence[str], bool]:
        """The experiments that `name` may mean, best first, and whether it is an exact match."""


def choose_experiment(cluster: Backend, name: str) -> str:
    """The experiment that `name` means on this cluster, matched in Symphony's order.

    Raises NotFound if nothing fits; UsageError, listing them, if several do and there is no terminal.
    """
    matches, is_exact = cluster.fuzzy_match_experiment(name)
    if is_exact and matches:
        return matches[0]
    return choose(matches, name, "experiment")


def choose(matches: Sequence[str], name: str, noun: str) -> str:
    """One of `matches`, none of which is exactly `name`: the only one with a warning, or what the user picks."""
    if not matches:
        raise NotFound(f'no {noun} matches "{name}"', "", "symph ls shows all experiments")
    if len(matches) == 1:
        output.note(f'no {noun} is called "{name}"; taking {matches[0]}')
        return matches[0]
    if not output.can_ask():
        raise UsageError(f'"{name}" fits several: {", ".join(matches)}', "", f"write the {noun}'s whole name")
    for index, match in enumerate(matches):
        output.note(f"{index}) {match}")
    sys.stderr.write(f"which {noun}? 0-{len(matches) - 1} (enter for none): ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not (answer.isascii() and answer.isdigit() and int(answer) < len(matches)):
        raise UsageError(f"no {noun} was chosen")
    return matches[int(answer)]
