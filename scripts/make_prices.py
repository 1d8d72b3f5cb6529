"""Write symphony_charts/placement/data/prices.json from public price lists, one after the other.

    pip download --no-deps apache-libcloud && unzip apache_libcloud-*.whl libcloud/data/pricing.json
    python scripts/make_prices.py libcloud/data/pricing.json "apache-libcloud 3.9.1"
    python scripts/make_prices.py initial-prices.json "karpenter-provider-gcp, pricing of each machine" 2026-08-03
    python scripts/make_prices.py vms.csv "SkyPilot's catalogue, v8 at 8427bbf" 2026-11-23

The second list is from cloudpilot-ai/karpenter-provider-gcp (Apache-2.0; pkg/providers/pricing), with the date of its
commit; the third is catalogs/v8/gcp/vms.csv of skypilot-org/skypilot-catalog (Apache-2.0), with the day of its
download. If two lists have the same field of a region, the newer one wins, unless it knows fewer kinds of GPU. If units
differ by more than 0.5 %, the family must be in REPRICED, or the script fails.

karpenter-provider-gcp has the price of each machine by region, on demand and on spot. A family whose machines all cost
the same per vCPU and per GiB is described by these two numbers, as in Google's own list; other machines (accelerators,
local SSDs, shared cores) keep their own price.

apache-libcloud (Apache-2.0) has Google's unit prices by region: vCPU and GiB of predefined and custom machines, local
SSDs. Its spot prices are older than its date and are omitted, and so are prices of 0.

SkyPilot's catalogue has a row per number of accelerators in a zone. It provides the prices of GPUs that are attached to
n1, and of TPUs. Its machine prices are not used: machines with newer GPUs have the price of a flexible start in some
regions and the price on demand in others, and the row does not show which.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.placement.catalog import Machine, default_catalog
from symphony_charts.placement.prices import PriceTable, is_plain

OUTPUT = Path(__file__).parent.parent / "symphony_charts/placement/data/prices.json"
# Families whose price differs from an older list: by 7 % in europe-west6, by 9 % in us-east4 and us-west4; the older
# list has nearly twice the price of n2d in asia-south1.
REPRICED = {
    ("asia-south1", "n2d"), ("europe-west6", "n1"), ("europe-west6", "e2"), ("us-east4", "c2"), ("us-west4", "n2"),
    ("us-west4", "c2"),
}  # fmt: skip
_FAMILIES = ("n1", "n2", "n2d", "e2", "c2", "m1")
_CUSTOM = ("n1", "n2", "n2d", "e2")
_Prices = dict[str, dict[str, object]]
_CSV_HEAD = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,"
_ATTACHED = {name: f"nvidia-tesla-{name.lower()}" for name in ("K80", "P4", "P100", "T4", "V100")}
# The smallest slice of each generation: its chips, and GKE's name of the kind.
_SLICES = {
    "tpu-v3-8": (4, ("tpu-v3-device", "tpu-v3-slice")),
    "tpu-v4-8": (4, ("tpu-v4-podslice",)),
    "tpu-v5litepod-1": (1, ("tpu-v5-lite-device", "tpu-v5-lite-podslice")),
    "tpu-v5p-8": (4, ("tpu-v5p-slice",)),
    "tpu-v6e-1": (1, ("tpu-v6e-slice",)),
}
# SkyPilot's value for an unknown TPU price.
_NO_PRICE = 700.0


def faults(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield standard machines whose prices in the two lists differ by more than 0.5 %."""
    for region in sorted(before.keys() & now.keys()):
        units = [table[region].get("units", {}) for table in (before, now)]
        for family in sorted(units[0].keys() & units[1].keys() - {"m1"}):
            one, other = (table[family] for table in units)
            ratio = 3.75 if family == "n1" else 4
            differs = abs((one[0] + ratio * one[1]) / (other[0] + ratio * other[1]) - 1) > 0.005
            if differs and (region, family) not in REPRICED:
                yield f"{region} {family}: {one} and {other}"


def joined(before: dict[str, Any], now: dict[str, Any], origin: list[str], default: list[str]) -> dict[str, Any]:
    """Return the fields of a region, each from the newer list; the origin of `units` becomes the region's origin."""
    rest = [before.get("date", default[0]), before.get("source", default[1])]
    said = {key: value for key, value in before.items() if key not in ("date", "source", "origins")}
    origins = {key: before.get("origins", {}).get(key, rest) for key in said}
    for key, value in now.items():
        knows_less = key == "gpus" and bool(said.get(key, {}).keys() - value.keys())
        if key not in said or (origin[0] >= origins[key][0] and not knows_less):
            said[key], origins[key] = value, origin
    own = origins.get("units", origin)
    others = {key: list(value) for key, value in sorted(origins.items()) if list(value) != list(own)}
    return {"date": own[0], "source": own[1], **said} | ({"origins": others} if others else {})


