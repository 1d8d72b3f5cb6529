"""`symph local volumes`, and what other verbs say of volumes that outlive runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from symphony_charts.cli import output
from symphony_charts.errors import CheckFailed
from symphony_charts.formats.age import age
from symphony_charts.local.runs import Run
from symphony_charts.local.volumes import Volume, all_volumes, choose, kept_by, remove_volumes

__all__ = ["remove_all", "say_what_is_kept", "volumes"]


def volumes(args: argparse.Namespace) -> int:
    """List the volumes; with `--remove` remove some of them, after asking."""
    chosen = all_volumes(args.experiment_name)
    if args.remove:
        chosen = choose(chosen, args.remove)
        if not args.dry_run:
            names = ", ".join(f"{volume.full_name} ({volume.size})" for volume in chosen)
            output.confirm(args, f"Remove {names} with everything in it?")
            remove_all(chosen)
    items = [_item(volume) for volume in chosen]
    output.print_items(args, "Volume", items, _COLUMNS, empty="no volume outlives its runs here", name="name")
    return 0


def remove_all(chosen: Sequence[Volume]) -> None:
    """Remove volumes. Raises CheckFailed naming what is left of them."""
    left = remove_volumes(chosen)
    if left:
        raise CheckFailed(f"{len(left)} files or folders could not be removed: {'; '.join(left)}")


def say_what_is_kept(run: Run) -> None:
    """Say after the end of a run which of its files outlive it, and where; nothing where none do."""
    kept = ", ".join(f"{volume.name} ({volume.size}) in {volume.folder}" for volume in kept_by(run))
    if kept:
        output.note(f"kept: {kept}   symph local volumes {run.experiment}")
    for path in run.state().stuck:
        output.warn(f"a mount point stays: {path}", next="rmdir it, if nothing needs it")


def _item(volume: Volume) -> dict[str, object]:
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


def _used(item: object) -> str:
    assert isinstance(item, dict)  # noqa: S101 - made by _item
    return f"by {', '.join(item['usedBy'])}" if item["usedBy"] else f"{age(time.time() - item['lastUsed'])} ago"


_COLUMNS = (
    output.Column("EXPERIMENT", "experiment"),
    output.Column("VOLUME", "volume"),
    output.Column("SIZE", "size"),
    output.Column("LAST USED", _used),
    output.Column("FOLDER", "folder"),
)
