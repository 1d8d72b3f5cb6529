"""``python -m tests.e2e.oracle N``: N random experiments, three orders each, and 50 filter pairs for each of them.

PROVEN must mean that all pods of the group are bound in every order, NO that something stays pending in every order.
Prints the counts, and every violation with the seed that makes it again; exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from symphony_charts.placement.plan import plan_demands
from tests.e2e.oracle.cases import Case, make_case
from tests.e2e.oracle.live import Scheduler, scheduler
from tests.e2e.oracle.pairs import PairReport, compare_filters

__all__ = ["Report", "compare_experiments"]

ORDERS = 3


@dataclass
class Report:
    """What the experiments showed; `false_proven` and `false_no` must stay empty."""

    cases: int = 0
    pods: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    whole: Counter[str] = field(default_factory=Counter)
    false_proven: list[str] = field(default_factory=list)
    false_no: list[str] = field(default_factory=list)


def compare_experiments(real: Scheduler, seeds: range, *, workers: int = 8) -> Report:
    """Runs the cases of `seeds` in three orders each, `workers` at a time."""
    report = Report()
    with ThreadPoolExecutor(workers) as pool:
        for case, bound in pool.map(lambda seed: _run(real, seed), seeds):
            _judge(case, bound, report)
            if report.cases % 100 == 0:
                faults = len(report.false_proven) + len(report.false_no)
                sys.stderr.write(f"oracle: {report.cases} experiments, {faults} faults\n")
    return report


def _run(real: Scheduler, seed: int) -> tuple[Case, list[Counter[int]]]:
    """The outcomes in three orders; one that speaks against a proof is looked at again with more patience."""
    case = make_case(seed)
    forward = [number for number, demand in enumerate(case.demands) for _ in range(demand.count)]
    shuffled = random.Random(seed).sample(forward, len(forward))
    proven = {group.name for group in plan_demands(list(case.demands), case.pools).groups if group.verdict == "PROVEN"}
    outcomes = []
    for number, order in enumerate((forward, forward[::-1], shuffled)):
        bound = real.outcome(case, order, f"c{seed}-{number}")
        if any(f"k{i}" in proven and bound[i] < demand.count for i, demand in enumerate(case.demands)):
            bound = real.outcome(case, order, f"c{seed}-{number}-again", patience_s=15.0)
        outcomes.append(bound)
    return case, outcomes


def _judge(case: Case, outcomes: list[Counter[int]], report: Report) -> None:
    plan = plan_demands(list(case.demands), case.pools)
    verdicts = {group.name: group.verdict for group in plan.groups}
    report.cases += 1
    report.pods += case.pods * ORDERS
    report.verdicts.update(verdicts.values())
    all_bound = [sum(bound.values()) == case.pods for bound in outcomes]
    if plan.verdict == "PACKABLE":
        report.whole["packable and bound" if all(all_bound) else "packable, not always bound"] += 1
    if plan.verdict == "UNKNOWN":
        report.whole["unknown and bound" if all(all_bound) else "unknown, not always bound"] += 1
    for number, demand in enumerate(case.demands):
        least = min(bound[number] for bound in outcomes)
        if verdicts[f"k{number}"] == "PROVEN" and least < demand.count:
            report.false_proven.append(f"seed {case.seed}: k{number} is PROVEN, {least} of {demand.count} bound")
    if "NO" in verdicts.values() and any(all_bound):
        report.false_no.append(f"seed {case.seed}: {verdicts}, and all {case.pods} pods were bound")


def _print(report: Report, pairs: PairReport, seconds: float) -> None:
    say = sys.stdout.write
    say(f"{report.cases} experiments x {ORDERS} orders, {report.pods} pods, {seconds:.0f} s\n")
    say("groups: " + ", ".join(f"{verdict} {count}" for verdict, count in sorted(report.verdicts.items())) + "\n")
    say("".join(f"  {what}: {count}\n" for what, count in sorted(report.whole.items())))
    say(f"false PROVEN: {len(report.false_proven)}, false NO: {len(report.false_no)}\n")
    say(f"filter pairs: {pairs.pairs}, disagreements {len(pairs.disagreements)}\n")
    families: Counter[str] = Counter()
    for reason, count in pairs.reasons.items():
        families[reason.split(" ")[0]] += count
    say("  refusals: " + ", ".join(f"{reason} {count}" for reason, count in families.most_common()) + "\n")
    for fault in (*report.false_proven, *report.false_no, *pairs.disagreements[:5]):
        say(f"error: {fault}\n")


def main() -> int:
    """0 if the planner was right every time."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.oracle", description=__doc__)
    parser.add_argument("number", type=int, nargs="?", default=50, help="experiments (%(default)s)")
    parser.add_argument("--pairs", type=int, default=None, help="filter pairs (50 for each experiment)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (%(default)s)")
    parser.add_argument("--workers", type=int, default=8, help="experiments at a time (%(default)s)")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="symph-oracle-") as folder, scheduler(Path(folder) / "rig") as real:
        pairs = compare_filters(real, options.number * 50 if options.pairs is None else options.pairs, options.seed + 1)
        seeds = range(options.seed, options.seed + options.number)
        report = compare_experiments(real, seeds, workers=options.workers)
    _print(report, pairs, time.monotonic() - started)
    return 1 if report.false_proven or report.false_no or pairs.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
