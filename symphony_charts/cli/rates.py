"""`keep_rate` writes down what a run on this machine would cost an hour on the node pools that it is planned on."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.values import prepared_of
from symphony_charts.errors import SymphError
from symphony_charts.local.rate import write_rate
from symphony_charts.local.runs import Run
from symphony_charts.placement.report.money import priced_total, unpriced
from symphony_charts.spec.files import SpecFile

__all__ = ["keep_rate"]


def keep_rate(args: argparse.Namespace, run: Run, spec: SpecFile) -> None:
    """Keep the price of the plan on the pools of the command line, else of the spec; nothing where neither names any.

    It is asked for once a run has started, and is never the reason that one fails.
    """
    named = getattr(args, "pools", None) or [spec.experiment.placement.pools]
    if not named[0]:
        return
    source = f"as planned on {' + '.join(map(str, named))}"
    try:
        per_hour, missing = _price(args, spec)
        write_rate(run, per_hour, source, missing)
    except SymphError as error:
        output.note(f"note: no price of {run.experiment} is known: {error.what}")


def _price(args: argparse.Namespace, spec: SpecFile) -> tuple[float, list[str]]:
    """Dollars an hour of what has a price, and what has none. Raises SpecError for what makes no chart."""
    plan = prepared_of(args, spec, force=True).plan
    assert plan is not None  # noqa: S101 - there are pools
    homeless = [f"{group.name}, which no pool holds" for group in plan.groups if group.verdict == "NO"]
    return priced_total(plan), [*unpriced(plan), *homeless]
