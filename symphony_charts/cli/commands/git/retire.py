"""`symph retire`: take an experiment out of an environment."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import gitops as shared

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph retire`."""
    from symphony_charts.cli.options import common

    shared.add_named(parser)
    shared.add_env(parser)
    shared.add_repository(parser)
    shared.add_change_options(parser)
    common.add_yes(parser)
    common.add_examples(
        parser,
        "symph retire rl --env dev            # its pointer goes, and with it what runs; the charts stay",
        "symph retire rl --env dev --expect 0.2.0 --yes",
    )


def run(args: argparse.Namespace) -> int:
    """Remove the pointer, after asking."""
    import time

    from symphony_charts.cli import output
    from symphony_charts.errors import NotFound
    from symphony_charts.gitops.operations.promote_rollback_retire import Retire

    settings = shared.settings_of(args)
    env = settings.environment(args.env)
    store = shared.store_or_none(args, settings)
    team = shared.find_team(args, settings, store, env)
    name = args.experiment_name
    operation = Retire(team=team, name=name, env=env, expect=args.expect)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, f"Take {team}/{name} out of {env}, and end what runs there?")
    changes, receipt = shared.carry_out(args, store, [operation], int(time.time()))
    if changes[0].facts["was"] is None:
        raise NotFound(f"{env} runs no {team}/{name}", next=f"symph status --env {env} lists what it runs")
    text = f"{name} {changes[0].facts['was']} retired from {env}"
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    return 0
