"""`symph rollback`: let an environment, or a Helm release, run again what it ran before."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import gitops as shared
from symphony_charts.cli.options import release as release_options

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph rollback`."""
    from symphony_charts.cli.options import common

    shared.add_named(parser)
    parser.add_argument(
        "--to", metavar="VERSION", default=None, help="the version, or the revision of a release (default: the last)"
    )
    shared.add_env(parser)
    shared.add_repository(parser)
    shared.add_change_options(parser)
    release_options.add_target(parser)
    parser.add_argument("--wait", action="store_true", help="a release: return when all is ready or has finished")
    parser.add_argument(
        "--timeout", type=release_options.seconds, default=300.0, metavar="TIME", help="a release: default 5m"
    )
    common.add_yes(parser)
    common.add_examples(
        parser,
        "symph rollback rl -n ml --to 3",
        "symph rollback rl --env prod",
        "symph rollback rl --env prod --to 0.1.3 --expect 0.2.0 --dry-run",
    )


def run(args: argparse.Namespace) -> int:
    """Move the pointer back: version, digest and values; or make a release what it was."""
    import time

    from symphony_charts.cli.commands.helm.helm_release import helm_rollback, means_helm
    from symphony_charts.gitops.operations.promote_rollback_retire import Rollback

    if means_helm(args):
        return helm_rollback(args)
    settings = shared.settings_of(args)
    env = settings.environment(args.env)
    store = shared.store_or_none(args, settings)
    team = shared.find_team(args, settings, store, env)
    now = int(time.time())
    operation = Rollback(
        team=team,
        name=args.experiment_name,
        env=env,
        version=args.to,
        expect=args.expect,
        at=shared.now_text(now),
    )
    changes, receipt = shared.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['was']} -> {facts['version']} in {env}"
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    return 0
