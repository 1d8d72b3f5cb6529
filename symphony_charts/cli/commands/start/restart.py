"""`symph restart`: start processes of a running experiment again."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.local import up
from symphony_charts.local.runs import find_run, find_slots

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Stop each as `symph down` would, start it again, and say which."""
    live_run = find_run(args.experiment_name, live=True)
    processes = live_run.state()["processes"]
    named = [slot for word in args.process for slot in find_slots(live_run, word)]
    slots = list(dict.fromkeys(named)) if args.process else [item["slot"] for item in processes]
    if not args.dry_run:
        up.restart(live_run, slots)
    items = [{"name": processes[slot]["name"], "group": processes[slot]["group"]} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column("RESTARTED", "name")]
    output.print_items(args, "Process", items, columns, empty="nothing runs here")
    return 0
