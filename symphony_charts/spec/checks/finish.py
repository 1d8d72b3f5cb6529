"""One door through which every experiment passes before anything is made of it."""

from __future__ import annotations

from symphony_charts.errors import Problem, SpecError
from symphony_charts.spec.checks.amounts import resource_faults
from symphony_charts.spec.checks.argo import argo_faults
from symphony_charts.spec.checks.dijob import dijob_faults
from symphony_charts.spec.checks.env import env_faults
from symphony_charts.spec.checks.names import name_faults, with_clean_names
from symphony_charts.spec.checks.pods import image_faults, pod_faults
from symphony_charts.spec.checks.process_paths import places_of
from symphony_charts.spec.checks.references import reference_faults
from symphony_charts.spec.checks.services import network_faults
from symphony_charts.spec.checks.storage import storage_faults
from symphony_charts.spec.checks.text import text_faults
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.overlay_origins import written_at
from symphony_charts.spec.overlays import with_overlays_as_fields

__all__ = ["finish"]

_CHECKS = (network_faults, reference_faults, pod_faults, resource_faults, env_faults, storage_faults, text_faults)


def finish(exp: Experiment, *, for_cluster: bool = False) -> Experiment:
    """`exp` with sanitised names, the owner's prefix and its overlays as fields, and nothing left that could be wrong.

    `for_cluster` adds what only a cluster needs, such as an image for each process. Finishing twice changes nothing.
    Raises SpecError with all faults at once.
    """
    written, problems = with_clean_names(exp)
    experiment = with_overlays_as_fields(written)
    problems += name_faults(experiment)
    places = places_of(experiment)
    if not places:
        problems.append(Problem(what="the experiment has no process", path="processes", next="add one"))
    for check in _CHECKS:
        problems += check(experiment, places)
    if for_cluster:
        problems += image_faults(experiment, places)
        problems += dijob_faults(experiment)
        problems += argo_faults(experiment)
    if problems:
        raise SpecError(problem.moved_to(written_at(written, problem.path)) for problem in problems)
    return experiment
