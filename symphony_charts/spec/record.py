"""What all records of an experiment have in common."""

from __future__ import annotations

import msgspec

__all__ = ["Record"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records: frozen, keyword-only, unknown keys refused, defaults left out when written."""
