"""A `Capability` is one thing that a machine or cluster offers to experiments, or lacks: `symph doctor` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Capability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that was examined; `next` is the remedy if it is not well."""

    name: str
    status: Literal["ok", "warning", "missing"]
    detail: str
    next: str = ""
