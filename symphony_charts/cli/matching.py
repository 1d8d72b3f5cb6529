"""Which experiment a loosely written name means, asking only where somebody can answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from symphony_charts.cli import output

__all__ = ["choose", "choose_experiment"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.cli.parser import Backend


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
    from symphony_charts.errors import NotFound, UsageError

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
