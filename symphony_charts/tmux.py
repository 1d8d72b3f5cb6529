"""Symphony's `symphony.tmux`: its names for the builders, which are the same on every backend."""

from __future__ import annotations

from symphony_charts.clusters.base import ExperimentSpec as TmuxExperimentSpec
from symphony_charts.clusters.base import ProcessGroupSpec as TmuxProcessGroupSpec
from symphony_charts.clusters.base import ProcessSpec as TmuxProcessSpec
from symphony_charts.clusters.tmux import TmuxCluster

__all__ = ["TmuxCluster", "TmuxExperimentSpec", "TmuxProcessGroupSpec", "TmuxProcessSpec"]
