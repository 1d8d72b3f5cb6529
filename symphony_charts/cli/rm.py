"""`symph rm` and `delete-batch`: end experiments and remove their runs, logs and volumes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence

from symphony_charts.backend import protocol
from symphony_charts.cli import experiments, options, output
from symphony_charts.errors import CheckFailed, NotFound, SymphError, UsageError
from symphony_charts.local import runs
from symphony_charts.local import volumes as local_volumes


def configure_rm(parser: argparse.ArgumentParser) -> None:
    options.add_experiment(parser)
    text = "all experiments whose full names match this regular expression; quote it; may be repeated"
    options.add_list(parser, "--match", metavar="PATTERN", help=text)
    options.add_selector(parser)
    add_removal(parser)
    options.add_examples(
        parser,
        "symph rm rl --volumes   # what its claims hold here, too",
        "symph rm rl --on kube --dry-run",
        "symph rm --match 'sweep-.*' --dry-run",
        "symph rm dijob/cart -n rl   # a DIJob that kubectl made",
        "symph rm experiment.yaml   # the experiment that the file describes",
    )


def add_removal(parser: argparse.ArgumentParser) -> None:
    options.add_backend(parser)
    options.add_output(parser, ("table", "json", "yaml", "name"))
    options.add_yes(parser)
    options.add_force(parser, "do not ask, and match the name exactly")
    text = "on this machine: also the volumes that outlive runs, with all their files"
    options.add_flag(parser, "--volumes", help=text)
    options.add_dry_run_like_symphony(parser)


def remove_all(chosen: Sequence[local_volumes.Volume]) -> None:
    """Remove volumes. Raises CheckFailed with the paths that could not be removed."""
    left = local_volumes.remove_volumes(chosen)
    if left:
        raise CheckFailed(f"{len(left)} files or folders could not be removed: {'; '.join(left)}")


def say_what_is_kept(run: runs.Run) -> None:
    """After the end of a run, print its volumes that remain and mount points that are stuck."""
    kept = ", ".join(f"{volume.name} ({volume.size}) in {volume.folder}" for volume in local_volumes.volumes_of(run))
    if kept:
        output.note(f"kept: {kept}   symph local volumes {run.experiment}")
    for path in run.state().stuck:
        output.warn(f"a mount point stays: {path}", next="rmdir it, if nothing needs it")


def run_rm(args: argparse.Namespace) -> int:
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
    watcher: protocol.Watcher, texts: Sequence[str], selector: Callable[[Mapping[str, str]], bool] | None
) -> list[str]:
    """Return the experiments, also ended ones, whose full name matches a pattern and whose labels match the selector.

    Raises NotFound if there are none.
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
        raise UsageError(f'"{text}" is not a valid regular expression: {error}') from error


def delete_all(args: argparse.Namespace, watcher: protocol.Watcher, names: Sequence[str]) -> int:
    """Delete these experiments, after one question; with `--dry-run` only list the removals."""
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
        try:
            for name in names:
                watcher.delete(name)
        except SymphError:
            if volumes:
                output.note(f"volumes are left: {', '.join(one.full_name for one in volumes)}   symph local volumes")
            raise
        if args.volumes:
            remove_all(volumes)
    items += [{"name": volume.experiment, kind: f"volume {volume.name}"} for volume in volumes if args.volumes]
    output.print_items(
        args, kind.capitalize(), items, [output.Column("EXPERIMENT", "name"), output.Column(kind.upper(), kind)]
    )
    if volumes and not args.volumes:
        output.note(f"kept: volumes {', '.join(volume.full_name for volume in volumes)}   symph local volumes")
    return 0


def _volumes_of(
    args: argparse.Namespace, watcher: protocol.Watcher, names: Sequence[str]
) -> list[local_volumes.Volume]:
    """Return the persistent volumes of these experiments. Raises UsageError for `--volumes` on a cluster."""
    if watcher.backend == "tmux":
        return [volume for name in names for volume in local_volumes.all_volumes(name)]
    if args.volumes:
        step = "on a cluster, claims are removed with kubectl"
        raise UsageError("--volumes means those of experiments on this machine", next=step)
    return []


def configure_delete_batch(parser: argparse.ArgumentParser) -> None:
    text = "a regular expression that fits the whole name; quote it"
    parser.add_argument("experiment_names", metavar="PATTERN", nargs="+", help=text)
    add_removal(parser)
    options.add_examples(parser, "symph rm --match 'sweep-.*' --dry-run")


def run_delete_batch(args: argparse.Namespace) -> int:
    """Delete the experiments that fit. Raises NotFound afterwards for patterns that fitted none."""
    args.experiment_name, args.match, args.selector = None, args.experiment_names, None
    names = [each.name for each in experiments.watcher_of(args).experiments(ended=True)]
    status = run_rm(args)
    if absent := [text for text in args.match if not any(map(_compiled(text).fullmatch, names))]:
        raise NotFound(f"no experiment fits {', '.join(absent)}; the others are done", next="symph ls -a lists them")
    return status
