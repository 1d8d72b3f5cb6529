"""An `Outcome` says how a trial is or how it ended, in the words that every backend has for experiments."""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.backend.status import Phase
from symphony_charts.sweep.trials import Trial

__all__ = ["TIMED_OUT", "Outcome", "too_long"]

TIMED_OUT = 124
"""The exit status of a trial that was ended since it took too long, as `timeout` of coreutils has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a trial: its phase, exit status and seconds as far as there are any, and why it is no success.

    `is_kept`: it had ended before this sweep came to it. `is_early`: it was stopped since others are better.
    """

    trial: Trial
    state: Phase
    status: int | None = None
    seconds: float | None = None
    error: str = ""
    is_kept: bool = False
    is_early: bool = False

    @property
    def is_done(self) -> bool:
        """True if nothing is left to do: it succeeded, or was stopped for good."""
        return self.state == "succeeded" or self.is_early


def too_long(timeout_s: float) -> str:
    """Return the reason of a trial that was ended after `timeout_s`."""
    return f"took longer than {timeout_s:g} s and was ended"
