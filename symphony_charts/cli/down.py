"""`symph down`, `restart`, `stop`, `start` and `scale`: act on a running experiment, or on processes of it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from symphony_charts.backend import protocol
from symphony_charts.cli import experiments, options, output, rm
from symphony_charts.errors import NotFound, ToolFailed, UsageError
from symphony_charts.formats import data
from symphony_charts.local import history, run_files, up
from symphony_charts.local import runs as local_runs
from symphony_charts.spec import data as spec_data
from symphony_charts.spec import pods

LATE = (history, pods, spec_data)  # only `scale` reads the spec

if TYPE_CHECKING:
    from symphony_charts.spec.model import Experiment, Process


def configure_down(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    options.add_flag(parser, "--all", help="every experiment that runs here")
    options.add_flag(parser, "--lost", help="record a run that cannot be reached from here as ended; signal nothing")
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_yes(parser)
    options.add_dry_run(parser)
    options.add_examples(parser, "symph down ring", "symph down --all", "symph down ring --lost")


def run_down(args: argparse.Namespace) -> int:
    """End the runs. Raises an error that names processes that survive."""
    if args.all:
        meant = ("lost", "unknown") if args.lost else ("lost", "here")
        runs = [live_run for live_run in local_runs.live_runs() if live_run.location.verdict in meant]
    else:
        runs = [experiments.run_to_change(args, args.experiment_name, "down")]
    for live_run in [] if args.dry_run else runs:
        if args.lost:
            up.mark_run_lost(live_run)
        else:
            up.down(live_run)
        rm.say_what_is_kept(live_run)
    items = [{"name": live_run.experiment, "run": live_run.run_id} for live_run in runs]
    columns = [output.Column("WOULD END" if args.dry_run else "ENDED", "name"), output.Column("RUN", "run")]
    output.print_items(args, "Run", items, columns, empty="nothing runs here")
    return 0


def configure_restart(parser: argparse.ArgumentParser) -> None:
    _add_processes(parser, "*", "PROCESS", "which ones (default: all); the last word may be the experiment")
    text = "restart together with them the processes that connect to them, and to those"
    options.add_flag(parser, "--with-peers", help=text)
    options.add_examples(
        parser, "symph restart", "symph restart learner rl --with-peers", "symph restart learner team-a/agent-0 -e rl"
    )


_ACT_ON = "processes to act on; you can add the experiment at the end"


def configure_stop(parser: argparse.ArgumentParser) -> None:
    _add_processes(parser, "+", "PROCESS", _ACT_ON)
    options.add_examples(parser, "symph stop agent-1", "symph stop evaluator rl", "symph stop agent/0 agent/1 -e rl")


def configure_start(parser: argparse.ArgumentParser) -> None:
    _add_processes(parser, "+", "PROCESS", _ACT_ON)
    options.add_examples(parser, "symph start agent-1", "symph start evaluator rl")


def configure_scale(parser: argparse.ArgumentParser) -> None:
    text = "a process or group, and its number of replicas; you can add the experiment at the end"
    _add_processes(parser, "+", "PROCESS=N", text)
    options.add_examples(parser, "symph scale agent=4", "symph scale agent=4 evaluator=0 rl")


def _add_processes(parser: argparse.ArgumentParser, number: str, metavar: str, text: str) -> None:
    options.add_experiment(parser, positional=False)
    parser.add_argument("process", nargs=number, metavar=metavar, help=text)
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_yes(parser)
    options.add_dry_run(parser)


def run_restart(args: argparse.Namespace) -> int:
    """Stop each process as `symph down` does, start it again, and print it."""
    live_run, words = _choose_run(args, "restart")
    slots = _slots(live_run, words)
    if not words:
        slots = [process.slot for process in live_run.plan().processes if not process.is_removed]
    peers = _peers(live_run, slots) if words else []
    if args.with_peers:
        slots += peers
    else:
        _warn_of_peers(live_run, words, peers)
    if not args.dry_run:
        up.restart(live_run, slots)
    title = "WOULD RESTART" if args.dry_run else "RESTARTED"
    return _print(args, live_run, slots, title, empty="nothing runs here")


def _peers(live_run: local_runs.Run, slots: list[int]) -> list[int]:
    """Return the other slots whose processes connect to those in `slots`, directly or through others."""
    try:
        saved = run_files.read_json(live_run.folder / "spec.json")
    except (NotFound, ToolFailed):
        return []
    spec = {("", name): process for name, process in data.sub(saved, "processes").items()}
    for group in data.sub(saved, "groups"):
        spec |= {(group, name): process for name, process in data.sub(saved, "groups", group, "processes").items()}
    planned = live_run.plan().processes
    named = found = {(planned[slot].group, planned[slot].process) for slot in slots}
    before: set[tuple[str, str]] = set()
    while before != found:
        before = set(found)
        services = {name for key in found for field in ("binds", "exposes") for name in data.sub(spec.get(key), field)}
        dialled = {key: output.texts(data.sub(process).get("connects")) for key, process in spec.items()}
        found = found | {key for key, names in dialled.items() if not services.isdisjoint(names)}
    return [one.slot for one in planned if (one.group, one.process) in found - named and not one.is_removed]


def _warn_of_peers(live_run: local_runs.Run, words: list[str], peers: list[int]) -> None:
    """Warn of processes that connect to the restarted ones, and whose failure ends the run."""
    planned = live_run.plan().processes
    fragile = [planned[slot].path for slot in peers if (planned[slot].restart, planned[slot].on_failure) == _FRAGILE]
    if fragile:
        some = ", ".join(fragile[:3]) + (f" and {len(fragile) - 3} more" if len(fragile) > 3 else "")
        what = f"{some} connect to it; if one fails without its peer, the run ends (restart: never)"
        command = shlex.join(["symph", "restart", *words, "-e", live_run.experiment, "--with-peers"])
        output.warn(what, f"{command} restarts them together")


_FRAGILE = ("never", "stop")


def _choose_run(args: argparse.Namespace, verb: str) -> tuple[local_runs.Run, list[str]]:
    """Return the run and the processes that `PROCESS... [EXPERIMENT]` means; `-e` may name the experiment instead.

    If all words are processes of the default experiment, the last one is a process even if an experiment has that name.
    """
    words: list[str] = args.process
    command = shlex.join([verb, *words, "-e"])
    if args.experiment_name is not None or not words:
        return experiments.run_to_change(args, args.experiment_name, command), words
    *others, last = words
    try:
        only = local_runs.find_run(experiments.meant_here(live=True)[0], live=True)
    except NotFound:
        only = None
    # Of `scale`, words are PROCESS=N.
    names = [word.partition("=")[0] for word in words]
    if only is None or not all(protocol.find_instances(only.plan().processes, name) for name in names):
        name = experiments.name_in_spec(last)
        if name in [run.experiment for run in local_runs.live_runs()] or (only is None and others):
            return local_runs.find_run(name, live=True), others
    return experiments.run_to_change(args, None, command), words


def run_stop(args: argparse.Namespace) -> int:
    """Stop the processes as `symph down` does, and leave them stopped until they are started again."""
    live_run, words = _choose_run(args, "stop")
    slots = _slots(live_run, words)
    if not args.dry_run:
        up.act(live_run, dict.fromkeys(slots, "stop"))
    return _print(args, live_run, slots, "WOULD STOP" if args.dry_run else "STOPPED", empty="none")


def run_start(args: argparse.Namespace) -> int:
    """Start the processes that do not run; their restarts count from 0."""
    live_run, words = _choose_run(args, "start")
    state = live_run.state()
    slots = [slot for slot in _slots(live_run, words) if state.processes[slot].phase in ("done", "failed", "stopped")]
    if slots and not args.dry_run:
        up.act(live_run, dict.fromkeys(slots, "start"))
    title = "WOULD START" if args.dry_run else "STARTED"
    return _print(args, live_run, slots, title, empty="they run already")


def run_scale(args: argparse.Namespace) -> int:
    """Change numbers of replicas: start the new ones, stop those beyond, and leave the others alone."""
    live_run, words = _choose_run(args, "scale")
    saved = history.load_saved(live_run, is_pinned=False)
    changed = _scaled(saved.experiment, words)
    services = pods.allocate(changed, saved.ports)
    show = output.plan_printer(args)
    up.up(changed, services, folder=saved.folder, dry_run=args.dry_run, is_scaled=True, show=show)
    if args.dry_run:
        return 0
    slots = _slots(live_run, [_parse(word)[0] for word in words])
    return _print(args, live_run, slots, "SCALED", empty="none")


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
    return spec_data.from_data(
        spec_data.to_data(msgspec.structs.replace(experiment, processes=processes, groups=groups))
    )


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


def _print(args: argparse.Namespace, live_run: local_runs.Run, slots: Sequence[int], title: str, *, empty: str) -> int:
    processes = live_run.plan().processes
    items = [{"name": processes[slot].name, "group": processes[slot].group} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column(title, "name")]
    output.print_items(args, "Process", items, columns, empty=empty)
    return 0
