"""`symph delete`: end an experiment and forget it: here its runs and logs, on a cluster its release or objects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.tools.local_volumes import remove_all
from symphony_charts.errors import UsageError
from symphony_charts.local.volumes import Volume, all_volumes
from symphony_charts.spec import files

__all__ = ["delete_all", "run"]


def run(args: argparse.Namespace) -> int:
    """Say what would go, ask, remove it."""
    watcher = experiments.watcher_of(args)
    word = args.experiment_name or ""
    if watcher.backend != "tmux" and word.startswith("dijob/"):
        return delete_all(args, watcher, [word])
    exactly = _name_in_file(args.experiment_name or "") or (args.experiment_name if args.force else None)
    name = watcher.describe(exactly, events=False).name if exactly else experiments.find_experiment(args, watcher)
    return delete_all(args, watcher, [name])


def _name_in_file(word: str) -> str | None:
    """Where a spec file is given in place of a name: the name of its experiment."""
    path = Path(word)
    if path.suffix not in (".yaml", ".yml", ".json", ".py") or not ("/" in word or path.exists()):
        return None

    return files.read(word).experiment.name


def delete_all(args: argparse.Namespace, watcher: Watcher, names: Sequence[str]) -> int:
    """Delete these experiments, after one question; with `--dry-run` only list what would go."""
    kind = "run" if watcher.backend == "tmux" else "object"
    volumes = _volumes_of(args, watcher, names)
    removals = {name: watcher.delete(name, dry_run=True) for name in names}
    items = [{"name": name, kind: title} for name, removed in removals.items() for title in removed]
    if not args.dry_run:
        args.yes = args.yes or args.force
        counts = ", ".join(f"{name} ({len(removed)} {kind}(s))" for name, removed in removals.items())
        logs = " with their logs" if watcher.backend == "tmux" else ""
        files = "".join(f", and volume {volume.full_name} ({volume.size})" for volume in volumes if args.volumes)
        output.confirm(args, f"Delete {counts}{logs}{files}?")
        for name in names:
            watcher.delete(name)
        if args.volumes:
            remove_all(volumes)
    items += [{"name": volume.experiment, kind: f"volume {volume.name}"} for volume in volumes if args.volumes]
    output.print_items(
        args, kind.capitalize(), items, [output.Column("EXPERIMENT", "name"), output.Column(kind.upper(), kind)]
    )
    if args.dry_run:
        output.note("nothing was changed (--dry-run)")
    if volumes and not args.volumes:
        output.note(f"kept: volumes {', '.join(volume.full_name for volume in volumes)}   symph local volumes")
    return 0


def _volumes_of(args: argparse.Namespace, watcher: Watcher, names: Sequence[str]) -> list[Volume]:
    """The volumes of these experiments that outlive their runs; only this machine has any."""
    if watcher.backend == "tmux":
        return [volume for name in names for volume in all_volumes(name)]
    if args.volumes:
        step = "on a cluster, claims are removed with kubectl"
        raise UsageError("--volumes means those of experiments on this machine", next=step)
    return []
