"""`symph local`: what processes here see, how that compares with their pods, other runners, and runs of the past."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.local.history import PastRun

FORMATS = ("table", "json", "yaml", "name")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph local`."""
    actions = parser.add_subparsers(dest="local_action", metavar="ACTION", required=True)
    for name, text, add, examples in _ACTIONS:
        action = actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        add(action)
        common.add_examples(action, *examples)
    common.add_examples(
        parser,
        "symph local env learner rl",
        "symph local diff experiment.yaml --probe",
        "symph local render experiment.yaml --as procfile",
        "symph local history ring",
        "symph local replay ring",
        "symph local gc --keep 5 --older-than 7d --dry-run",
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    from symphony_charts.cli.commands.run import local_views

    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "env": local_views.env,
        "diff": local_views.diff,
        "render": local_views.render,
        "replay": _replay,
        "history": _history,
        "gc": _gc,
    }
    return actions[args.local_action](args)


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("component_name", metavar="PROCESS", nargs="?", help="default: the only one there is")
    common.add_experiment(parser)
    parser.add_argument("--spec", metavar="SPEC", default=None, help="of this experiment file, which need not run")
    parser.add_argument("--show-secrets", action="store_true", help="print secret values, too")
    common.add_output(parser, ("shell", "json", "yaml"), default="shell", headers=False)


def _add_diff(parser: argparse.ArgumentParser) -> None:
    add_values(parser)
    common.add_specs(parser, many=False)
    parser.add_argument("--probe", action="store_true", help="also start a program in tmux that looks around there")
    common.add_output(parser, ("table", "json", "yaml"), headers=False)


def _add_render(parser: argparse.ArgumentParser) -> None:
    common.add_specs(parser, many=False)
    parser.add_argument(
        "--as",
        dest="form",
        choices=("plan", "tmuxp", "procfile", "process-compose", "shell"),
        default="plan",
        help="for which runner (default: plan, which prints the plan and writes nothing)",
    )
    parser.add_argument("--to", metavar="FOLDER", default=None, help="where its files go (default: NAME-local)")
    parser.add_argument("--force", action="store_true", help="replace what an earlier render wrote there")
    parser.add_argument("--show-secrets", action="store_true", help="print secret values in the plan, too")
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser, "print the runner's file and write nothing")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", help="an experiment that has run here")
    parser.add_argument("--run", metavar="ID", default=None, help="which run, or how its id begins (default: the last)")
    parser.add_argument("--wait", action="store_true", help="wait until it is over; exit with its status")
    parser.add_argument("--force", action="store_true", help="end the experiment first if it runs already")
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser, "print what would be started, without values of variables")


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    common.add_output(parser, FORMATS)


def _add_gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=int,
        default=None,
        help="newest ended runs to keep (default: 10; 0 with --older-than)",
    )
    parser.add_argument(
        "--older-than", metavar="AGE", default=None, help="only runs that ended so long ago: 90s, 12h, 7d"
    )
    common.add_output(parser, FORMATS)
    common.add_dry_run(parser)


_ACTIONS = (
    (
        "env",
        "the exact environment of a process",
        _add_env,
        ("symph local env learner rl", '(eval "$(symph local env learner rl --show-secrets)"; ./debug.sh)'),
    ),
    (
        "diff",
        "whether processes see here what they see in their pods",
        _add_diff,
        ("symph local diff experiment.yaml", "symph local diff experiment.yaml --probe -o json"),
    ),
    (
        "render",
        "the plan for this machine, also for tmuxp, honcho, process-compose or a shell",
        _add_render,
        ("symph local render experiment.yaml", "symph local render experiment.yaml --as tmuxp --to /tmp/rl"),
    ),
    (
        "replay",
        "start a past run again from what it kept",
        _add_replay,
        ("symph local replay ring", "symph local replay ring --run 20260101-1200 --wait"),
    ),
    ("history", "the runs that this machine remembers", _add_history, ("symph local history ring -o json",)),
    (
        "gc",
        "remove old runs and their logs",
        _add_gc,
        ("symph local gc --keep 5 --dry-run", "symph local gc ring --older-than 7d"),
    ),
)


