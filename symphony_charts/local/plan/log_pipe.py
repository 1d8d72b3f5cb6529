"""The shell line by which tmux writes what a terminal shows to the log of its process."""

from __future__ import annotations

__all__ = ["log_pipe"]


def log_pipe(folder: str) -> str:
    """Return the line for the process whose folder that is; its path has nothing that tmux or shells read in quotes."""
    return f'exec cat >>"{folder}/log"'
