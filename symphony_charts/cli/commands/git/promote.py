"""`symph promote`: let one environment run what another runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import gitops as shared

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph promote`."""
    from symphony_charts.cli.options import common

    shared.add_named(parser)
    parser.add_argument("--from", metavar="ENV", dest="before", required=True, help="the environment that runs it")
    parser.add_argument("--to", metavar="ENV", dest="after", required=True, help="the environment that shall run it")
    parser.add_argument("--version", metavar="V", default=None, help="only if the first environment runs this version")
    parser.add_argument(
        "--copy-values", action="store_true", help="take the environment's values along (default: keep those of --to)"
    )
    shared.add_repository(parser)
    shared.add_change_options(parser)
    common.add_examples(
        parser,
        "symph promote rl --from dev --to prod",
        "symph promote rl --from dev --to prod --version 0.2.0 --expect 0.1.3 --dry-run",
        "symph promote rl --from dev --to prod --branch promote-rl      # for a review",
    )


def run(args: argparse.Namespace) -> int:
    """Move the pointer of the second environment."""
    import time

    from symphony_charts.gitops.operations.promote_rollback_retire import Promote

    settings = shared.settings_of(args)
    before, after = settings.environment(args.before), settings.environment(args.after)
    store = shared.store_or_none(args, settings)
    team = shared.find_team(args, settings, store, before)
    now = int(time.time())
    place = settings.environments.get(after)
    operation = Promote(
        team=team,
        name=args.experiment_name,
        before=before,
        after=after,
        copies_values=args.copy_values,
        env_values=None,
        first_values=place.values if place else {},
        destination=place.destination if place else None,
        version=args.version,
        expect=args.expect,
        at=shared.now_text(now),
    )
    changes, receipt = shared.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['version']} {before} -> {after}   was {facts['was'] or 'not there'}"
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    return 0
