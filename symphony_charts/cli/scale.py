"""`symph stop`, `start` and `scale`: processes of a running experiment, without its others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from symphony_charts.cli import down, options, output
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.local import history, up
from symphony_charts.local import runs as local_runs
from symphony_charts.spec import data, pods

if TYPE_CHECKING:
    from symphony_charts.spec.model import Experiment, Process


def configure_stop(parser: argparse.ArgumentParser) -> None:
    _add_processes(parser)
    options.add_examples(parser, "symph stop agent-1", "symph stop evaluator rl", "symph stop agent/0 agent/1 -e rl")


def configure_start(parser: argparse.ArgumentParser) -> None:
    _add_processes(parser)
    options.add_examples(parser, "symph start agent-1", "symph start evaluator rl")


def configure_scale(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser, positional=False)
    text = "a process or group, and its number of replicas; you can add the experiment at the end"
    parser.add_argument("process", nargs="+", metavar="PROCESS=N", help=text)
    _add_common(parser)
    options.add_examples(parser, "symph scale agent=4", "symph scale agent=4 evaluator=0 rl")


def _add_processes(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser, positional=False)
    parser.add_argument(
        "process", nargs="+", metavar="PROCESS", help="processes to act on; you can add the experiment at the end"
    )
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_yes(parser)
    options.add_dry_run(parser)


def run_stop(args: argparse.Namespace) -> int:
    """Stop the processes as `symph down` does, and leave them stopped until they are started again."""
    live_run, words = down.choose_run(args, "stop")
    slots = _slots(live_run, words)
    if not args.dry_run:
        up.act(live_run, dict.fromkeys(slots, "stop"))
    return _print(args, live_run, slots, "WOULD STOP" if args.dry_run else "STOPPED")


def run_start(args: argparse.Namespace) -> int:
    """Start the processes that do not run; their restarts count from 0."""
    live_run, words = down.choose_run(args, "start")
    state = live_run.state()
    slots = [slot for slot in _slots(live_run, words) if state.processes[slot].phase in ("done", "failed", "stopped")]
    if slots and not args.dry_run:
        up.act(live_run, dict.fromkeys(slots, "start"))
    return _print(args, live_run, slots, "WOULD START" if args.dry_run else "STARTED")


def run_scale(args: argparse.Namespace) -> int:
    """Change numbers of replicas: start the new ones, stop those beyond, and leave the others alone."""
    live_run, words = down.choose_run(args, "scale")
    saved = history.load_saved(live_run, is_pinned=False)
    changed = _scaled(saved.experiment, words)
    services = pods.allocate(changed, saved.ports)
    up.up(changed, services, folder=saved.folder, dry_run=args.dry_run, is_scaled=True)
    return (
        0 if args.dry_run else _print(args, live_run, _slots(live_run, [_parse(word)[0] for word in words]), "SCALED")
    )


def _scaled(experiment: Experiment, words: Sequence[str]) -> Experiment:
    """Return `experiment` with other numbers of replicas, which count on this machine, too."""
    processes, groups = dict(experiment.processes), dict(experiment.groups)
    for name, count in map(_parse, words):
        if name in processes:
            processes[name] = _replicated(processes[name], count)
        elif name in groups:
            members = {key: _replicated(process, None) for key, process in groups[name].processes.items()}
            groups[name] = msgspec.structs.replace(groups[name], replicas=count, processes=members)
        else:
            known = ", ".join([*processes, *groups])
            raise NotFound(f'experiment "{experiment.name}" has no process or group "{name}"', next=f"one of {known}")
    # All checks of a spec apply.
    return data.from_data(data.to_data(msgspec.structs.replace(experiment, processes=processes, groups=groups)))


def _replicated(process: Process, count: int | None) -> Process:
    local = process.local and msgspec.structs.replace(process.local, replicas=None)
    return msgspec.structs.replace(process, local=local, **({} if count is None else {"replicas": count}))


def _parse(word: str) -> tuple[str, int]:
    name, _, count = word.partition("=")
    if not name or not count.isdecimal():
        raise UsageError(f'"{word}" is not PROCESS=N', next="for example: symph scale agent=4")
    return name, int(count)


def _slots(live_run: local_runs.Run, words: Sequence[str]) -> list[int]:
    plan = live_run.plan()
    return list(dict.fromkeys(slot for word in words for slot in local_runs.find_slots(plan, word)))


def _print(args: argparse.Namespace, live_run: local_runs.Run, slots: Sequence[int], title: str) -> int:
    processes = live_run.plan().processes
    items = [{"name": processes[slot].name, "group": processes[slot].group} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column(title, "name")]
    output.print_items(args, "Process", items, columns, empty="they run already" if title.endswith("START") else "none")
    return 0
