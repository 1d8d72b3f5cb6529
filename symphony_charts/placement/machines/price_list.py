"""Price lists of others become a table: the one that apache-libcloud ships, or one in our own form.

apache-libcloud (Apache-2.0) holds Google's unit prices by region: vCPU and GiB of predefined and custom machines, local
SSDs, commitments. Its spot prices are older than its date and are left out, and so are prices of 0.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.placement.machines.prices import PriceTable

__all__ = ["read_prices"]

_FAMILIES = ("n1", "n2", "n2d", "e2", "c2", "m1")
_CUSTOM = ("n1", "n2", "n2d", "e2")
_Prices = dict[str, dict[str, object]]


class _Price(msgspec.Struct, frozen=True):
    price: float = 0


class _Part(msgspec.Struct, frozen=True):
    on_demand: dict[str, _Price] = {}
    committed_1yr: dict[str, _Price] = msgspec.field(default_factory=dict, name="1yr_commitment")
    committed_3yr: dict[str, _Price] = msgspec.field(default_factory=dict, name="3yr_commitment")


class _Family(msgspec.Struct, frozen=True):
    cpu: _Part = _Part()
    ram: _Part = _Part()


class _Compute(msgspec.Struct):
    gce_instances: dict[str, _Family]
    gce_disks: dict[str, _Part]


class _Libcloud(msgspec.Struct):
    compute: _Compute
    updated: int


def read_prices(text: bytes, name: str, day_of: Callable[[int], str]) -> PriceTable:
    """The table of a price list; `name` is said as its source, `day_of` gives the date of a second since 1970.

    Raises SpecError for any other text.
    """
    try:
        if b'"gce_instances"' in text:
            return _of_libcloud(msgspec.json.decode(text, type=_Libcloud), name, day_of)
        table = msgspec.json.decode(text, type=PriceTable)
    except msgspec.MsgspecError as error:
        hint = "a table as docs/placement.md shows it, or pricing.json of the package apache-libcloud"
        raise SpecError.one(f"no price list: {error}", at=name, next=hint) from error
    return table if table.source else msgspec.structs.replace(table, source=name)


def _of_libcloud(listed: _Libcloud, name: str, day_of: Callable[[int], str]) -> PriceTable:
    instances, regions = listed.compute.gce_instances, dict[str, dict[str, object]]()
    for family in _FAMILIES:
        parts = instances.get(family, _Family())
        _put(regions, "units", family, parts.cpu.on_demand, parts.ram.on_demand, tail=(None, None))
        _put(regions, "committed_1yr", family, parts.cpu.committed_1yr, parts.ram.committed_1yr)
        _put(regions, "committed_3yr", family, parts.cpu.committed_3yr, parts.ram.committed_3yr)
    for family in _CUSTOM:
        parts = instances.get(f"{family}_custom", _Family())
        extended = instances.get(f"{family}_custom_extended", _Family()).ram.on_demand
        _put(regions, "custom", family, parts.cpu.on_demand, parts.ram.on_demand, extended=extended)
    for region, price in listed.compute.gce_disks.get("Local SSD", _Part()).on_demand.items():
        if price.price:
            regions.setdefault(region, {})["ssd_gib"] = round(price.price, 9)
    data = {"date": day_of(listed.updated), "source": name, "regions": dict(sorted(regions.items()))}
    return msgspec.convert(data, PriceTable)


def _put(
    regions: _Prices,
    block: str,
    family: str,
    cpu: dict[str, _Price],
    gib: dict[str, _Price],
    *,
    tail: tuple[None, ...] = (),
    extended: dict[str, _Price] | None = None,
) -> None:
    for region in sorted(cpu.keys() & gib.keys()):
        row: list[float | None] = [cpu[region].price, gib[region].price, *tail]
        if extended is not None:
            row.append(extended[region].price or None if region in extended else None)
        if cpu[region].price and gib[region].price:
            rows = regions.setdefault(region, {}).setdefault(block, {})
            if isinstance(rows, dict):
                rows[family] = row
