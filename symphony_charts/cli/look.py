"""`symph ls`, `ps`, `wait`, `describe` and `events`: list experiments, show one, and wait for it."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from symphony_charts.backend import diagnosis, protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, options, output
from symphony_charts.cli.output import Screen
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.formats import printable
from symphony_charts.sweep import record


def configure_ls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment_name", metavar="EXPERIMENT", nargs="?", help="only experiments whose names contain this"
    )
    options.add_flag(parser, "-a", "--all", help="also the last run of experiments that have ended")
    parser.add_argument("--sweep", metavar="NAME", default=None, help="only the trials of this sweep, one per row")
    options.add_list(parser, "--phase", metavar="PHASE", help="only those in this phase: running, failed, ...")
    options.add_selector(parser)
    options.add_backend(parser)
    options.add_output(parser)
    examples = ("symph ls -a -o wide", "symph ls -a --sweep descent --phase failed", "symph ls -n ml -l team=rl")
    options.add_examples(parser, "symph ls", *examples)


# Number of a sweep's trials that are listed one by one.
_FEW = 3


def run_ls(args: argparse.Namespace) -> int:
    """List experiments by name; by default a sweep with many trials is one line of the table."""
    watcher = experiments.watcher_of(args)
    sweeps = {trial: sweep.name for sweep in record.sweeps_of(watcher.backend) for trial in sweep.trials}
    phases = [phase for text in args.phase for phase in text.split(",")]
    known = get_args(backend_status.Phase)
    if unknown := [phase for phase in phases if phase not in known]:
        raise UsageError(f"no experiment is ever {', '.join(unknown)}", next=f"one of {', '.join(known)}")
    listed = [
        experiment
        for experiment in watcher.experiments(ended=args.all)
        if (args.experiment_name or "") in experiment.name
        and (not args.selector or args.selector(experiment.labels))
        and (not phases or experiment.phase in phases)
        and args.sweep in (None, sweeps.get(experiment.name))
    ]
    chosen = protocol.chosen_at(watcher.place)
    fields = ("name", "experiment", "phase", "started", "ended", "seconds", "namespace", "run", "note")
    items: list[dict[str, Any]] = [
        {
            **{name: getattr(experiment, name) for name in fields},
            "note": "; ".join(filter(None, [experiment.note, still_runs(experiment)])),
            "stillRunning": list(experiment.still_running),
            "phaseText": experiment.phase_text,
            "age": backend_status.age_since(experiment.started),
            "processes": sum(not each.is_step for each in experiment.instances),
            "heldBy": list(experiment.held_by),
            "labels": dict(experiment.labels),
            "sweep": sweeps.get(experiment.name, ""),
            "current": experiment.name == chosen,
        }
        for experiment in listed
    ]
    if args.output in ("table", "wide") and not (args.experiment_name or args.sweep or phases):
        items = _grouped(items, watcher.backend)
    columns = [
        output.Column("NAME", "name"),
        output.Column("PHASE", "phaseText", state=experiments.phase_color),
        output.Column("AGE", "age"),
        *experiments.took_columns(items),
        *(output.columns("note") if any(item["note"] for item in items) else []),
        output.Column("PROCESSES", "processes", is_wide=True),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("HELD BY", lambda item: ", ".join(output.texts(item["heldBy"])), is_wide=True),
        output.Column("RUN", "run", is_wide=True),
    ]
    output.print_items(args, "Experiment", items, columns, empty="no experiment runs here")
    return 0


def _grouped(items: Sequence[dict[str, Any]], backend: str) -> list[dict[str, Any]]:
    """Return the items, with a large sweep as one item at the place of its first trial."""
    counts = Counter(item["sweep"] for item in items if item["sweep"])
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        key = f"sweep {item['sweep']}" if counts[item["sweep"]] > _FEW else f"{item['namespace']}/{item['name']}"
        groups.setdefault(key, []).append(item)
    return [held[0] if len(held) == 1 else _as_one(held, backend) for held in groups.values()]


def _as_one(trials: Sequence[dict[str, Any]], backend: str) -> dict[str, Any]:
    sweep, phases = trials[0]["sweep"], Counter(item["phase"] for item in trials)
    on = " --on kube" if backend == "kube" else ""
    return {
        **min(trials, key=lambda item: item["started"]),
        "name": f"{sweep}-* ({len(trials)} trials)",
        "phase": "",
        "phaseText": ", ".join(f"{count} {phase}" for phase, count in phases.most_common()),
        "note": f"symph sweep show {sweep}{on}",
        "ended": None,
        "seconds": None,
        "processes": sum(item["processes"] for item in trials),
        "heldBy": [],
        "run": "",
    }


def configure_ps(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_flag(parser, "-w", "--watch", help="show every change until the experiment has ended")
    options.add_backend(parser)
    options.add_output(parser)
    options.add_examples(parser, "symph ps", "symph ps ring -o json", "symph ps -w rl --on kube")


def run_ps(args: argparse.Namespace) -> int:
    """List processes once, or after each change until the experiment is finished or gone."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    if not args.watch:
        _print(args, status, watcher)
        if args.output in ("table", "wide"):
            if status.still_running:
                output.note(f"{status.name} {status.phase}; {still_runs(status)}")
            experiments.say(experiments.diagnose(watcher, status))
        return 0

    screen = Screen()
    for now in watcher.changes(status.name):
        if now is None:
            output.note(f"{status.name} is gone")
            return 0
        if args.output in ("table", "wide"):
            screen.show(output.table_of(args, _items(now), _columns(args, now, watcher)))
        else:
            _print(args, now, watcher)
        if now.is_final:
            break
    return 0


def _print(args: argparse.Namespace, status: backend_status.ExperimentStatus, watcher: protocol.Watcher) -> None:
    columns = _columns(args, status, watcher)
    output.print_items(args, "Process", _items(status), columns, empty=f"{status.name} has no processes yet")


def _items(status: backend_status.ExperimentStatus) -> list[dict[str, object]]:
    fields = ("name", "group", "process", "index", "phase", "state", "ready", "restarts", "status", "reason")
    return [
        {
            **{name: getattr(instance, name) for name in (*fields, "place", "pod")},
            "gpus": list(instance.gpus),
            "tries": [asdict(one) for one in instance.tries],
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
        *output.columns("group", "name"),
        output.Column("READY", lambda item: "1" if item["ready"] else "0"),
        output.Column("RESTARTS", "restarts"),
        output.Column("STATE", "state", state=experiments.phase_color),
        output.Column("NODE" if watcher.backend == "kube" else "ADDRESS", "place", is_wide=watcher.backend != "kube"),
        output.Column("POD", "pod", is_wide=True),
        *([gpus] if any(instance.gpus for instance in status.instances) else []),
        output.Column("LAST LINE", last_line, is_wide=True),
    ]


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
        lines.append(f"why:     {printable.printable_line(why.sentence)}")
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
    lines: list[str] = []
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
            lines += ["", output.format_table(items, columns, room=output.room_of(args.output))]
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
    facts = record_of(status) if status else {"name": name, "phase": "deleted"}
    reached = args.condition if args.process or not status else status.phase_text
    output.print_record(args, "Experiment", facts, f"{args.process or name} {reached}")
    return 0
