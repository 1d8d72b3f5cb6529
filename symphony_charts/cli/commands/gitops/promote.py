"""`symph promote`: let one environment run what another runs."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.gitops.operations.promote_rollback_retire import Promote

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Move the pointer of the second environment."""
    settings = git_repository.settings_of(args)
    before, after = settings.environment(args.before), settings.environment(args.after)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, before)
    now = int(time.time())
    place = settings.environments.get(after)
    operation = Promote(
        team=team,
        name=args.experiment_name,
        before=before,
        after=after,
        copies_values=args.copy_values,
        settings=place.values if place else None,
        destination=place.destination if place else None,
        version=args.version,
        expect=args.expect,
        at=git_repository.now_text(now),
        by=git_repository.author_name(settings, store.author if store else None),
    )
    changes, receipt = git_repository.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['version']} {before} -> {after}   was {facts['was'] or 'not there'}"
    text += git_repository.move_text(facts)
    git_repository.say_what_is_new(settings, facts)
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
