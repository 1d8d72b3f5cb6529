"""`symph wait`, and the parts of `symph status` that show one experiment: `describe` and `events`, on every backend."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

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
    options.add_examples(parser, "symph status rl", "symph status rl -n ml -o json")


def run_describe(args: argparse.Namespace) -> int:
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
    names = ("name", "experiment", "backend", "phase", "started", "ended", "seconds", "run", "namespace", "note")
    return {
        **{name: getattr(status, name) for name in names},
        "heldBy": list(status.held_by),
        "stillRunning": list(status.still_running),
        "endedWithRun": list(status.ended_with_run),
        "processes": [_process_record(process) for process in status.processes],
        "services": [asdict(service) for service in status.services],
        "events": [asdict(event) for event in status.events],
    }


def _process_record(one: backend_status.ProcessStatus) -> dict[str, object]:
    names = ("name", "group", "phase", "active", "succeeded", "failed", "ready", "restarts", "reason")
    return {**{name: getattr(one, name) for name in names}, "places": list(one.places), "gpus": list(one.gpus)}


def _text(args: argparse.Namespace, status: backend_status.ExperimentStatus, why: diagnosis.Diagnosis | None) -> str:
    phase = status.phase_text if status.seconds is None else f"{status.phase_text} {printable.age(status.seconds)}"
    where = f"{status.backend}, namespace {status.namespace}" if status.namespace else status.backend
    called = f" (experiment {status.experiment})" if status.experiment != status.name else ""
    lines = [f"{status.name}{called}   {phase}   on {where}   run {status.run or '-'}"]
    lines.append(f"held by: {', '.join(status.held_by) or 'none: its objects were applied by hand'}")
    if why is not None:
        lines.append(f"why:     {printable_line(why.sentence)}")
        lines += [f"next:    {why.next}"] if why.next else []
    lines += lines_of_end(status)
    return "\n".join([*lines, *detail_lines(args, status)])


def still_runs(status: backend_status.ExperimentStatus) -> str:
    """Return the services that go on after the end of the run as text, or an empty one."""
    return f"still runs: {', '.join(status.still_running)}" if status.still_running else ""


def lines_of_end(status: backend_status.ExperimentStatus) -> list[str]:
    """Return the processes that ended with the run, and those that keep running."""
    ended = ", ".join(status.ended_with_run)
    return [*([f"ended with the run: {ended}"] if ended else []), *filter(None, [still_runs(status)])]


def detail_lines(args: argparse.Namespace, status: backend_status.ExperimentStatus) -> list[str]:
    """Return the tables of processes, services and events, each after an empty line."""
    color, lines = output.use_color(sys.stdout, getattr(args, "color", None)), []
    process_columns = [
        output.Column("GROUP", "group"),
        output.Column("PROCESS", "name"),
        output.Column("PHASE", "phase", state=experiments.phase_color),
        *output.columns("active", "succeeded", "failed", "ready", "restarts"),
        output.Column("WHERE", lambda item: ",".join(output.texts(item["places"])[:3])),
        *([output.Column("GPUS", experiments.gpu_ids)] if any(process.gpus for process in status.processes) else []),
        output.Column("REASON", "reason"),
    ]
    tables: list[tuple[list[dict[str, object]], list[output.Column]]] = [
        ([_process_record(process) for process in status.processes], process_columns),
        ([asdict(service) for service in status.services], output.columns("name", "address", "outside")),
        ([_event_item(event) for event in status.events], _EVENT_COLUMNS),
    ]
    for items, columns in tables:
        if items:
            lines += ["", output.format_table(items, columns, color=color, room=output.room_of(args.output))]
    return lines


def _event_item(event: backend_status.Event) -> dict[str, object]:
    message = event.message + (f" (x{event.count})" if event.count > 1 else "")
    return {**asdict(event), "age": backend_status.age_since(event.time), "message": message}


_EVENT_COLUMNS = [
    output.Column("AGE", "age"),
    output.Column("KIND", "kind", state=lambda item: "bad" if item["kind"] == "Warning" else ""),
    *output.columns("about", "reason", "message"),
]


def configure_events(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_flag(parser, "-f", "--follow", help="continue until the experiment ends")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml"))
    options.add_examples(parser, "symph status rl")


def run_events(args: argparse.Namespace) -> int:
    watcher = experiments.watcher_of(args)
    name = experiments.find_experiment(args, watcher)
    if not args.follow:
        items = [_event_item(event) for event in watcher.events(name)]
        output.print_items(args, "Event", items, _EVENT_COLUMNS, empty=f"nothing is known to have happened to {name}")
        return 0
    for event in watcher.events(name, follow=True):
        item = _event_item(event)
        if args.output == "json":
            output.line(json.dumps(item, ensure_ascii=False))
        else:
            output.line("  ".join(column.cell(item) for column in _EVENT_COLUMNS))
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
    parser.add_argument("-p", "--process", metavar="PROCESS", default="", help="wait for this process only")
    parser.add_argument("--timeout", metavar="TIME", type=options.seconds, help="90, 90s, 5m, 1h")
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
    reached = args.condition if args.process or not status else status.phase_text
    output.print_record(args, "Experiment", record, f"{args.process or name} {reached}")
    return 0
