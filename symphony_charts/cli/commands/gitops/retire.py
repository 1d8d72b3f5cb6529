"""`symph retire`: take an experiment out of an environment."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.errors import NotFound
from symphony_charts.gitops.operations.promote_rollback_retire import Retire

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Remove the pointer, after asking."""
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, env)
    name = args.experiment_name
    operation = Retire(team=team, name=name, env=env, expect=args.expect)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, f"Take {team}/{name} out of {env}, and end what runs there?")
    changes, receipt = git_repository.carry_out(args, store, [operation], int(time.time()))
    if changes[0].facts["was"] is None:
        raise NotFound(f"{env} runs no {team}/{name}", next=f"symph status --env {env} lists what it runs")
    text = f"{name} {changes[0].facts['was']} retired from {env}"
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
