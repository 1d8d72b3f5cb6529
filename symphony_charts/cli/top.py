"""`symph top`: live state and resource usage of processes."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence

from symphony_charts.backend import protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, options, output
from symphony_charts.cli.output import Screen
from symphony_charts.system import installation


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    parser.add_argument("-1", "--once", action="store_true", help="print once; without a terminal that is the default")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=options.seconds,
        default=None,
        help="from look to look (default: 0.5s; plain: 2s)",
    )
    parser.add_argument("--plain", action="store_true", help="a plain table, without keys, also where textual is there")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml"))
    options.add_examples(parser, "symph top", "symph top rl --on kube", "symph top rl --once -o json")


_MIB = 1 << 20
# Refresh intervals of the cockpit and the plain table in seconds.
_OFTEN_S, _SELDOM_S = 0.5, 2.0


def run(args: argparse.Namespace) -> int:
    """Show processes, restarts, CPU, memory and last lines until the experiment has ended."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    if args.once or args.output != "table" or not sys.stdout.isatty():
        items = _items(watcher, status)
        output.print_items(args, "Process", items, _columns(items))
        return 0

    if not args.plain and importlib.util.find_spec("textual"):
        # Textual takes half a second to import; the plain table does not need it.
        from symphony_charts.cli.cockpit import Cockpit

        Cockpit(watcher, status.name, experiments.place_flags(args), args.interval or _OFTEN_S).run()
        return 0
    if not args.plain:
        output.note(f"this is the plain table; for a screen with keys: {installation.command_for_extra('top')}")
    screen = Screen()
    while True:
        color = output.use_color(sys.stdout, getattr(args, "color", None))
        head = f"{status.name}   {status.phase}   {time.strftime('%H:%M:%S')}"
        items = _items(watcher, status)
        table = output.format_table(items, _columns(items), color=color, room=output.room_of("table"))
        screen.show(f"{head}\n{table}")
        if status.is_final:
            return 0
        time.sleep(args.interval or _SELDOM_S)
        status = watcher.describe(status.name, events=False)


def _items(watcher: protocol.Watcher, status: backend_status.ExperimentStatus) -> list[dict[str, object]]:
    usage, last = watcher.usage(status.name), watcher.last_lines(status.name)
    items: list[dict[str, object]] = []
    for instance in status.instances:
        used = usage.get(instance.path)
        items.append(
            {
                "name": instance.path,
                "phase": instance.phase,
                "state": instance.state,
                "restarts": instance.restarts,
                "cpu": used.cpu if used else None,
                "memory": used.memory if used else None,
                "gpu": used.gpu if used else None,
                "gpuMemory": used.gpu_memory if used else None,
                "lastLine": last.get(instance.path, ""),
            }
        )
    return items


def _cpu(item: object) -> str:
    return f"{item:.2f}" if isinstance(item, float) else ""


def _memory(item: object) -> str:
    return f"{item / _MIB:.0f} MiB" if isinstance(item, int) else ""


def _gpu(item: Mapping[str, object]) -> str:
    busy = item["gpu"]
    parts = [f"{busy:.0%}" if isinstance(busy, float) else "", _memory(item["gpuMemory"])]
    return " ".join(part for part in parts if part)


def _columns(items: Sequence[Mapping[str, object]]) -> list[output.Column]:
    return [
        output.Column("PROCESS", "name"),
        output.Column("STATE", "state", state=experiments.phase_color),
        output.Column("RESTARTS", "restarts"),
        output.Column("CPU", lambda item: _cpu(item["cpu"])),
        output.Column("MEMORY", lambda item: _memory(item["memory"])),
        *([output.Column("GPU", _gpu)] if any(map(_gpu, items)) else []),
        output.Column("LAST LINE", lambda item: str(item["lastLine"])[:100]),
    ]
