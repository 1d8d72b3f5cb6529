"""Kubernetes quantities (``"1500m"``, ``"2Gi"``) as exact numbers."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["is_quantity", "quantity"]

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]{1,3})?", re.ASCII
)
_BINARY = {suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {suffix: 1000**power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), start=1)}
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}


def is_quantity(text: str) -> bool:
    """Whether `text` is a quantity of nothing or more."""
    return _QUANTITY.fullmatch(text) is not None and not text.startswith("-")


def quantity(text: str) -> Fraction:
    """The number that `text` stands for; raises ValueError if it is no quantity.

    Source: kubernetes/apimachinery, pkg/api/resource/quantity.go.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    number, suffix = Fraction(found[1].rstrip(".")), found[2] or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number * Fraction(10) ** int(suffix[1:])
    return number * (_BINARY.get(suffix) or _DECIMAL.get(suffix) or _SMALL.get(suffix) or 1)