def main() -> int:
    """Write the file; return 1 if the lists disagree."""
    path, name, date = (*sys.argv[1:], "")[:3]
    read = read_prices(Path(path).read_bytes(), name, date)
    listed = {region: _said(msgspec.to_builtins(prices)) for region, prices in read.regions.items()}
    table = json.loads(OUTPUT.read_text())
    wrong = list(faults(table["regions"], listed))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    default = [table["date"], table.get("source", "")]
    for region, now in listed.items():
        table["regions"][region] = joined(table["regions"].get(region, {}), now, [read.date, name], default)
    table["regions"] = dict(sorted(table["regions"].items()))
    text = json.dumps(table, indent=1)
    OUTPUT.write_text(re.sub(r"\[[^][]*\]", lambda match: " ".join(match[0].split()), text) + "\n")
    return 0


def _said(prices: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in prices.items() if value not in ({}, None, "")}


class _Price(msgspec.Struct, frozen=True):
    price: float = 0


class _Part(msgspec.Struct, frozen=True):
    on_demand: dict[str, _Price] = {}


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


def read_prices(text: bytes, name: str, date: str = "") -> PriceTable:
    """Return the table of a price list with the source `name`; `date` is for lists without a date.

    Raises SpecError for any other text.
    """
    if text.startswith(_CSV_HEAD.encode()):
        return _of_skypilot(text, name, date)
    try:
        if b'"gce_instances"' in text:
            return _of_libcloud(msgspec.json.decode(text, type=_Libcloud), name)
        return _of_karpenter(msgspec.json.decode(text, type=_Karpenter), name, date)
    except msgspec.MsgspecError as error:
        raise SpecError.one(f"no price list: {error}", at=name) from error


def _of_libcloud(listed: _Libcloud, name: str) -> PriceTable:
    instances, regions = listed.compute.gce_instances, dict[str, dict[str, object]]()
    for family in _FAMILIES:
        parts = instances.get(family, _Family())
        _put(regions, "units", family, parts.cpu.on_demand, parts.ram.on_demand, tail=(None, None))
    for family in _CUSTOM:
        parts = instances.get(f"{family}_custom", _Family())
        extended = instances.get(f"{family}_custom_extended", _Family()).ram.on_demand
        _put(regions, "custom", family, parts.cpu.on_demand, parts.ram.on_demand, extended=extended)
    for region, price in listed.compute.gce_disks.get("Local SSD", _Part()).on_demand.items():
        if price.price:
            regions.setdefault(region, {})["ssd_gib"] = round(price.price, 9)
    data = {
        "date": datetime.fromtimestamp(listed.updated, timezone.utc).date().isoformat(),
        "source": name,
        "regions": dict(sorted(regions.items())),
    }
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
        raise SpecError.one("this price list has no date", at=name, next="give the date as the third argument")


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
    """Return the machines of a list that consist only of vCPUs and memory, by family."""
    families: dict[str, list[Machine]] = {}
    for name in prices.on_demand:
        machine = default_catalog().get(name)
        if machine is not None and _is_of_family(machine):
            families.setdefault(machine.family, []).append(machine)
    return families


def _units(machines: list[Machine], prices: dict[str, float]) -> tuple[float, float] | None:
    """Return the prices of a vCPU and a GiB, if they explain every machine's price to 0.1 %; else None."""
    rows = [(m.vcpu, m.memory_mib / 1024, prices[m.name]) for m in machines if m.name in prices]
    if len(rows) < len(machines):
        return None
    (cpu, gib, price), (more_cpu, more_gib, more) = (
        choose(rows, key=lambda row: row[1] / row[0]) for choose in (min, max)
    )
    determinant = cpu * more_gib - more_cpu * gib
    if abs(determinant) < 1e-6 and _has_one_ratio(machines[0].family):  # the whole price is the vCPU's
        found = price / cpu, 0.0
    elif abs(determinant) < 1e-6:
        return None
    else:
        found = (price * more_gib - more * gib) / determinant, (cpu * more - more_cpu * price) / determinant
    is_exact = all(abs(c * found[0] + g * found[1] - said) <= 0.001 * said for c, g, said in rows)
    return (round(found[0], 8), round(found[1], 8)) if is_exact else None


def _has_one_ratio(family: str) -> bool:
    """Return True if all machines of a family have the same memory per vCPU; one price then covers both."""
    plain = [m for m in default_catalog().machines.values() if m.family == family and _is_of_family(m)]
    return max(m.memory_mib / m.vcpu for m in plain) - min(m.memory_mib / m.vcpu for m in plain) < 1


if __name__ == "__main__":
    sys.exit(main())
