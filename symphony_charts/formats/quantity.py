"""Kubernetes quantities (``"1500m"``, ``"2Gi"``) as exact numbers, and as the integers that the scheduler counts.

Source: k8s.io/apimachinery, pkg/api/resource (quantity.go, suffix.go). As lax as the library: a mantissa without a
digit is zero, and exponents wrap at 32 bits.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

MIB = 1 << 20
GIB = 1 << 30
MOST = (1 << 63) - 1
"""The largest number that Kubernetes can count."""

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?)(?=[0-9])0*([0-9]*)")
_SUFFIXES = {
    "": (10, 0),
    **{suffix: (10, -3 * power) for power, suffix in enumerate("mun", start=1)},
    **{suffix: (10, 3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": (2, 10 * power) for power, suffix in enumerate("KMGTPE", start=1)},
}
_NANO = 10**9
# Exponents of the library's fast path, which alone reads a mantissa without a digit as zero: from nano on, up to Ti.
_WITHOUT_DIGITS = {10: range(-9, 1 << 31), 2: range(41)}
# Powers of ten beyond which no arithmetic is needed: too large to count, or below a billionth.
_ABOVE_ALL, _BELOW_ALL = 40, -40


class QuantityOverflowError(ValueError):
    """A quantity that is valid in Kubernetes' syntax but too large to count."""


@lru_cache(maxsize=4096)
def quantity(text: str) -> Fraction:
    """Return the value of `text`, rounded away from zero to a billionth.

    Raises ValueError if `text` is not a quantity, and QuantityOverflowError for a decimal one beyond `MOST`; binary
    ones beyond it become `MOST`, as in Kubernetes.
    """
    parts = _PARTS.fullmatch(text)
    unit = _unit(parts[4]) if parts and text else None
    if parts is None or unit is None:
        raise ValueError(f'"{text}" is not a quantity')
    (base, exponent), whole, decimals = unit, parts[2], parts[3] or ""
    if not whole + decimals and exponent not in _WITHOUT_DIGITS[base]:
        raise ValueError(f'"{text}" is not a quantity')
    nano = _nano(whole, decimals, base, exponent)
    if nano > MOST * _NANO:
        if base == 10:
            raise QuantityOverflowError(f'"{text}" is more than Kubernetes can count')
        nano = MOST * _NANO
    return Fraction(-nano if parts[1] == "-" else nano, _NANO)


def is_quantity(text: str) -> bool:
    """Return True if `text` is a non-negative quantity that Kubernetes can count."""
    try:
        return quantity(text) >= 0
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def amount_of(resource: str, text: str) -> int:
    """Return a quantity of `resource` as the scheduler counts it: millicores of ``cpu``, otherwise units, rounded up.

    Raises ValueError for an invalid or negative quantity, QuantityOverflowError if it does not fit in 64 bits.
    """
    number = quantity(text) * (1000 if resource == "cpu" else 1)
    if number < 0:
        raise ValueError(f'"{text}" is less than nothing')
    if number > MOST:
        raise QuantityOverflowError(f'"{text}" is more than Kubernetes can count of {resource}')
    return math.ceil(number)


def cores_text(millis: int) -> str:
    """Return millicores as a number of cores: 7526 -> ``7.526``."""
    return f"{Decimal(millis) / 1000:.3f}".rstrip("0").rstrip(".")


def gib_text(amount: int) -> str:
    """Return bytes as GiB with one decimal."""
    return f"{amount / GIB:.1f}"


def _unit(suffix: str) -> tuple[int, int] | None:
    """Return base and exponent of `suffix`; None if it is invalid."""
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[2]) > len(str(MOST)):
        return None
    exponent = int(f"{match[1]}{match[2] or 0}")
    return (10, _wrapped(exponent)) if -MOST - 1 <= exponent <= MOST else None


def _wrapped(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _nano(whole: str, decimals: str, base: int, exponent: int) -> int:
    """Return the number of billionths, rounded up; beyond the countable range the result is only a bound."""
    digits = (whole + decimals).lstrip("0")
    if not digits:
        return 0
    scale = _wrapped((exponent if base == 10 else 0) - len(decimals))
    if len(digits) + scale > _ABOVE_ALL:
        return (MOST + 1) * _NANO
    if len(digits) + scale < _BELOW_ALL:
        return 1
    number = Fraction(Decimal(f"{whole or 0}.{decimals or 0}")) * Fraction(base) ** exponent
    return math.ceil(number * _NANO)
