"""`symph down` and `symph restart`: stop a running experiment, or restart processes of it."""

from __future__ import annotations

import argparse
import shlex

from symphony_charts.backend import protocol
from symphony_charts.cli import experiments, options, output, rm
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats import data
from symphony_charts.local import run_files, up
from symphony_charts.local import runs as local_runs


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
    one = None if args.all else experiments.run_to_change(args, args.experiment_name, "down")
    runs = [one] if one else local_runs.live_runs()
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
    options.add_experiment(parser, positional=False)
    text = "which ones (default: all); the last word may be the experiment"
    parser.add_argument("process", nargs="*", metavar="PROCESS", help=text)
    text = "restart together with them the processes that connect to them, and to those"
    options.add_flag(parser, "--with-peers", help=text)
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_yes(parser)
    options.add_dry_run(parser)
    options.add_examples(
        parser, "symph restart", "symph restart learner rl --with-peers", "symph restart learner team-a/agent-0 -e rl"
    )


def run_restart(args: argparse.Namespace) -> int:
    """Stop each process as `symph down` does, start it again, and print it."""
    live_run, words = choose_run(args, "restart")
    plan = live_run.plan()
    processes = plan.processes
    named = [slot for word in words for slot in local_runs.find_slots(plan, word)]
    slots = list(dict.fromkeys(named)) if words else [process.slot for process in processes if not process.is_removed]
    peers = _peers(live_run, slots) if words else []
    if args.with_peers:
        slots += peers
    else:
        _warn_of_peers(live_run, words, peers)
    if not args.dry_run:
        up.restart(live_run, slots)
    items = [{"name": processes[slot].name, "group": processes[slot].group} for slot in slots]
    columns = [output.Column("GROUP", "group"), output.Column("WOULD RESTART" if args.dry_run else "RESTARTED", "name")]
    output.print_items(args, "Process", items, columns, empty="nothing runs here")
    return 0


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


def choose_run(args: argparse.Namespace, verb: str) -> tuple[local_runs.Run, list[str]]:
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
