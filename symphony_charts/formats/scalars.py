"""Scalars become the text that Kubernetes wants of them."""

from __future__ import annotations

from symphony_charts.formats.yaml_read import SourceNumber

__all__ = ["plain", "scalar_text"]


def scalar_text(value: object) -> object:
    """Return numbers and booleans as text (``true``, ``8``, ``1e-4`` as written), all else unchanged."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, SourceNumber):
        return value.text
    if isinstance(value, (int, float)):
        return repr(value)
    return value


def plain(value: object) -> object:
    """Return `value` with plain floats for the numbers that remember their spelling, at any depth."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, SourceNumber) else value
