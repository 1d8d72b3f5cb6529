"""`symph describe`, `events` and `wait`: one experiment, in one layout on every backend."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from symphony_charts.backend import diagnosis, protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, options, output
from symphony_charts.errors import NotFound
from symphony_charts.formats import printable
from symphony_charts.formats.printable import printable_line


def configure_describe(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    options.add_examples(parser, "symph describe rl", "symph describe rl --on kube -o json")


def run_describe(args: argparse.Namespace) -> int:
    """Print phase and duration, processes with their replicas, services, and the last events."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher, events=True)
    if args.output == "name":
        output.line(status.name)
    else:
        why = experiments.diagnose(watcher, status)
        text = _text(args, status, why) if args.output == "table" else ""
        output.print_record(args, "Experiment", {**record_of(status), "why": diagnosis.to_data(why)}, text)
    return 0


def record_of(status: backend_status.ExperimentStatus) -> dict[str, object]:
    return {
        "name": status.name,
        "experiment": status.experiment,
        "backend": status.backend,
        "phase": status.phase,
        "started": status.started,
        "ended": status.ended,
        "seconds": status.seconds,
        "run": status.run,
        "namespace": status.namespace,
        "heldBy": list(status.held_by),
        "note": status.note,
        "processes": [_process_record(process) for process in status.processes],
        "services": [
            {"name": service.name, "address": service.address, "outside": service.outside}
            for service in status.services
        ],
        "events": [
            {
                "time": event.time,
                "kind": event.kind,
                "about": event.about,
                "reason": event.reason,
                "message": event.message,
                "count": event.count,
            }
            for event in status.events
        ],
    }


def _process_record(one: backend_status.ProcessStatus) -> dict[str, object]:
    return {
        "name": one.name,
        "group": one.group,
        "phase": one.phase,
        "active": one.active,
        "succeeded": one.succeeded,
        "failed": one.failed,
        "ready": one.ready,
        "restarts": one.restarts,
        "places": list(one.places),
        "gpus": list(one.gpus),
        "reason": one.reason,
    }


def _text(args: argparse.Namespace, status: backend_status.ExperimentStatus, why: diagnosis.Diagnosis | None) -> str:
    phase = status.phase if status.seconds is None else f"{status.phase} {printable.age(status.seconds)}"
    where = f"{status.backend}, namespace {status.namespace}" if status.namespace else status.backend
    called = f" (experiment {status.experiment})" if status.experiment != status.name else ""
    lines = [f"{status.name}{called}   {phase}   on {where}   run {status.run or '-'}"]
    lines.append(f"held by: {', '.join(status.held_by) or 'none: its objects were applied by hand'}")
    if why is not None:
        lines.append(f"why:     {printable_line(why.sentence)}")
        lines += [f"next:    {why.next}"] if why.next else []
    color = output.use_color(sys.stdout, getattr(args, "color", None))
    for title, items, columns in _tables(status):
        if items:
            lines += ["", title] if title else [""]
            lines.append(output.format_table(items, columns, color=color, room=output.room_of(args.output)))
    return "\n".join(lines)


def _tables(
    status: backend_status.ExperimentStatus,
) -> list[tuple[str, list[dict[str, object]], Sequence[output.Column]]]:
    processes = [_process_record(process) for process in status.processes]
    services: list[dict[str, object]] = [
        {"name": service.name, "address": service.address, "outside": service.outside} for service in status.services
    ]
    return [
        (
            "",
            processes,
            [
                output.Column("GROUP", "group"),
                output.Column("PROCESS", "name"),
                output.Column("PHASE", "phase", state=experiments.phase_color),
                *(output.Column(key.upper(), key) for key in ("active", "succeeded", "failed", "ready", "restarts")),
                output.Column("WHERE", lambda item: ",".join(output.texts(item["places"])[:3])),
                *(
                    [output.Column("GPUS", experiments.gpu_ids)]
                    if any(process.gpus for process in status.processes)
                    else []
                ),
                output.Column("REASON", "reason"),
            ],
        ),
        ("", services, [output.Column(key.upper(), key) for key in ("name", "address", "outside")]),
        ("", event_items(status.events), EVENT_COLUMNS),
    ]


def event_items(events: Sequence[object]) -> list[dict[str, object]]:
    return [
        {
            "time": event.time,
            "age": backend_status.age_since(event.time),
            "kind": event.kind,
            "about": event.about,
            "reason": event.reason,
            "message": event.message + (f" (x{event.count})" if event.count > 1 else ""),
            "count": event.count,
        }
        for event in events
        if isinstance(event, backend_status.Event)
    ]


EVENT_COLUMNS = (
    output.Column("AGE", "age"),
    output.Column("KIND", "kind", state=lambda item: "bad" if item["kind"] == "Warning" else ""),
    output.Column("ABOUT", "about"),
    output.Column("REASON", "reason"),
    output.Column("MESSAGE", "message"),
)


def configure_events(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the experiment has ended")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml"))
    options.add_examples(parser, "symph events rl --on kube", "symph events -f rl --on kube")


def run_events(args: argparse.Namespace) -> int:
    watcher = experiments.watcher_of(args)
    name = experiments.find_experiment(args, watcher)
    if not args.follow:
        items = event_items(list(watcher.events(name)))
        output.print_items(args, "Event", items, EVENT_COLUMNS, empty=f"nothing is known to have happened to {name}")
        return 0
    for event in watcher.events(name, follow=True):
        (item,) = event_items([event])
        if args.output == "json":
            output.line(json.dumps(item, ensure_ascii=False))
        else:
            output.line("  ".join(column.cell(item) for column in EVENT_COLUMNS))
        sys.stdout.flush()
    return 0


def configure_wait(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    parser.add_argument(
        "--for",
        dest="condition",
        metavar="CONDITION",
        default="succeeded",
        help="running, ready, succeeded (default), failed, ended or deleted",
    )
    parser.add_argument("-p", "--process", metavar="PROCESS", default="", help="of this process alone")
    parser.add_argument("--timeout", metavar="TIME", type=options.seconds, default=None, help="90, 90s, 5m, 1h")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    options.add_examples(
        parser, "symph wait rl --for=ready --timeout 5m", "symph wait rl -p learner && symph collect rl"
    )


def run_wait(args: argparse.Namespace) -> int:
    """Wait for the condition; return 1 if it cannot be reached any more, 6 after the timeout."""
    watcher = experiments.watcher_of(args)
    try:
        name = experiments.find_experiment(args, watcher)
    except NotFound:
        if args.condition not in ("deleted", "delete", "gone") or not args.experiment_name:
            raise
        name = args.experiment_name
    status = protocol.wait_until(watcher, name, args.condition, process=args.process, timeout_s=args.timeout)
    if args.output == "name":
        output.line(name)
        return 0
    record = record_of(status) if status else {"name": name, "phase": "deleted"}
    reached = args.condition if args.process or not status else status.phase
    output.print_record(args, "Experiment", record, f"{args.process or name} {reached}")
    return 0