def _replay(args: argparse.Namespace) -> int:
    from symphony_charts.local import up
    from symphony_charts.local.history import find_past, load_saved
    from symphony_charts.spec.services import allocate

    past = find_past(args.experiment_name, args.run)
    saved = load_saved(past)
    services = allocate(saved.experiment, saved.ports)
    started = up.up(
        saved.experiment,
        services,
        folder=saved.folder,
        force=args.force,
        dry_run=args.dry_run,
        share_gpus=bool(past.plan().get("is_sharing_gpus")),
    )
    if started is None:
        return 0
    record = {"name": started.experiment, "run": started.run_id, "replays": past.run_id}
    output.print_record(args, "Run", record, f"{started.experiment}   run {started.run_id} replays {past.run_id}")
    if not args.wait:
        output.next_step(f"symph process {started.experiment}", f"symph logs -f {started.experiment}")
        return 0
    return up.wait(started)


def _history(args: argparse.Namespace) -> int:
    from symphony_charts.local.history import all_runs, find_past, past_run

    if args.experiment_name is not None:
        find_past(args.experiment_name)
    items = [_item(past_run(one)) for one in all_runs(args.experiment_name)]
    output.print_items(args, "Run", items, _COLUMNS, empty="no runs are remembered here", name="run")
    return 0


def _gc(args: argparse.Namespace) -> int:
    from symphony_charts.errors import UsageError
    from symphony_charts.local.history import all_runs, find_past, past_run, removable, remove

    keep = args.keep if args.keep is not None else 0 if args.older_than else 10
    if keep < 0:
        raise UsageError(f"--keep takes a number of at least 0, got {keep}")
    if args.experiment_name is not None:
        find_past(args.experiment_name)
    chosen = removable(all_runs(args.experiment_name), keep=keep, older_than_s=_age(args.older_than))
    items = []
    for one in chosen:
        item = _item(past_run(one))
        if args.dry_run or remove(one):
            items.append(item)
    output.print_items(args, "Run", items, _COLUMNS, empty="nothing to remove", name="run")
    if args.output == "table" and items:
        total = sum(item["bytes"] for item in items if isinstance(item["bytes"], int))
        output.note(f"{len(items)} runs, {_size(total)}" + (" would be removed" if args.dry_run else " removed"))
    return 0


def _age(text: str | None) -> float:
    """`7d` in seconds; 0 for None."""
    from symphony_charts.errors import UsageError

    if text is None:
        return 0.0
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    if not text[:-1].isdecimal() or text[-1] not in units:
        raise UsageError(f'--older-than takes an age such as 90s, 12h or 7d, got "{text}"')
    return float(int(text[:-1]) * units[text[-1]])


def _item(past: PastRun) -> dict[str, object]:
    return {
        "name": past.run.experiment,
        "run": past.run.run_id,
        "phase": past.phase,
        "started": past.started,
        "ended": past.ended,
        "processes": past.processes,
        "failed": past.failed,
        "status": past.status,
        "bytes": past.bytes,
        "replay": past.can_replay,
        "folder": str(past.run.folder),
    }


def _took(item: object) -> str:
    from symphony_charts.local.runs import age

    assert isinstance(item, dict)  # noqa: S101 - made by _item
    if item["started"] is None:
        return ""
    return age((item["ended"] or time.time()) - item["started"])


def _started(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - likewise
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["started"])) if item["started"] else ""


def _how(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - likewise
    return f"failed {item['status']} ({item['failed']})" if item["failed"] else str(item["phase"])


def _size(count: object) -> str:
    assert isinstance(count, int)  # noqa: S101 - likewise
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


_COLUMNS = (
    output.Column("EXPERIMENT", "name"),
    output.Column("RUN", "run"),
    output.Column("STARTED", _started),
    output.Column("TOOK", _took),
    output.Column("PROCESSES", "processes"),
    output.Column("END", _how),
    output.Column("SIZE", lambda item: _size(item["bytes"])),
)
