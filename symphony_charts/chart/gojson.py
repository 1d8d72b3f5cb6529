"""JSON as Go writes it, for the chart: see `symphony_charts.spec.gojson`."""

from __future__ import annotations

from symphony_charts.spec.gojson import dumps, number

__all__ = ["dumps", "number"]
