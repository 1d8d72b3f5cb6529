"""`symph rollback`: let an environment, or a Helm release, run again what it ran before."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.gitops.history import team_of_events
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.errors import NotFound
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.pointer import Pointer
from symphony_charts.gitops.operations.promote_rollback_retire import Rollback
from symphony_charts.gitops.store.history import events_in, pointer_retired
from symphony_charts.gitops.store.store import Store
from symphony_charts.settings.project import Settings
from symphony_charts.system.git.log import Log

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Move the pointer back: version, digest and values; or make a release what it was."""
    status = on_release(args, "rollback")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team, retired = _whose(args, settings, store, env)
    now = int(time.time())
    operation = Rollback(
        team=team,
        name=args.experiment_name,
        env=env,
        version=args.to,
        expect=args.expect,
        at=git_repository.now_text(now),
        by=git_repository.author_name(settings, store.author if store else None),
        retired=retired,
    )
    changes, receipt = git_repository.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['was'] or 'retired'} -> {facts['version']} in {env}"
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0


def _whose(args: argparse.Namespace, settings: Settings, store: Store | None, env: str) -> tuple[str, Pointer | None]:
    """The team, and the pointer that was retired last if nothing runs now; a checkout does not tell of that."""
    if store is None:
        return git_repository.find_team(args, settings, store, env), None
    log = Log(store.cache, store.folder)
    try:
        team = git_repository.find_team(args, settings, store, env)
    except NotFound:
        # It may have run: then the commits know whose it was.
        events = events_in(log, args.experiment_name, env)
        team = team_of_events(events, args.experiment_name)
        if not team:
            raise
        return team, pointer_retired(events, log, args.experiment_name)
    path = layout.pointer_path(env, team, args.experiment_name)
    if store.read([layout.pointer_folder(env, team)], lambda _seen: [path]).read(path) is not None:
        return team, None
    events = [event for event in events_in(log, args.experiment_name, env) if event.team == team]
    return team, pointer_retired(events, log, args.experiment_name)
