"""Launched experiments are saved in ``<experiment folder>/<name>/experiment.yaml``."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.formats.yaml_text import load
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.data import from_data, to_yaml
from symphony_charts.spec.model import Experiment
from symphony_charts.system.files import write_file

__all__ = ["load_experiment", "save_experiment"]

_FILE = "experiment.yaml"


def save_experiment(experiment: Experiment, *, force: bool = False) -> Path | None:
    """Save `experiment` where the configuration says; None if it says nothing.

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


def load_experiment(name: str) -> Experiment:
    """The saved experiment `name`; raises NotFound."""
    folder = SymphonyConfig().experiment_folder
    path = Path(folder or ".").expanduser() / name / _FILE
    if folder is None or not path.exists():
        raise NotFound(f'no experiment "{name}" is saved', at=str(path) if folder else "")
    return from_data(load(path.read_text(encoding="utf-8")))
