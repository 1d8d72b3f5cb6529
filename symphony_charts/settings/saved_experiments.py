"""Launched experiments are saved in ``<experiment folder>/<name>/experiment.yaml``."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.errors import Conflict
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.data import to_yaml
from symphony_charts.spec.model import Experiment
from symphony_charts.system.files import write_file

__all__ = ["save_experiment"]

_FILE = "experiment.yaml"


def save_experiment(experiment: Experiment, *, force: bool = False) -> Path | None:
    """Save `experiment` in the configured folder; None if there is none.

    Raises Conflict where another experiment of that name is saved, unless `force`.
    """
    folder = SymphonyConfig().experiment_folder
    if folder is None:
        return None
    path = Path(folder).expanduser() / experiment.name / _FILE
    text = to_yaml(experiment).encode()
    if not force and path.exists():
        what = f'an experiment "{experiment.name}" is saved already'
        raise Conflict(what, at=str(path), next="pass force=True to replace it, or choose another name")
    write_file(path, text)
    return path
