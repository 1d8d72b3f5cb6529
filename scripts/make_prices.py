"""Write symphony_charts/placement/data/prices.json anew from price lists of others, one after the other.

    pip download --no-deps apache-libcloud && unzip apache_libcloud-*.whl libcloud/data/pricing.json
    python scripts/make_prices.py libcloud/data/pricing.json "apache-libcloud 3.9.1"
    python scripts/make_prices.py initial-prices.json "karpenter-provider-gcp, pricing of each machine" 2026-08-03
    python scripts/make_prices.py vms.csv "SkyPilot's catalogue, v8 at 8427bbf" 2026-11-23

The second list is that of cloudpilot-ai/karpenter-provider-gcp (Apache-2.0; pkg/providers/pricing), with the date of
its commit; the third is catalogs/v8/gcp/vms.csv of skypilot-org/skypilot-catalog (Apache-2.0), and the day it was read.
Of two lists that say the same field of a region the newer one is kept, unless it knows fewer kinds of GPU. Where units
differ by more than 0.5 % the family must stand in REPRICED, or the script fails.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.placement.machines.price_list import read_prices

OUTPUT = Path(__file__).parent.parent / "symphony_charts/placement/data/prices.json"
# Families whose price is not what it was in an older list: by 7 % in europe-west6, by 9 % in us-east4 and us-west4; the
# older list has nearly twice the price of n2d in asia-south1.
REPRICED = {
    ("asia-south1", "n2d"), ("europe-west6", "n1"), ("europe-west6", "e2"), ("us-east4", "c2"), ("us-west4", "n2"),
    ("us-west4", "c2"),
}  # fmt: skip


def faults(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Where both say what a standard machine of a family costs, and differ by more than 0.5 %."""
    for region in sorted(before.keys() & now.keys()):
        units = [table[region].get("units", {}) for table in (before, now)]
        for family in sorted(units[0].keys() & units[1].keys() - {"m1"}):
            one, other = (table[family] for table in units)
            ratio = 3.75 if family == "n1" else 4
            differs = abs((one[0] + ratio * one[1]) / (other[0] + ratio * other[1]) - 1) > 0.005
            if differs and (region, family) not in REPRICED:
                yield f"{region} {family}: {one} and {other}"


def day_of(moment: int) -> str:
    """The date of a second since 1970."""
    return datetime.fromtimestamp(moment, timezone.utc).date().isoformat()


def joined(before: dict[str, Any], now: dict[str, Any], origin: list[str], default: list[str]) -> dict[str, Any]:
    """The fields of a region, each from the newer list; the origin of its units and machines is the region's."""
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
    """Write the file; 1 where the lists disagree."""
    path, name, date = (*sys.argv[1:], "")[:3]
    read = read_prices(Path(path).read_bytes(), name, day_of, date)
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


if __name__ == "__main__":
    sys.exit(main())
