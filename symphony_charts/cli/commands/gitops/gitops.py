"""`symph gitops`: begin a repository of charts, check it, print its manifests, tidy it; review a change."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from symphony_charts.cli import findings, output
from symphony_charts.cli.commands.chart.render import print_objects
from symphony_charts.cli.commands.gitops import git_repository, init, review_specs
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.gitops.lint.repository import RepositoryFiles, check_repository, is_repository, size_findings
from symphony_charts.gitops.operations.garbage_collect import Tidy
from symphony_charts.gitops.store.environment import objects_of_environment
from symphony_charts.system.git.checkout import changed_since, count_refs, read_checkout

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    verbs = {
        "init": init.run,
        "lint": _lint,
        "doctor": _lint,
        "render": _render,
        "gc": _tidy,
        "review": review_specs.run,
    }
    return verbs[args.action](args)


def _lint(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    files, links = read_checkout(folder)
    changed = changed_since(folder, args.base) if args.base else ()
    tree = RepositoryFiles(files=files, links=links, changed=changed)
    if not is_repository(tree):
        what = f"{folder} holds no charts, pointers or bootstrap files of symph: there is nothing to check"
        raise CheckFailed(what, "", "give a checkout of the repository, with the branch that the cluster reads")
    problems = check_repository(tree)
    if args.action == "doctor":
        problems += [("", finding) for finding in size_findings(files, count_refs(folder))]
    return findings.print_findings(args, problems, str(folder))


def _render(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.open_store(args, settings, reads_only=True)
    objects, notes = objects_of_environment(store.at_tip(), env)
    for note in notes:
        output.warn(note)
    print_objects(args, objects)
    return 0


def _tidy(args: argparse.Namespace) -> int:
    if args.keep < 1:
        raise UsageError(f"--keep takes a number of at least 1, got {args.keep}")
    settings = git_repository.settings_of(args)
    store = git_repository.open_store(args, settings)
    read = store.at_tip()
    top = read(["charts", "envs"], lambda _seen: [])
    teams, envs = (
        sorted(name for name, entry in top.folder(place).items() if entry.is_folder) for place in ("charts", "envs")
    )
    middle = read([*(f"charts/{team}" for team in teams), *(f"envs/{env}" for env in envs)], lambda _seen: [])
    experiments = tuple((team, name) for team in teams for name in sorted(middle.folder(f"charts/{team}")))
    folders = tuple(f"envs/{env}/{team}" for env in envs for team in sorted(middle.folder(f"envs/{env}")))
    operation = Tidy(keep=args.keep, experiments=experiments, pointer_folders=folders)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, "Remove the chart versions that nothing needs?")
    changes, receipt = git_repository.carry_out(args, None if args.into else store, [operation], int(time.time()))
    removed = changes[0].facts["removed"]
    assert isinstance(removed, list)  # noqa: S101 - what Tidy says
    text = f"{len(removed)} versions removed" + (f": {', '.join(removed[:6])}" if removed else "")
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
