"""Symphony's `symphony.tmux`: its names for the builders, which are the same on every backend."""

from __future__ import annotations

from symphony_charts.cluster.specs import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.cluster.tmux_cluster import TmuxCluster

__all__ = ["TmuxCluster", "TmuxExperimentSpec", "TmuxProcessGroupSpec", "TmuxProcessSpec"]

TmuxExperimentSpec = ExperimentSpec
TmuxProcessGroupSpec = ProcessGroupSpec
TmuxProcessSpec = ProcessSpec
