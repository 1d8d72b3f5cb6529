"""A push has a state between its attempts, and a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from symphony_charts.errors import Conflict
from symphony_charts.gitops.operations.base import Change
from symphony_charts.gitops.store.git_objects import Edits

__all__ = ["PushResult", "Run", "all_edits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """The result of operations: the commit that holds their changes, and the answer to each, in order.

    `commit` is None when there was nothing to do; `moved` counts how often the tip moved in between, `paths` the files
    that changed. `was_lost` says that the server had taken the commit although its answer never came. `heard` is what
    the server said with its yes, line by line.
    """

    commit: str | None
    changes: tuple[Change, ...]
    paths: int = 0
    moved: int = 0
    seconds: float = 0.0
    was_lost: bool = False
    edits: Edits = field(default_factory=dict)
    heard: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """One attempt after another: what was sent, what the server said last, and until when to try.

    `sent` holds all commits that the server may have got, `arrived` the one that it has.
    """

    deadline: float
    time: int
    moved: int = 0
    sent: set[str] = field(default_factory=set)
    base: str = ""
    silent_since: float | None = None
    tries: int = 0
    is_anew: bool = False
    is_told: bool = False
    arrived: str = ""


def all_edits(changes: Iterable[Change]) -> dict[str, bytes | None]:
    """Return all edits; no two operations of one commit may edit one path."""
    edits: dict[str, bytes | None] = {}
    for change in changes:
        twice = next((path for path in change.edits if path in edits and edits[path] != change.edits[path]), None)
        if twice is not None:
            raise Conflict(f"two operations change {twice}", next="make them one after the other")
        edits.update(change.edits)
    return edits
