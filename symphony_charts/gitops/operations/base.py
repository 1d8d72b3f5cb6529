"""An operation asks the tip of a branch a question, and is answered by edits of its tree.

An operation says what changes in the tip that it is shown. It is asked again whenever the tip has moved, or when it
read what was not loaded yet, so it must depend on nothing else. It names the folders and files that it certainly looks
at, to be loaded in one go instead of one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.gitops.store.git_objects import Edits

__all__ = ["REASON", "Change", "Operation", "message_of"]

REASON = "Symph-Reason"
"""The trailer of a commit that says why, in its author's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change that an operation makes to the tip: `edits`, empty if nothing has to change.

    `subject` says it in a line; `trailers` say it to programs; `facts` are for the answer to the user.
    """

    subject: str
    edits: Edits = field(default_factory=dict)
    trailers: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


class Operation(Protocol):
    """A question to a tip."""

    def folders(self) -> Iterable[str]:
        """The folders it looks into, whose entries need their ids; those above them are loaded too."""

    def files(self, tip: Snapshot) -> Iterable[str]:
        """The files it reads, as far as they can be named once the folders are known."""

    def change(self, tip: Snapshot) -> Change:
        """Return the change. Raises Conflict, NotFound or SpecError."""


def message_of(changes: Iterable[Change], extra: Iterable[tuple[str, str]] = ()) -> str:
    """Return the message of the commit that makes `changes`: a subject, a line per change, trailers."""
    changes = list(changes)
    subjects = [change.subject for change in changes]
    head = subjects[0] if len(subjects) == 1 else f"{subjects[0].partition(' ')[0]} {len(subjects)} charts"
    blocks = [_shortened(head)]
    if len(subjects) > 1 or blocks[0] != head:
        blocks.append("\n".join(subjects))
    trailers = dict.fromkeys(trailer for change in changes for trailer in change.trailers)
    lines = [f"{key}: {_one_line(value)}" for key, value in (*trailers, *extra)]
    if lines:
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _shortened(subject: str) -> str:
    return subject if len(subject) <= 72 else subject[:71] + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
