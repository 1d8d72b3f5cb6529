"""`symph promote`, `rollback` and `retire`: change what environments run."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import git_repository, history, options, output
from symphony_charts.errors import NotFound
from symphony_charts.gitops import layout, pointer, promote_rollback_retire
from symphony_charts.gitops.store import environments as git_history
from symphony_charts.gitops.store import store as git_store
from symphony_charts.settings import project
from symphony_charts.system.git import cache as git_log


def configure_promote(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    parser.add_argument("--from", metavar="ENV", dest="before", required=True, help="the environment that runs it")
    parser.add_argument("--to", metavar="ENV", dest="after", required=True, help="the environment that shall run it")
    parser.add_argument("--version", metavar="V", default=None, help="only if the first environment runs this version")
    parser.add_argument(
        "--copy-values", action="store_true", help="take the environment's values along (default: keep those of --to)"
    )
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_examples(
        parser,
        "symph promote rl --from dev --to prod",
        "symph promote rl --from dev --to prod --version 0.2.0 --expect 0.1.3 --dry-run",
        "symph promote rl --from dev --to prod --branch promote-rl      # for a review",
    )


def run_promote(args: argparse.Namespace) -> int:
    """Move the pointer of the second environment."""
    settings = git_repository.settings_of(args)
    before, after = settings.environment(args.before), settings.environment(args.after)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, before)
    now = int(time.time())
    place = settings.environments.get(after)
    operation = promote_rollback_retire.Promote(
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


def configure_rollback(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    parser.add_argument(
        "--to", metavar="VERSION", default=None, help="the version, or the revision of a release (default: the last)"
    )
    options.add_env(parser)
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_target(parser)
    parser.add_argument("--wait", action="store_true", help="a release: return when all is ready or has finished")
    parser.add_argument(
        "--timeout", type=options.helm_seconds, default=300.0, metavar="TIME", help="a release: default 5m"
    )
    options.add_yes(parser)
    options.add_examples(
        parser,
        "symph rollback rl -n ml --to 3",
        "symph rollback rl --env prod",
        "symph rollback rl --env prod --to 0.1.3 --expect 0.2.0 --dry-run",
    )


def run_rollback(args: argparse.Namespace) -> int:
    """Move the pointer back: version, digest and values; or make a release what it was."""
    status = history.on_release(args, "rollback")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team, retired = _whose(args, settings, store, env)
    now = int(time.time())
    operation = promote_rollback_retire.Rollback(
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


def _whose(
    args: argparse.Namespace, settings: project.Settings, store: git_store.Store | None, env: str
) -> tuple[str, pointer.Pointer | None]:
    """The team, and the pointer that was retired last if nothing runs now; a checkout does not tell of that."""
    if store is None:
        return git_repository.find_team(args, settings, store, env), None
    log = git_log.Log(store.cache, store.folder)
    try:
        team = git_repository.find_team(args, settings, store, env)
    except NotFound:
        # It may have run: then the commits know whose it was.
        events = git_history.events_in(log, args.experiment_name, env)
        team = history.team_of_events(events, args.experiment_name)
        if not team:
            raise
        return team, git_history.pointer_retired(events, log, args.experiment_name)
    path = layout.pointer_path(env, team, args.experiment_name)
    if store.read([layout.pointer_folder(env, team)], lambda _seen: [path]).read(path) is not None:
        return team, None
    events = [event for event in git_history.events_in(log, args.experiment_name, env) if event.team == team]
    return team, git_history.pointer_retired(events, log, args.experiment_name)


def configure_retire(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    options.add_env(parser)
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_yes(parser)
    options.add_examples(
        parser,
        "symph retire rl --env dev            # its pointer goes, and with it what runs; the charts stay",
        "symph retire rl --env dev --expect 0.2.0 --yes",
    )


def run_retire(args: argparse.Namespace) -> int:
    """Remove the pointer, after asking."""
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, env)
    name = args.experiment_name
    operation = promote_rollback_retire.Retire(team=team, name=name, env=env, expect=args.expect)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, f"Take {team}/{name} out of {env}, and end what runs there?")
    changes, receipt = git_repository.carry_out(args, store, [operation], int(time.time()))
    if changes[0].facts["was"] is None:
        raise NotFound(f"{env} runs no {team}/{name}", next=f"symph status --env {env} lists what it runs")
    text = f"{name} {changes[0].facts['was']} retired from {env}"
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
