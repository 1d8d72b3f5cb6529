"""`symph local`: what processes here see, how that compares with their pods, other runners, and runs of the past."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from symphony_charts.cli import output
from symphony_charts.cli.commands.tools import local_views, local_volumes
from symphony_charts.errors import SymphError, UsageError
from symphony_charts.formats.age import age
from symphony_charts.formats.size import size
from symphony_charts.local import up
from symphony_charts.local.history import PastRun, all_runs, find_past, load_saved, past_run, removable, remove
from symphony_charts.local.runs import Run, home
from symphony_charts.spec.services import allocate
from symphony_charts.system import remover

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "env": local_views.env,
        "render": local_views.render,
        "replay": _replay,
        "history": _history,
        "gc": _gc,
        "volumes": local_volumes.volumes,
    }
    return actions[args.local_action](args)


def _replay(args: argparse.Namespace) -> int:
    past = find_past(args.experiment_name, args.run)
    saved = load_saved(past)
    services = allocate(saved.experiment, saved.ports)
    started = up.up(
        saved.experiment,
        services,
        folder=saved.folder,
        force=args.force,
        dry_run=args.dry_run,
        share_gpus=past.plan().is_sharing_gpus,
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
    if args.experiment_name is not None:
        find_past(args.experiment_name)
    items = [_item(past_run(run)) for run in all_runs(args.experiment_name)]
    output.print_items(args, "Run", items, _COLUMNS, empty="no runs are remembered here", name="run")
    return 0


def _gc(args: argparse.Namespace) -> int:
    keep = args.keep if args.keep is not None else 0 if args.older_than else 10
    if keep < 0:
        raise UsageError(f"--keep takes a number of at least 0, got {keep}")
    if args.experiment_name is not None:
        find_past(args.experiment_name)
    items, refusals = [], []
    runs: list[Run] = []
    for run in removable(all_runs(args.experiment_name), keep=keep, older_than_s=_age(args.older_than)):
        try:
            remover.check(run.home, run.experiment, run.run_id)
        except SymphError as error:
            refusals.append(str(error))
        else:
            runs.append(run)
            items.append(_item(past_run(run)))
    # What an earlier removal left behind goes whatever is asked for: it is no run any more.
    rest = [str(path) for path in remover.trash(home())]
    if not args.dry_run and (items or rest):
        if items and not args.yes:
            output.note(output.format_table(items, _COLUMNS, room=output.room_of(args.output)))
        output.confirm(args, f"Remove {_what(items, rest)}?")
        removed = [item for run, item in zip(runs, items, strict=True) if _is_removed(run, refusals)]
        items = removed
        refusals += remover.empty_trash(home()) if rest else []
    output.print_items(args, "Run", items, _COLUMNS, empty="no run to remove", name="run")
    if args.output == "table" and (items or rest):
        output.note(f"{_what(items, rest)} {'would be removed' if args.dry_run else 'removed'}")
    for refusal in refusals:
        output.warn(f"cannot be removed: {refusal}")
    return 1 if refusals else 0


def _what(items: list[dict[str, object]], rest: list[str]) -> str:
    total = sum(item["bytes"] for item in items if isinstance(item["bytes"], int))
    parts = [f"{len(items)} runs with their logs, {size(total)}"] if items else []
    parts += [f"{len(rest)} leftovers of earlier removals"] if rest else []
    return ", and ".join(parts)


def _is_removed(run: Run, refusals: list[str]) -> bool:
    """Remove a run; whether all of it is gone, else `refusals` get the reason."""
    try:
        left = remove(run)
    except SymphError as error:
        left = [str(error)]
    refusals += left
    return not left


def _age(text: str | None) -> float:
    """`7d` in seconds; 0 for None."""
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
    assert isinstance(item, dict)  # noqa: S101 - made by _item
    if item["started"] is None:
        return ""
    return age((item["ended"] or time.time()) - item["started"])


def _started(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - likewise
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item["started"])) if item["started"] else ""


def _how(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - likewise
    status = "with unknown status" if item["status"] is None else item["status"]
    return f"failed {status} ({item['failed']})" if item["failed"] else str(item["phase"])


def _size(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - likewise
    return size(item["bytes"])


_COLUMNS = (
    output.Column("EXPERIMENT", "name"),
    output.Column("RUN", "run"),
    output.Column("STARTED", _started),
    output.Column("TOOK", _took),
    output.Column("PROCESSES", "processes"),
    output.Column("END", _how),
    output.Column("SIZE", _size),
)
