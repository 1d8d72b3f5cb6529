"""Price lists of others become a table: those of apache-libcloud, karpenter-provider-gcp, SkyPilot, or our own form.

karpenter-provider-gcp (Apache-2.0) holds the price of each machine by region, on demand and on spot. A family whose
machines all cost so much for a vCPU and so much for a GiB is told by these two numbers, as Google's own list does; what
does not follow from them (accelerators, local SSDs, shared cores) keeps its own price.

apache-libcloud (Apache-2.0) holds Google's unit prices by region: vCPU and GiB of predefined and custom machines, local
SSDs, commitments. Its spot prices are older than its date and are left out, and so are prices of 0.

SkyPilot's catalogue (Apache-2.0; gcp/vms.csv) has a row for so many accelerators in a zone. GPUs that are attached to
n1 and TPUs are taken from it. Its machines are not: those with newer GPUs have the price of a flexible start in some
regions and the one on demand in others, and the row does not say which.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.placement.machines.catalog import Machine, default_catalog
from symphony_charts.placement.machines.prices import PriceTable, is_plain

__all__ = ["read_prices"]

_FAMILIES = ("n1", "n2", "n2d", "e2", "c2", "m1")
_CUSTOM = ("n1", "n2", "n2d", "e2")
_Prices = dict[str, dict[str, object]]
_CSV_HEAD = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,"
_ATTACHED = {name: f"nvidia-tesla-{name.lower()}" for name in ("K80", "P4", "P100", "T4", "V100")}
# The smallest slice of each generation: its chips, and what GKE calls the kind.
_SLICES = {
    "tpu-v3-8": (4, ("tpu-v3-device", "tpu-v3-slice")),
    "tpu-v4-8": (4, ("tpu-v4-podslice",)),
    "tpu-v5litepod-1": (1, ("tpu-v5-lite-device", "tpu-v5-lite-podslice")),
    "tpu-v5p-8": (4, ("tpu-v5p-slice",)),
    "tpu-v6e-1": (1, ("tpu-v6e-slice",)),
}
# What SkyPilot writes where it knows no price of a TPU.
_NO_PRICE = 700.0


class _Price(msgspec.Struct, frozen=True):
    price: float = 0


class _Part(msgspec.Struct, frozen=True):
    on_demand: dict[str, _Price] = {}
    committed_1yr: dict[str, _Price] = msgspec.field(default_factory=dict, name="1yr_commitment")
    committed_3yr: dict[str, _Price] = msgspec.field(default_factory=dict, name="3yr_commitment")


class _Family(msgspec.Struct, frozen=True):
    cpu: _Part = _Part()
    ram: _Part = _Part()


class _Region(msgspec.Struct, frozen=True):
    on_demand: dict[str, float] = {}
    spot: dict[str, float] = {}


class _Karpenter(msgspec.Struct):
    prices: dict[str, _Region]


class _Compute(msgspec.Struct):
    gce_instances: dict[str, _Family]
    gce_disks: dict[str, _Part]


class _Libcloud(msgspec.Struct):
    compute: _Compute
    updated: int


def read_prices(text: bytes, name: str, day_of: Callable[[int], str], date: str = "") -> PriceTable:
    """The table of a price list; `name` is said as its source, `day_of` gives the date of a second since 1970.

    `date` is that of a list which says none itself.

    Raises SpecError for any other text.
    """
    if text.startswith(_CSV_HEAD.encode()):
        return _of_skypilot(text, name, date)
    try:
        if b'"gce_instances"' in text:
            return _of_libcloud(msgspec.json.decode(text, type=_Libcloud), name, day_of)
        if b'"on_demand"' in text:
            return _of_karpenter(msgspec.json.decode(text, type=_Karpenter), name, date)
        table = msgspec.json.decode(text, type=PriceTable)
    except msgspec.MsgspecError as error:
        hint = "a table as docs/placement.md shows it, pricing.json of apache-libcloud, or SkyPilot's gcp/vms.csv"
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


def _of_skypilot(text: bytes, name: str, date: str) -> PriceTable:
    _check_date(name, date)
    regions: dict[str, dict[str, dict[str, tuple[float, float | None]]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(text.decode())):
            kind, count = row["AcceleratorName"], row["AcceleratorCount"]
            if row["InstanceType"] or (kind not in _ATTACHED and kind not in _SLICES) or float(count) != 1:
                continue
            price, spot = (float(row[key] or _NO_PRICE) for key in ("Price", "SpotPrice"))
            if price == _NO_PRICE:
                continue
            chips, names = _SLICES.get(kind, (1, (_ATTACHED.get(kind, ""),)))
            each = round(price / chips, 6), None if spot == _NO_PRICE else round(spot / chips, 6)
            listed = regions.setdefault(row["Region"], {}).setdefault("tpus" if kind in _SLICES else "gpus", {})
            listed |= dict.fromkeys(names, each)
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise SpecError.one(f"no price list: {error}", at=name, next="download the file again") from error
    return msgspec.convert({"date": date, "source": name, "regions": dict(sorted(regions.items()))}, PriceTable)


def _check_date(name: str, date: str) -> None:
    if not date:
        hint = "scripts/make_prices.py takes the date beside it; a table as docs/placement.md shows it says its own"
        raise SpecError.one("this price list says no date", at=name, next=hint)


def _of_karpenter(listed: _Karpenter, name: str, date: str) -> PriceTable:
    _check_date(name, date)
    regions: dict[str, object] = {}
    for region, prices in sorted(listed.prices.items()):
        units: dict[str, object] = {}
        machines: dict[str, object] = {}
        for family, rows in _families(prices).items():
            found, spot = _units(rows, prices.on_demand), _units(rows, prices.spot)
            if found is None:
                machines |= {m.name: (prices.on_demand[m.name], prices.spot.get(m.name)) for m in rows}
            else:
                units[family] = (*found, *(spot or (None, None)))
        for machine, price in prices.on_demand.items():
            described = default_catalog().get(machine)
            if described is not None and not _is_of_family(described):
                machines[machine] = (price, prices.spot.get(machine))
        regions[region] = {"units": units, "machines": {key: machines[key] for key in sorted(machines)}}
    return msgspec.convert({"date": date, "source": name, "regions": regions}, PriceTable)


def _is_of_family(machine: Machine) -> bool:
    return is_plain(machine) and not machine.local_ssds


def _families(prices: _Region) -> dict[str, list[Machine]]:
    """The machines of a list that are nothing but vCPUs and memory, by family."""
    families: dict[str, list[Machine]] = {}
    for name in prices.on_demand:
        machine = default_catalog().get(name)
        if machine is not None and _is_of_family(machine):
            families.setdefault(machine.family, []).append(machine)
    return families


def _units(machines: list[Machine], prices: dict[str, float]) -> tuple[float, float] | None:
    """What a vCPU and a GiB cost, if that explains the price of each machine to 0.1 %; else None."""
    rows = [(m.vcpu, m.memory_mib / 1024, prices[m.name]) for m in machines if m.name in prices]
    if len(rows) < len(machines):
        return None
    (cpu, gib, price), (more_cpu, more_gib, more) = (
        choose(rows, key=lambda row: row[1] / row[0]) for choose in (min, max)
    )
    determinant = cpu * more_gib - more_cpu * gib
    if abs(determinant) < 1e-6 and _has_one_ratio(machines[0].family):  # all of it in the vCPU
        found = price / cpu, 0.0
    elif abs(determinant) < 1e-6:
        return None
    else:
        found = (price * more_gib - more * gib) / determinant, (cpu * more - more_cpu * price) / determinant
    is_exact = all(abs(c * found[0] + g * found[1] - said) <= 0.001 * said for c, g, said in rows)
    return (round(found[0], 8), round(found[1], 8)) if is_exact else None


def _has_one_ratio(family: str) -> bool:
    """Whether all machines of a family have as much memory for a vCPU, so that one of them speaks for all."""
    plain = [m for m in default_catalog().machines.values() if m.family == family and _is_of_family(m)]
    return max(m.memory_mib / m.vcpu for m in plain) - min(m.memory_mib / m.vcpu for m in plain) < 1
