"""Paths into data are written the same in every error: ``processes.learner.binds[0]``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["join", "nearest"]


def join(path: str, step: str | int) -> str:
    """Return `path` one step further: a key after a dot, an index in brackets."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the one of `choices` that `word` probably means, or None."""
    matches = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None
