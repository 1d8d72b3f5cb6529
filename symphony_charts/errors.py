"""The one tree of errors that users see.

Every leaf fixes the exit code of the command; every instance has what failed, where, and the next step.
Only `symphony_charts.cli` prints them and exits. The classes are plain ones, since every command line imports them:
dataclasses would cost it 7 ms, a sixth of `symph --help`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Problem:
    """One fault of an input: `what` is wrong, `path` inside the input, `next`, the way out.

    `path` is dotted with list indexes, as in ``processes.learner.binds[0]``; it is empty for the whole input.
    """

    __slots__ = ("next", "path", "what")

    def __init__(self, what: str, path: str = "", next: str = "") -> None:
        self.what = what
        self.path = path
        self.next = next

    def moved_to(self, path: str) -> Problem:
        """Return the same fault at another path."""
        return Problem(what=self.what, path=path, next=self.next)

    def __repr__(self) -> str:
        return f"Problem(what={self.what!r}, path={self.path!r}, next={self.next!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class SymphError(Exception):
    """Root of all errors that are not bugs: `what` failed, `at` (file, line, path), `next`, the step to take."""

    exit_code = 1

    def __init__(self, what: str, at: str = "", next: str = "") -> None:
        self.what = what
        self.at = at
        self.next = next

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({fields})"

    def __str__(self) -> str:
        lines = [self.what]
        if self.at:
            lines.append(f"  at:   {self.at}")
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)


class CheckFailed(SymphError):
    """A lint, drift check, test or run failed."""

    exit_code = 1


class UsageError(SymphError):
    """The command line asks for something that makes no sense; argparse's own errors exit alike."""

    exit_code = 2


class _Faults(SymphError):
    """An error of one or more `problems`."""

    def __init__(self, problems: Iterable[Problem], at: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        first = self.problems[0]
        where = ", ".join(part for part in (at, first.path) if part)
        super().__init__(first.what, where, first.next)

    def __str__(self) -> str:
        file = self.at.removesuffix(self.problems[0].path).removesuffix(", ")
        blocks = []
        for problem in self.problems:
            where = ", ".join(part for part in (file, problem.path) if part)
            blocks.append(str(SymphError(problem.what, where, problem.next)))
        return "\n".join(blocks)


class ChartRefused(_Faults, CheckFailed):
    """The chart of an experiment breaks rules; `problems` holds every fault that was found."""


class SpecError(_Faults, ValueError):
    """The experiment, the settings or an input file is wrong; `problems` holds every fault that was found."""

    exit_code = 3

    @classmethod
    def one(cls, what: str, path: str = "", next: str = "", at: str = "") -> SpecError:
        """Return the error of a single fault."""
        return cls([Problem(what=what, path=path, next=next)], at)


class PlacementError(SymphError, ValueError):
    """No pool can hold what was asked."""

    exit_code = 4


class ToolMissing(SymphError):
    """A program that the step needs (helm, git, tmux...) is absent or too old, or an `extra` of ours."""

    exit_code = 5

    def __init__(self, what: str, at: str = "", next: str = "", extra: str = "") -> None:
        if extra and not next:
            next = f"install symphony-charts with the extra `{extra}`"
        super().__init__(what, at, next)
        self.extra = extra


class ToolFailed(SymphError):
    """A program or server failed; its output is kept."""

    exit_code = 6

    def __init__(
        self,
        what: str,
        at: str = "",
        next: str = "",
        argv: Sequence[str] = (),
        status: int | None = None,
        stdout: str = "",
        stderr: str = "",
        seconds: float = 0.0,
    ) -> None:
        super().__init__(what, at, next)
        self.argv = argv
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds


class Conflict(SymphError):
    """The version exists with other content, a precondition no longer holds, or a file of ours was edited."""

    exit_code = 7


class NotFound(SymphError, LookupError):
    """No such experiment, process or version, or it is not ours."""

    exit_code = 8


def first_line(error: BaseException) -> str:
    """The first line of what an error says, empty where it says nothing."""
    return next(iter(str(error).splitlines()), "")
