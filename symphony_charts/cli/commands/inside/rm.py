"""`symph rm`: end experiments and forget them: here their runs and logs, on a cluster releases or objects."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence

from symphony_charts.backend.protocol import Watcher
from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.tools.local_volumes import remove_all
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.local.volumes import Volume, all_volumes

__all__ = ["delete_all", "run"]


def run(args: argparse.Namespace) -> int:
    """Say what would go, ask, remove it."""
    watcher = experiments.watcher_of(args)
    if args.match or args.selector:
        if args.experiment_name:
            raise UsageError("a name, and --match or -l, are two ways to say what goes", next="leave one of them out")
        return delete_all(args, watcher, _matching(watcher, args.match or [".*"], args.selector))
    word = args.experiment_name or ""
    if watcher.backend != "tmux" and word.startswith("dijob/"):
        return delete_all(args, watcher, [word])
    named = experiments.name_in_spec(word)
    exactly = named if args.force or named != word else None
    name = watcher.describe(exactly, events=False).name if exactly else experiments.find_experiment(args, watcher)
    return delete_all(args, watcher, [name])


def _matching(
    watcher: Watcher, texts: Sequence[str], selector: Callable[[Mapping[str, str]], bool] | None
) -> list[str]:
    """The experiments whose whole names a pattern fits, and labels the selector; those that have ended too.

    Raises NotFound for none.
    """
    patterns = [_compiled(text) for text in texts]
    listed = watcher.experiments(ended=True)
    every = sorted({each.name for each in listed if selector is None or selector(each.labels)})
    names = [name for name in every if any(pattern.fullmatch(name) for pattern in patterns)]
    if not names:
        begun = [name for name in every if any(pattern.match(name) for pattern in patterns)]
        hint = f"patterns fit whole names; to mean {', '.join(begun)} add .*" if begun else "symph ls -a lists them"
        labels = "" if selector is None else " among those with such labels" if every else " and the labels"
        raise NotFound(f"no experiment fits {', '.join(texts)}{labels}", next=hint)
    output.note(f"{len(names)} of {len(listed)} experiments fit: {', '.join(names)}")
    return names


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f'"{text}" is no regular expression: {error}') from error


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
