"""What the server of operator v0 reads and writes in the folder of a run. Must stay light."""

from __future__ import annotations

__all__ = ["DELETED", "GIVEN", "TABLE"]

TABLE = "di-server/replicas.json"
"""Where the server listens, the coordinators, and which replicas they can be given."""

GIVEN = "di-server/given.json"
"""Which of them they have been given."""

DELETED = "di-server/deleted"
"""The folder in which a file stands for each replica that a coordinator has deleted."""
