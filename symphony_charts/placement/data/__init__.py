"""The constants of placement are the machine catalogue and the price table. Written by scripts/make_catalog.py."""

from __future__ import annotations

from importlib import resources

__all__ = ["read_constant"]


def read_constant(name: str) -> bytes:
    """The content of a JSON file of this package, such as ``machines.json``; it ships with the code."""
    return resources.files(__name__).joinpath(name).read_bytes()
