"""`symph restart`: start processes of a running experiment again."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.errors import NotFound
from symphony_charts.local import up
from symphony_charts.local.runs import Run, find_run, find_slots, live_runs

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Stop each as `symph down` would, start it again, and say which."""
    live_run, words = _choose(args.process, args.experiment_name)
    processes = live_run.state()["processes"]
    named = [slot for word in words for slot in find_slots(live_run, word)]
    slots = list(dict.fromkeys(named)) if words else [item["slot"] for item in processes]
    if not args.dry_run:
        up.restart(live_run, slots)
    items = [{"name": processes[slot]["name"], "group": processes[slot]["group"]} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column("RESTARTED", "name")]
    output.print_items(args, "Process", items, columns, empty="nothing runs here")
    return 0


def _choose(words: list[str], experiment: str | None) -> tuple[Run, list[str]]:
    """The run and the processes that `PROCESS... [EXPERIMENT]` means; `-e` may name the experiment instead.

    A last word that is a process of the only experiment here, after others of it, is one also where an experiment has
    that name: several processes were named so before experiments could stand there.
    """
    if experiment is not None or not words:
        return find_run(experiment, live=True), words
    *others, last = words
    try:
        only = find_run(None, live=True)
        if all(_has(only, word) for word in words):
            return only, words
    except NotFound:
        only = None
    if last in [run.experiment for run in live_runs()]:
        return find_run(last, live=True), others
    if only is None and others:
        return find_run(last, live=True), others
    return only or find_run(None, live=True), words


def _has(run: Run, word: str) -> bool:
    try:
        return bool(find_slots(run, word))
    except NotFound:
        return False
