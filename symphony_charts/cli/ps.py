"""`symph ps`: the processes of an experiment, wherever it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from symphony_charts.backend import protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, options, output
from symphony_charts.cli.output import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="show every change until the experiment has ended")
    options.add_backend(parser)
    options.add_output(parser)
    options.add_examples(parser, "symph ps", "symph ps ring -o json", "symph ps -w rl --on kube")


def run(args: argparse.Namespace) -> int:
    """List them once, or again at each change until the experiment has reached a final state or is gone."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    if not args.watch:
        _print(args, status, watcher)
        if args.output in ("table", "wide"):
            experiments.say(experiments.diagnose(watcher, status))
        return 0

    screen = Screen()
    for now in watcher.changes(status.name):
        if now is None:
            output.note(f"{status.name} is gone")
            return 0
        if args.output in ("table", "wide"):
            color = output.use_color(sys.stdout, getattr(args, "color", None))
            headers = not args.no_headers
            columns, room = _columns(args, now, watcher), output.room_of(args.output)
            screen.show(output.format_table(_items(now), columns, headers=headers, color=color, room=room))
        else:
            _print(args, now, watcher)
        if now.is_final:
            break
    return 0


def _print(args: argparse.Namespace, status: backend_status.ExperimentStatus, watcher: protocol.Watcher) -> None:
    columns = _columns(args, status, watcher)
    output.print_items(args, "Process", _items(status), columns, empty=f"{status.name} has no processes yet")


def _items(status: backend_status.ExperimentStatus) -> list[dict[str, object]]:
    return [
        {
            "name": instance.name,
            "group": instance.group,
            "process": instance.process,
            "index": instance.index,
            "phase": instance.phase,
            "state": instance.state,
            "ready": instance.ready,
            "restarts": instance.restarts,
            "status": instance.status,
            "reason": instance.reason,
            "place": instance.place,
            "pod": instance.pod,
            "gpus": list(instance.gpus),
        }
        for instance in status.instances
    ]


def _columns(
    args: argparse.Namespace, status: backend_status.ExperimentStatus, watcher: protocol.Watcher
) -> list[output.Column]:
    last = watcher.last_lines(status.name) if args.output == "wide" else {}

    def last_line(item: Mapping[str, object]) -> str:
        return last.get(f"{item['group']}/{item['name']}" if item["group"] else str(item["name"]), "")[:80]

    gpus = output.Column("GPUS", experiments.gpu_ids, is_wide=True)
    return [
        output.Column("GROUP", "group"),
        output.Column("NAME", "name"),
        output.Column("READY", lambda item: "1" if item["ready"] else "0"),
        output.Column("RESTARTS", "restarts"),
        output.Column("STATE", "state", state=experiments.phase_color),
        output.Column("NODE" if watcher.backend == "kube" else "ADDRESS", "place", is_wide=watcher.backend != "kube"),
        output.Column("POD", "pod", is_wide=True),
        *([gpus] if any(instance.gpus for instance in status.instances) else []),
        output.Column("LAST LINE", last_line, is_wide=True),
    ]
