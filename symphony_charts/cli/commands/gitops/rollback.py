"""`symph rollback`: let an environment, or a Helm release, run again what it ran before."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.gitops.operations.promote_rollback_retire import Rollback

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Move the pointer back: version, digest and values; or make a release what it was."""
    status = on_release(args, "rollback")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, env)
    now = int(time.time())
    operation = Rollback(
        team=team,
        name=args.experiment_name,
        env=env,
        version=args.to,
        expect=args.expect,
        at=git_repository.now_text(now),
        by=git_repository.author_name(settings),
    )
    changes, receipt = git_repository.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['was']} -> {facts['version']} in {env}"
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
