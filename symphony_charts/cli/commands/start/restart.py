"""`symph restart`: start processes of a running experiment again."""

from __future__ import annotations

import argparse
import shlex

from symphony_charts.cli import output
from symphony_charts.cli.experiments import meant_here, name_in_spec, run_to_change
from symphony_charts.errors import NotFound
from symphony_charts.local import up
from symphony_charts.local.runs import Run, find_run, find_slots, live_runs

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Stop each as `symph down` would, start it again, and say which."""
    live_run, words = _choose(args)
    processes = live_run.state().processes
    named = [slot for word in words for slot in find_slots(live_run, word)]
    slots = list(dict.fromkeys(named)) if words else [process.slot for process in processes]
    if not args.dry_run:
        up.restart(live_run, slots)
    items = [{"name": processes[slot].name, "group": processes[slot].group} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column("WOULD RESTART" if args.dry_run else "RESTARTED", "name")]
    output.print_items(args, "Process", items, columns, empty="nothing runs here")
    return 0


def _choose(args: argparse.Namespace) -> tuple[Run, list[str]]:
    """Return the run and the processes that `PROCESS... [EXPERIMENT]` means; `-e` may name the experiment instead.

    A last word that is a process of the experiment meant without a name, after others of it, is a process also where an
    experiment has that name.
    """
    words: list[str] = args.process
    command = shlex.join(["restart", *words, "-e"])
    if args.experiment_name is not None or not words:
        return run_to_change(args, args.experiment_name, command), words
    *others, last = words
    try:
        only = find_run(meant_here(live=True)[0], live=True)
    except NotFound:
        only = None
    if only is None or not all(_has(only, word) for word in words):
        name = name_in_spec(last)
        if name in [run.experiment for run in live_runs()] or (only is None and others):
            return find_run(name, live=True), others
    return run_to_change(args, None, command), words


def _has(run: Run, word: str) -> bool:
    try:
        return bool(find_slots(run, word))
    except NotFound:
        return False
