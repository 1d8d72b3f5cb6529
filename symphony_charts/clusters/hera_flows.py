"""`hera_flows` returns an experiment as hera objects, to be part of a user's own hera flow."""

from __future__ import annotations

from symphony_charts.integrations.argo.hera_flows import Built, built, hera_flows

__all__ = ["Built", "built", "hera_flows"]
