"""Symphony's `symphony.engine`."""

from __future__ import annotations

from symphony_charts.cluster.address_book import AddressBook
from symphony_charts.cluster.cluster import Cluster
from symphony_charts.cluster.config import SymphonyConfig

__all__ = ["AddressBook", "Cluster", "SymphonyConfig"]
