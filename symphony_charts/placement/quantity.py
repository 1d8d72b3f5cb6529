"""Kubernetes quantities as integers: CPU in millicores, everything else in whole units (bytes, devices).

Rounding goes up, as in the scheduler, so that a request is never underestimated.
Source: k8s.io/apimachinery, pkg/api/resource; `cpu` is compared in milli-units, all other resources in units.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

__all__ = ["GIB", "MIB", "amount_of", "cores_text", "gib_text", "memory_text", "quantity_value"]

MIB = 1 << 20
GIB = 1 << 30

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$")
_SUFFIX = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", start=1)},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
}


@lru_cache(maxsize=4096)
def quantity_value(text: str) -> Decimal:
    """The number that a quantity such as ``1500m``, ``2Gi`` or ``1e3`` stands for; ValueError if it is none."""
    match = _QUANTITY.match(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is no quantity')
    number = Decimal(match[1])
    return number.scaleb(int(match[2])) if match[2] else number * _SUFFIX[match[3] or ""]


@lru_cache(maxsize=4096)
def amount_of(resource: str, text: str) -> int:
    """A quantity of `resource` as the scheduler counts it: millicores of ``cpu``, else units, rounded up."""
    value = quantity_value(text)
    if resource == "cpu":
        value *= 1000
    return int(value.to_integral_value(ROUND_CEILING))


def cores_text(millis: int) -> str:
    """Millicores as a number of cores: 7526 -> ``7.526``."""
    return f"{Decimal(millis) / 1000:.3f}".rstrip("0").rstrip(".")


def gib_text(amount: int) -> str:
    """Bytes as GiB with one digit."""
    return f"{amount / GIB:.1f}"


def memory_text(amount: int) -> str:
    """Bytes as a quantity in Mi, rounded down: what a request would be written as."""
    return f"{amount // MIB}Mi"
