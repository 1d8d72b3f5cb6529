"""`symph local`: the environment of processes, comparison with their pods, other runners, and past runs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symphony_charts.cli import options, output, rm
from symphony_charts.errors import Conflict, SymphError, UsageError
from symphony_charts.formats import printable
from symphony_charts.local import export as local_export
from symphony_charts.local import history, run_folder, show_environment, up
from symphony_charts.local import runs as local_runs
from symphony_charts.local import volumes as local_volumes
from symphony_charts.local.machine import machine
from symphony_charts.local.plan import environment as plan_environment
from symphony_charts.local.plan import records
from symphony_charts.spec import files as spec_files
from symphony_charts.spec import pods
from symphony_charts.system import files, remover

FORMATS = ("table", "json", "yaml", "name")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="local_action", metavar="ACTION", required=True)
    for name, (text, add, _, examples) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        add(action)
        options.add_examples(action, *examples)
    options.add_examples(parser, *(examples[0] for _, _, _, examples in _ACTIONS.values()))


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("component_name", metavar="PROCESS", nargs="?", help="default: the only one there is")
    options.add_experiment(parser)
    text = "of this experiment file, which need not run"
    parser.add_argument("--spec", metavar="SPEC", type=options.spec_of, help=text)
    options.add_spec_changes(parser)
    options.add_flag(parser, "--show-secrets", help="print secret values, too")
    options.add_output(parser, ("shell", "json", "yaml"), default="shell", headers=False)


def _add_render(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser, many=False)
    parser.add_argument(
        "--as",
        dest="form",
        choices=("plan", "tmuxp", "process-compose"),
        default="plan",
        help="for which runner (default: plan, which prints the plan and writes nothing)",
    )
    parser.add_argument("--to", metavar="FOLDER", default=None, help="where its files go (default: NAME-local)")
    options.add_flag(parser, "--force", help="replace what an earlier render wrote there")
    options.add_flag(parser, "--show-secrets", help="print secret values in the plan, too")
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_dry_run(parser, "print the runner's file and write nothing")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", help="an experiment that has run here")
    parser.add_argument("--run", metavar="ID", default=None, help="which run, or how its id begins (default: the last)")
    options.add_flag(parser, "--wait", help="wait until it is over; exit with its status")
    options.add_flag(parser, "--force", help="end the experiment first if it is already running")
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_dry_run(parser, "print what would be started, without values of variables")


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    options.add_output(parser, FORMATS)


def _add_gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    text = "newest ended runs to keep (default: 10; 0 with --older-than)"
    parser.add_argument("--keep", metavar="N", type=int, help=text)
    parser.add_argument("--older-than", metavar="AGE", type=_age, help="only runs that ended so long ago: 90s, 12h, 7d")
    options.add_output(parser, FORMATS)
    options.add_yes(parser)
    options.add_dry_run(parser)


def _add_volumes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    parser.add_argument(
        "--remove",
        metavar="NAME",
        nargs="+",
        default=[],
        help="remove these with all their files: EXPERIMENT/VOLUME, or VOLUME where one experiment alone has it",
    )
    options.add_output(parser, FORMATS)
    options.add_yes(parser)
    options.add_dry_run(parser)


def env(args: argparse.Namespace) -> int:
    """Print the environment of one process of a run or of a spec file."""
    word = args.component_name
    if args.spec is not None:
        environment = show_environment.of_spec(args.spec, word, args.spec_set)
    elif args.spec_set:
        raise UsageError("--spec-set and -E change a spec, and this is a run", next="name the spec with --spec")
    else:
        environment = show_environment.of_run(args.experiment_name, word)
    masked = frozenset() if args.show_secrets else environment.secret
    if args.output == "shell":
        sys.stdout.write(show_environment.shell_text(environment.env, masked))
    else:
        shown = {name: plan_environment.MASK if name in masked else value for name, value in environment.env.items()}
        record = {"experiment": environment.experiment, "process": environment.process}
        output.print_record(args, "Environment", record | {"env": shown, "masked": sorted(masked)})
    if masked:
        output.note(f"masked: {', '.join(sorted(masked))} (--show-secrets)")
    if environment.has_preamble:
        output.note("its preamble runs after this and may change it")
    return 0


def render(args: argparse.Namespace) -> int:
    spec = spec_files.read(args.spec, args.spec_set)
    if args.form == "plan":
        return _print_plan(args, spec)
    folder = Path(args.to or f"{spec.experiment.name}-local").absolute()
    plan = _plan_for(spec, folder)
    export = {"tmuxp": local_export.to_tmuxp, "process-compose": local_export.to_process_compose}[args.form](
        plan, str(folder)
    )
    if args.dry_run:
        sys.stdout.write(export.text)
        return 0
    _write(folder, export, replaces=args.force)
    _fill(plan)
    record = {
        "name": spec.experiment.name,
        "form": args.form,
        "folder": str(folder),
        "main": export.main,
        "files": sorted(export.files),
        "notes": list(export.notes),
        "start": export.start,
    }
    output.print_record(args, "Export", record, f"{folder}/{export.main}   {len(export.files)} files")
    for text in export.notes:
        output.warn(text)
    if spec.experiment.secrets:
        output.warn(f"{folder} holds the secrets of the experiment", "keep it to yourself, and remove it after use")
    output.next_step(export.start)
    return 0


def _plan_for(spec: spec_files.SpecFile, folder: Path | None) -> records.LocalPlan:
    services = pods.allocate(spec.experiment, spec.pins)
    return machine.plan_here(spec.experiment, services, spec.path.parent, "render", run_dir=folder)


def _print_plan(args: argparse.Namespace, spec: spec_files.SpecFile) -> int:
    if args.to is not None:
        raise UsageError("--to goes with --as", next="add --as tmuxp, for example")
    plan = _plan_for(spec, None)
    record: Mapping[str, object] = {
        "name": plan.experiment,
        "address": plan.base_address,
        "ports": plan.ports,
        "processes": show_environment.plan_items(
            spec.experiment, plan, spec.path.parent, shows_secrets=args.show_secrets
        ),
        "doneWhen": [plan.processes[slot].name for slot in plan.done_when],
        "notes": list(plan.notes),
    }
    if args.output == "table":
        args.output = "yaml"
    output.print_record(args, "LocalPlan", record)
    return 0


def _fill(plan: records.LocalPlan) -> None:
    """Create volume folders and check out Git volumes, unless an earlier render filled them."""
    for place in plan.folders:
        Path(place).mkdir(parents=True, exist_ok=True, mode=0o700)
    run_folder.make_sub_paths(plan)
    machine.check_out_all([checkout for checkout in plan.checkouts if not any(Path(checkout.folder).iterdir())])


def _write(folder: Path, export: local_export.Export, *, replaces: bool) -> None:
    """Write the files into a private folder that is new, empty, or written by symph."""
    if folder.exists() and any(folder.iterdir()) and not (replaces and (folder / "p").is_dir()):
        step = "give another folder with --to, or --force for one of an earlier render"
        raise Conflict(f"{folder} is not empty", next=step)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for name, (content, mode) in export.files.items():
        files.write_file(folder / name, content, mode=mode)
        (folder / name).chmod(mode)


def _replay(args: argparse.Namespace) -> int:
    past = history.find_past(args.experiment_name, args.run)
    saved = history.load_saved(past)
    services = pods.allocate(saved.experiment, saved.ports)
    started = up.up(
        saved.experiment,
        services,
        folder=saved.folder,
        force=args.force,
        dry_run=args.dry_run,
        share_gpus=past.plan().is_sharing_gpus,
        show=output.plan_printer(args),
    )
    if started is None:
        return 0
    record = {"name": started.experiment, "run": started.run_id, "replays": past.run_id}
    output.print_record(args, "Run", record, f"{started.experiment}   run {started.run_id} replays {past.run_id}")
    if not args.wait:
        output.next_step(f"symph ps {started.experiment}", f"symph logs -f {started.experiment}")
        return 0
    return up.wait(started)


def _history(args: argparse.Namespace) -> int:
    items = [history.past_run(run) for run in history.all_runs(args.experiment_name)]
    output.print_items(args, "Run", items, _COLUMNS, empty="no runs are remembered here", name="run")
    return 0


def _gc(args: argparse.Namespace) -> int:
    keep = args.keep if args.keep is not None else 10 if args.older_than is None else 0
    if keep < 0:
        raise UsageError(f"--keep takes a number of at least 0, got {keep}")
    refusals: list[str] = []
    every = history.all_runs(args.experiment_name)
    old = history.removable(every, keep=keep, older_than_s=args.older_than or 0.0)
    runs = [
        run for run in old if _succeeds(lambda run: remover.check(run.home, run.experiment, run.run_id), run, refusals)
    ]
    items = [history.past_run(run) for run in runs]
    if not args.dry_run and items:
        if not args.yes:
            output.note(output.format_table(items, _COLUMNS, room=output.room_of(args.output)))
        output.confirm(args, f"Remove {_what(items)}?")
        items = [item for run, item in zip(runs, items, strict=True) if _succeeds(history.remove, run, refusals)]
    output.print_items(args, "Run", items, _COLUMNS, empty="no run to remove", name="run")
    if args.output == "table" and items:
        output.note(f"{_what(items)} {'would be removed' if args.dry_run else 'removed'}")
    for refusal in refusals:
        output.warn(f"cannot be removed: {refusal}")
    return 1 if refusals else 0


def _what(items: list[dict[str, Any]]) -> str:
    total = sum(item["bytes"] for item in items)
    return f"{len(items)} runs with their logs, {printable.size(total)}"


def _succeeds(action: Callable[[local_runs.Run], list[str] | None], run: local_runs.Run, refusals: list[str]) -> bool:
    """Return True if `action` leaves nothing of a run, else add the reasons to `refusals`."""
    try:
        left = action(run) or []
    except SymphError as error:
        left = [str(error)]
    refusals += left
    return not left


def _age(text: str) -> float:
    try:
        # A number without a unit is refused, because what it selects is removed.
        return options.seconds("" if text.isdecimal() else text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not an age, such as 90s, 12h or 7d') from None


def _took(item: Mapping[str, Any]) -> str:
    return printable.age((item["ended"] or time.time()) - item["started"]) if item["started"] is not None else ""


def _started(item: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["started"])) if item["started"] else ""


def _end(item: Mapping[str, Any]) -> str:
    status = "with unknown status" if item["status"] is None else item["status"]
    return f"failed {status} ({item['failed']})" if item["failed"] else str(item["phase"])


_COLUMNS = (
    output.Column("EXPERIMENT", "name"),
    output.Column("RUN", "run"),
    output.Column("STARTED", _started),
    output.Column("TOOK", _took),
    output.Column("PROCESSES", "processes"),
    output.Column("END", _end),
    output.Column("SIZE", lambda item: printable.size(item["bytes"])),
)


def _volumes(args: argparse.Namespace) -> int:
    """List the volumes; with `--remove` remove some of them, after asking."""
    chosen = local_volumes.all_volumes(args.experiment_name)
    if args.remove:
        chosen = local_volumes.choose(chosen, args.remove)
        if not args.dry_run:
            names = ", ".join(f"{volume.full_name} ({volume.size})" for volume in chosen)
            output.confirm(args, f"Remove {names} with everything in it?")
            rm.remove_all(chosen)
    items = [_volume_item(volume) for volume in chosen]
    output.print_items(args, "Volume", items, _VOLUME_COLUMNS, empty="no volume outlives its runs here")
    return 0


def _volume_item(volume: local_volumes.Volume) -> dict[str, object]:
    return {
        "name": volume.full_name,
        "experiment": volume.experiment,
        "volume": volume.name,
        "folder": str(volume.folder),
        "bytes": volume.bytes,
        "isMore": volume.is_more,
        "size": volume.size,
        "lastUsed": volume.last_used,
        "usedBy": list(volume.used_by),
    }


def _used(item: Mapping[str, Any]) -> str:
    ago = f"{printable.age(time.time() - item['lastUsed'])} ago"
    return f"by {', '.join(item['usedBy'])}" if item["usedBy"] else ago


_VOLUME_COLUMNS = [
    *output.columns("experiment", "volume", "size"),
    output.Column("LAST USED", _used),
    output.Column("FOLDER", "folder"),
]


# For each action: its help, its arguments, its function, and examples.
_ACTIONS = {
    "env": (
        "the exact environment of a process",
        _add_env,
        env,
        ("symph local env learner rl", '(eval "$(symph local env learner rl --show-secrets)"; ./debug.sh)'),
    ),
    "render": (
        "the plan for this machine, also for tmuxp or process-compose",
        _add_render,
        render,
        ("symph local render experiment.yaml", "symph local render experiment.yaml --as tmuxp --to /tmp/rl"),
    ),
    "replay": (
        "start a past run again from what it kept",
        _add_replay,
        _replay,
        ("symph local replay ring", "symph local replay ring --run 20260101-1200 --wait"),
    ),
    "history": ("the runs that this machine remembers", _add_history, _history, ("symph local history ring -o json",)),
    "gc": (
        "remove old runs and their logs",
        _add_gc,
        _gc,
        ("symph local gc --keep 5 --dry-run", "symph local gc ring --older-than 7d --yes"),
    ),
    "volumes": (
        "the volumes that outlive runs: what claims and NFS mounts hold on this machine",
        _add_volumes,
        _volumes,
        ("symph local volumes", "symph local volumes -o json", "symph local volumes --remove rl/ckpt"),
    ),
}


def run(args: argparse.Namespace) -> int:
    _, _, action, _ = _ACTIONS[args.local_action]
    return action(args)
