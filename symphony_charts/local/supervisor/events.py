"""Events say what happens to a run, and actions what its supervisor does about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Started:
    """A program runs while others are still being started; unless it waits at its gate, this is its start."""

    slot: int


@dataclass(frozen=True)
class TakenOver:
    """The supervisor has begun to watch all programs; the one before it was `stopping` the run for that reason."""

    stopping: str = ""


@dataclass(frozen=True)
class TmuxGone:
    """The tmux server of the run is gone, and with it all terminals; `cause` says why in words."""

    cause: str = "tmux was killed"


@dataclass(frozen=True)
class Ended:
    """A program has ended `at` a time since 1970; `limit` is what limits had to do with that."""

    slot: int
    status: int | None
    at: float
    limit: str = ""


@dataclass(frozen=True)
class Held:
    """A program cannot be restarted yet; `why` names what it waits for (``tmux, which does not answer``)."""

    slot: int
    why: str


@dataclass(frozen=True)
class Readiness:
    """Checks have found that a process is ready, or is not, and why."""

    slot: int
    is_ready: bool
    why: str = ""


@dataclass(frozen=True)
class ProbeFailed:
    """A probe has found that a process must end, which then gets `grace_s` (None: as long as at any end)."""

    slot: int
    probe: Literal["startup", "liveness"]
    why: str
    grace_s: float | None = None


@dataclass(frozen=True)
class PaneClosed:
    """The pane of a program was closed: it has no terminal any more, and its output is not logged."""

    slot: int


@dataclass(frozen=True)
class Overdue:
    """The deadline of a process that began at that time has passed."""

    slot: int
    began: float


@dataclass(frozen=True)
class RestartDue:
    """The pause after the end of a process at that time is over."""

    slot: int
    ended: float | None


@dataclass(frozen=True)
class Respawned:
    """A program was started once more; or it cannot be, since there is no tmux any more."""

    slot: int
    is_done: bool


@dataclass(frozen=True)
class RestartAsked:
    """A command asks to restart these processes."""

    slots: Sequence[int]


@dataclass(frozen=True)
class StopAsked:
    """A command asks for the end of the run."""


Event = (
    Started
    | TakenOver
    | TmuxGone
    | PaneClosed
    | Ended
    | Readiness
    | ProbeFailed
    | Overdue
    | RestartDue
    | Respawned
    | Held
    | RestartAsked
    | StopAsked
)


Deed = Literal["release", "respawn", "attend", "end", "read end", "grant"]


@dataclass(frozen=True)
class Act:
    """Do something with the program of `slot`.

    ``release`` lets it start where it waits; ``respawn`` runs it once more, and is answered by `Respawned` or `Held`;
    ``attend`` begins its checks; ``end`` sends TERM, and KILL after `grace_s`; ``read end`` finds out how it ended when
    nobody saw it, and is answered by `Ended`; ``grant`` takes back the request for it once the state is written.
    """

    do: Deed
    slot: int
    grace_s: float = 0.0


@dataclass(frozen=True)
class Later:
    """Let `event` happen after so many seconds."""

    delay_s: float
    event: RestartDue | Overdue


Action = Act | Later
