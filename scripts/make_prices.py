"""Write symphony_charts/placement/data/prices.json anew from a price list that a package of a registry holds.

    pip download --no-deps apache-libcloud && unzip apache_libcloud-*.whl libcloud/data/pricing.json
    python scripts/make_prices.py libcloud/data/pricing.json "apache-libcloud 3.9.1"

What the file on disk says of a region without a date of its own stays; both must agree where they say the same, or the
script fails.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.placement.machines.price_list import read_prices

OUTPUT = Path(__file__).parent.parent / "symphony_charts/placement/data/prices.json"
OWN = ("units", "machines")


def faults(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Where both say what a standard machine of a family costs, and differ by more than 0.5 %."""
    found = []
    for region in sorted(before.keys() & now.keys()):
        for family in sorted(before[region]["units"].keys() & now[region].get("units", {}).keys()):
            ratio = 3.75 if family == "n1" else 4
            one, other = (table[region]["units"][family] for table in (before, now))
            if family != "m1" and abs((one[0] + ratio * one[1]) / (other[0] + ratio * other[1]) - 1) > 0.005:
                found.append(f"{region} {family}: {one} and {other}")
    return found


def day_of(moment: int) -> str:
    """The date of a second since 1970."""
    return datetime.fromtimestamp(moment, timezone.utc).date().isoformat()


def main() -> int:
    """Write the file; 1 where the lists disagree."""
    read = read_prices(Path(sys.argv[1]).read_bytes(), sys.argv[2], day_of)
    listed = {name: _said(msgspec.to_builtins(prices)) for name, prices in read.regions.items()}
    table = json.loads(OUTPUT.read_text())
    wrong = faults({name: prices for name, prices in table["regions"].items() if "date" not in prices}, listed)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    for region, now in listed.items():
        before = table["regions"].get(region)
        if before is None or "date" in before:
            table["regions"][region] = {"date": read.date, "source": read.source, **now}
            continue
        # Of its own stays what no earlier run of this script has put there.
        package = read.source.split()[0]
        origins = {k: v for k, v in before.pop("origins", {}).items() if not v[1].startswith(package)}
        kept = {k: v for k, v in before.items() if k in OWN or k in origins}
        origins |= {field: [read.date, read.source] for field in now if field not in kept}
        table["regions"][region] = {**now, **kept, "origins": origins}
    table["regions"] = dict(sorted(table["regions"].items()))
    text = json.dumps(table, indent=1)
    OUTPUT.write_text(re.sub(r"\[[^][]*\]", lambda match: " ".join(match[0].split()), text) + "\n")
    return 0


def _said(prices: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in prices.items() if value not in ({}, None, "")}


if __name__ == "__main__":
    sys.exit(main())
