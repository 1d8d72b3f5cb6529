"""Completion reads the names of this machine's experiments and processes quickly, and leaves out whatever fails."""

from __future__ import annotations

import contextlib
import os

from symphony_charts.errors import SymphError
from symphony_charts.local.runs import home, live_runs

__all__ = ["experiment_names", "process_names"]


def experiment_names() -> set[str]:
    """Return the experiments that run here or have run here."""
    try:
        return {entry.name for entry in os.scandir(home()) if entry.is_dir() and entry.name[0] != "."}
    except OSError:
        return set()


def process_names() -> set[str]:
    """Return the processes of all live runs, those of groups also as ``group/process``."""
    names = set()
    with contextlib.suppress(SymphError, OSError, ValueError):
        for run in live_runs():
            for process in run.state().processes:
                names |= {process.name, process.path}
    return names
