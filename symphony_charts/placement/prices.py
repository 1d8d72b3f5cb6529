"""List prices in dollars per hour, each with region, date and source; unlisted machines have no price.

The table is written by scripts/make_prices.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from symphony_charts.placement.catalog import Machine, default_catalog, gpu_matches
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.system.package_data import table
from symphony_charts.system.records import decode_json


class RegionPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of one region.

    `units`: family -> vCPU, GiB, and both on spot. `machines`: name -> on demand, spot; accelerators included.
    `custom`: family -> vCPU, GiB, GiB of extended memory. `gpus`: type -> one GPU attached to an n1, on demand and
    spot. `tpus`: type -> one chip. `ssd_gib`: a GiB of local SSD. `origins`: field -> date and
    source, for fields with another origin than the rest.
    """

    date: str = ""
    source: str = ""
    units: dict[str, tuple[float, float, float | None, float | None]] = {}
    machines: dict[str, tuple[float, float | None]] = {}
    custom: dict[str, tuple[float, float, float | None]] = {}
    gpus: dict[str, tuple[float, float | None]] = {}
    tpus: dict[str, tuple[float, float | None]] = {}
    ssd_gib: float | None = None
    origins: dict[str, tuple[str, str]] = {}


# Families whose local SSDs have the general price; no source gives the price for newer ones.
_PLAIN_SSD = frozenset({"n1", "n2", "n2d", "c2", "c2d", "c3", "c3d"})
# Maximum GiB of memory per vCPU of a custom machine; the rest is extended memory.
_MOST_GIB = {"n1": 6.5, "n2": 8, "n2d": 8}


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by region; `date` and `source` apply to regions without their own."""

    date: str
    regions: Mapping[str, RegionPrices]
    source: str = ""

    def origin(self, region: str) -> tuple[str, str]:
        """Return the date and the source of a region's prices; empty texts if there are none."""
        prices = self.regions.get(region)
        return ("", "") if prices is None else (prices.date or self.date, prices.source or self.source)

    def origins_of(self, pool: Pool) -> list[tuple[str, str, str]]:
        """Return the parts of a node's price in the pool, each with date and source."""
        prices, region = self.regions.get(pool.region), pool.region
        if prices is None:
            return []
        rest, own = self.origin(region), prices.origins
        machine, is_listed = default_catalog().get(pool.machine_type), pool.machine_type in prices.machines
        is_tpu = machine is not None and bool(machine.chips)
        kinds = {"machines": is_listed, "tpus": is_tpu, "custom": "custom" in pool.machine_type, "units": True}
        field = next(kind for kind, applies in kinds.items() if applies)
        parts = [(f"list prices of {region}", own.get(field, rest))]
        if pool.attached_gpus:
            parts.append((f"attached GPUs in {region}", own.get("gpus", rest)))
        if pool.local_ssds and not is_listed:
            parts.append((f"local SSDs in {region}", own.get("ssd_gib", rest)))
        return [(what, date, source) for what, (date, source) in parts]

    def price(self, pool: Pool, *, spot: bool = False) -> float | None:
        """Return dollars per hour of one node of the pool without persistent disks; None if a part has no price."""
        name, prices = pool.machine_type, self.regions.get(pool.region)
        if prices is None:
            return None
        machine = default_catalog().get(name)
        base = _machine(prices, name, machine, spot=spot)
        gpus = _gpus(prices, pool.gpu_type, pool.attached_gpus, spot=spot)
        ssds = 0.0 if name in prices.machines else _ssds(prices, machine, pool.local_ssds, spot=spot)
        return None if base is None or gpus is None or ssds is None else round(base + gpus + ssds, 6)


def _machine(prices: RegionPrices, name: str, machine: Machine | None, *, spot: bool) -> float | None:
    if name in prices.machines:
        return prices.machines[name][spot]
    if machine is None:
        return None
    if machine.chips:
        each = prices.tpus.get(machine.tpu, (None, None))[spot]
        return None if each is None else each * machine.chips
    if "custom" in name:
        return _custom(prices, machine, spot=spot)
    units = prices.units.get(machine.family)
    if units is None or not is_plain(machine):
        return None
    cpu, gib = (units[2], units[3]) if spot else (units[0], units[1])
    return None if cpu is None or gib is None else machine.vcpu * cpu + machine.memory_mib / 1024 * gib


def _custom(prices: RegionPrices, machine: Machine, *, spot: bool) -> float | None:
    units = prices.custom.get(machine.family)
    if units is None or spot or machine.shared:
        return None
    gib, most = machine.memory_mib / 1024, _MOST_GIB.get(machine.family, 8) * machine.vcpu
    beyond = max(0.0, gib - most) if machine.name.endswith("-ext") else 0.0
    if beyond and units[2] is None:
        return None
    return machine.vcpu * units[0] + (gib - beyond) * units[1] + beyond * (units[2] or 0)


def _gpus(prices: RegionPrices, kind: str, count: int, *, spot: bool) -> float | None:
    if not count:
        return 0.0
    each = next((price[spot] for name, price in prices.gpus.items() if gpu_matches(kind, name)), None)
    return None if each is None else each * count


def _ssds(prices: RegionPrices, machine: Machine | None, count: int, *, spot: bool) -> float | None:
    count = count or (machine.local_ssds if machine else 0)
    if not count:
        return 0.0
    is_known = machine is not None and machine.family in _PLAIN_SSD and machine.local_ssd_gib == 375 and not spot
    return None if prices.ssd_gib is None or not is_known else count * 375 * prices.ssd_gib


def is_plain(machine: Machine) -> bool:
    """Return True if the price depends only on vCPUs, memory and local SSDs."""
    return not (machine.gpus or machine.chips or machine.shared or "metal" in machine.name)


@lru_cache(maxsize=1)
def default_prices() -> PriceTable:
    return decode_json(table("placement/data/prices.json"), PriceTable)
