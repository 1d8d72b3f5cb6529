"""`symph top`: live state and resource usage of processes."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from typing import Any

from symphony_charts.backend import protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import cockpit, cockpit_rows, experiments, options, output
from symphony_charts.cli.output import Screen
from symphony_charts.system import installation

LATE = (cockpit,)  # textual takes half a second, and need not be installed


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_flag(parser, "-1", "--once", help="print once; without a terminal that is the default")
    text = "time between updates (default: 0.5s; plain: 2s)"
    parser.add_argument("--interval", metavar="TIME", type=options.seconds, help=text)
    options.add_flag(parser, "--plain", help="a plain table without key bindings, even if textual is installed")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml"))
    options.add_examples(parser, "symph top", "symph top rl --on kube", "symph top rl --once -o json")


# Refresh intervals of the cockpit and the plain table in seconds.
_OFTEN_S, _SELDOM_S = 0.5, 2.0


def run(args: argparse.Namespace) -> int:
    """Show processes, restarts, CPU, memory and last lines until the experiment has ended."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    if args.once or args.output != "table" or not sys.stdout.isatty():
        items = _items(watcher, status)
        output.print_items(args, "Process", items, cockpit_rows.columns_of(items))
        return 0

    if not args.plain and importlib.util.find_spec("textual"):
        cockpit.Cockpit(watcher, status.name, experiments.place_flags(args), args.interval or _OFTEN_S).run()
        return 0
    if not args.plain:
        output.note(f"this is the plain table; for a screen with keys: {installation.command_for_extra('top')}")
    screen = Screen()
    while True:
        head = f"{status.name}   {status.phase_text}   {time.strftime('%H:%M:%S')}"
        items = _items(watcher, status)
        screen.show(f"{head}\n{output.table_of(args, items, cockpit_rows.columns_of(items))}")
        if status.is_final:
            return 0
        time.sleep(args.interval or _SELDOM_S)
        status = watcher.describe(status.name, events=False)


def _items(watcher: protocol.Watcher, status: backend_status.ExperimentStatus) -> list[dict[str, Any]]:
    usage, last = watcher.usage(status.name), watcher.last_lines(status.name)
    return cockpit_rows.arranged(cockpit_rows.items_of(status, usage, last, time.time()), "", None)
