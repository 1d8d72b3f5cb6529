"""`hera_flows` gives an experiment as hera objects, to be part of a flow that somebody writes with hera."""

from __future__ import annotations

from symphony_charts.integrations.argo.hera_flows import Built, built, hera_flows

__all__ = ["Built", "built", "hera_flows"]
