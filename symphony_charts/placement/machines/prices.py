"""List prices are dollars per hour, dated, for a few regions; what is not in the table has no price, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from symphony_charts.placement.data import read_constant
from symphony_charts.placement.machines.catalog import Machine, default_catalog

__all__ = ["PriceTable", "default_prices"]


class _Region(msgspec.Struct, frozen=True):
    units: dict[str, tuple[float, float, float, float]] = {}
    machines: dict[str, tuple[float, float]] = {}


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by region; `date` is the day they were taken."""

    date: str
    regions: Mapping[str, _Region]
    currency: str = "USD per hour"
    source: str = ""
    notes: str = ""

    def price(self, machine: str, region: str, *, spot: bool = False, attached_gpus: int = 0) -> float | None:
        """Dollars per hour of one node; None when the table does not know it.

        `attached_gpus` are those added to an n1 machine: their price is not in the table, so it is unknown as a whole.
        """
        region_prices = self.regions.get(region)
        described = default_catalog().get(machine)
        if region_prices is None or attached_gpus:
            return None
        if machine in region_prices.machines:
            return region_prices.machines[machine][1 if spot else 0]
        units = region_prices.units.get(described.family) if described else None
        if described is None or units is None or not _is_plain(described):
            return None
        cpu, gib = (units[2], units[3]) if spot else (units[0], units[1])
        return round(described.vcpu * cpu + described.memory_mib / 1024 * gib, 6)


def _is_plain(machine: Machine) -> bool:
    """Whether vCPUs and memory are all that is paid for; custom types cost more than the sum."""
    extras = machine.gpus or machine.chips or machine.local_ssds or machine.shared
    return not extras and "custom" not in machine.name and "metal" not in machine.name


@lru_cache(maxsize=1)
def default_prices() -> PriceTable:
    """The table that ships with the package."""
    return msgspec.json.decode(read_constant("prices.json"), type=PriceTable)
