"""The one tree of errors that users see.

Every leaf fixes the exit code of the command; every instance says what failed, where, and what to do next.
Only `symphony_charts.cli` prints them and exits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = [
    "CheckFailed",
    "Conflict",
    "NotFound",
    "PlacementError",
    "Problem",
    "SpecError",
    "SymphError",
    "ToolFailed",
    "ToolMissing",
    "UsageError",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault of an input: `what` is wrong, `path` inside the input, `next`, the way out.

    `path` is dotted with list indexes, as in ``processes.learner.binds[0]``; it is empty for the whole input.
    """

    what: str
    path: str = ""
    next: str = ""


@dataclass(eq=False)
class SymphError(Exception):
    """Root of all errors that are not bugs: `what` failed, `at` (file, line, path), `next`, the step to take."""

    what: str
    at: str = ""
    next: str = ""

    exit_code = 1

    def __str__(self) -> str:
        lines = [self.what]
        if self.at:
            lines.append(f"  at:   {self.at}")
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)


class CheckFailed(SymphError):
    """A lint, drift check, test or run said no."""

    exit_code = 1


class UsageError(SymphError):
    """The command line asks for something that makes no sense; argparse's own errors exit alike."""

    exit_code = 2


class SpecError(SymphError, ValueError):
    """The experiment, the settings or an input file is wrong; `problems` holds every fault that was found."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem], at: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        first = self.problems[0]
        where = ", ".join(part for part in (at, first.path) if part)
        super().__init__(first.what, where, first.next)

    @classmethod
    def one(cls, what: str, path: str = "", next: str = "", at: str = "") -> SpecError:
        """The error of a single fault."""
        return cls([Problem(what=what, path=path, next=next)], at)

    def __str__(self) -> str:
        file = self.at.removesuffix(self.problems[0].path).removesuffix(", ")
        blocks = []
        for problem in self.problems:
            where = ", ".join(part for part in (file, problem.path) if part)
            blocks.append(str(SymphError(problem.what, where, problem.next)))
        return "\n".join(blocks)


class PlacementError(SymphError, ValueError):
    """No pool can hold what was asked."""

    exit_code = 4


@dataclass(eq=False)
class ToolMissing(SymphError):
    """A program that the step needs (helm, git, tmux...) is absent or too old, or an `extra` of ours."""

    extra: str = ""

    exit_code = 5

    def __post_init__(self) -> None:
        if self.extra and not self.next:
            self.next = f"install symphony-charts with the extra `{self.extra}`"


@dataclass(eq=False)
class ToolFailed(SymphError):
    """A program or server failed; everything it said is kept."""

    argv: Sequence[str] = field(default=())
    status: int | None = None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0

    exit_code = 6


class Conflict(SymphError):
    """The version exists with other content, a precondition no longer holds, or a file of ours was edited."""

    exit_code = 7


class NotFound(SymphError, LookupError):
    """No such experiment, process or version, or it is not ours."""

    exit_code = 8
