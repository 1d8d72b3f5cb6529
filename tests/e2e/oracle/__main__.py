"""``python -m tests.e2e.oracle N``: N random experiments, three orders each, and 50 filter pairs for each of them.

From the spec to the binding: every experiment takes the road that all verbs take, and the pods of its rendered objects
are given to the real scheduler. PROVEN must mean that all pods of the group are bound in every order, NO that they
cannot all be. Prints the counts, and every violation with the seed, the spec and the pools that make it again; exits 1
if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.e2e.oracle.experiments import ORDERS, Report, compare_experiments
from tests.e2e.oracle.live import scheduler
from tests.e2e.oracle.pairs import PairReport, compare_filters

__all__ = ["main"]

_KINDS = ("false PROVEN", "false NO", "false knowledge", "false count", "refused pod")


def _print(report: Report, pairs: PairReport, seconds: float) -> None:
    say = sys.stdout.write
    say(f"{report.cases} experiments x {ORDERS} orders, {report.pods} pods, {seconds:.0f} s")
    say(f"; {report.refused_specs} more specs were refused\n")
    say("groups: " + ", ".join(f"{verdict} {count}" for verdict, count in sorted(report.verdicts.items())) + "\n")
    say("".join(f"  {what}: {count}\n" for what, count in sorted(report.bound.items())))
    say(", ".join(f"{kind}: {len(report.of_kind(kind))}" for kind in _KINDS) + "\n")
    say(f"filter pairs: {pairs.pairs}, disagreements {len(pairs.disagreements)}\n")
    families: Counter[str] = Counter()
    for reason, count in pairs.reasons.items():
        families[reason.split(" ")[0]] += count
    say("  refusals: " + ", ".join(f"{reason} {count}" for reason, count in families.most_common()) + "\n")
    for kind, text in report.faults:
        say(f"error: {kind}: {text}\n")
    for disagreement in pairs.disagreements[:5]:
        say(f"error: {disagreement}\n")


def main() -> int:
    """0 if the planner was right every time."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.oracle", description=__doc__)
    parser.add_argument("number", type=int, nargs="?", default=50, help="experiments (%(default)s)")
    parser.add_argument("--pairs", type=int, default=None, help="filter pairs (50 for each experiment)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (%(default)s)")
    parser.add_argument("--workers", type=int, default=8, help="experiments at a time (%(default)s)")
    options = parser.parse_args()
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="symph-oracle-") as folder,
        scheduler(Path(folder) / "rig", namespaces=options.workers) as real,
    ):
        pairs = compare_filters(real, options.number * 50 if options.pairs is None else options.pairs, options.seed + 1)
        seeds = range(options.seed, options.seed + options.number)
        report = compare_experiments(real, seeds, workers=options.workers)
    _print(report, pairs, time.monotonic() - started)
    return 1 if report.faults or pairs.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
