"""Symphony's `symphony.engine`: clusters, configuration and addresses."""

from __future__ import annotations

from symphony_charts.clusters.base import AddressBook, Cluster
from symphony_charts.settings.user import SymphonyConfig

__all__ = ["AddressBook", "Cluster", "SymphonyConfig"]
