"""Runs of an experiment are ended and forgotten, with what of them is shown elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.errors import CheckFailed
from symphony_charts.local import up
from symphony_charts.local.runs import Run
from symphony_charts.local.shown_sessions import sessions_of
from symphony_charts.system import remover
from symphony_charts.system.file_locks import experiment_lock

__all__ = ["delete"]


def delete(name: str, runs: Sequence[Run]) -> None:
    """End `runs`, all of the experiment `name`, and remove what is kept of them; raises CheckFailed for what stays."""
    with experiment_lock(name, "symph rm"):
        sessions = sessions_of(runs)
        for run in runs:
            up.end(run)
        left = [entry for run in runs for entry in remover.remove(run.home, name, run.run_id)]
        for session in sessions:
            session.end()
    if left:
        step = f"see why, then: symph local gc {name}"
        raise CheckFailed(f"{len(left)} files or folders could not be removed: {'; '.join(left)}", next=step)
