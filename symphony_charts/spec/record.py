"""All records of an experiment share one base."""

from __future__ import annotations

import msgspec

__all__ = ["Record"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records: frozen, keyword-only, unknown keys refused, defaults left out when written."""
