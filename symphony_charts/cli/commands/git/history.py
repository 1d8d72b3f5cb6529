"""`symph history`: what an environment, or a Helm release, ran and runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import gitops as shared
from symphony_charts.cli.options import release as release_options

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.gitops.operations.pointer import Deployed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph history`."""
    from symphony_charts.cli.options import common

    shared.add_named(parser)
    shared.add_env(parser)
    shared.add_repository(parser)
    release_options.add_target(parser)
    common.add_output(parser)
    common.add_examples(
        parser, "symph history rl --env prod", "symph history ml/rl --env prod -o json", "symph history rl -n ml"
    )


def run(args: argparse.Namespace) -> int:
    """Print the entries, the newest first."""
    from symphony_charts.cli import output
    from symphony_charts.cli.commands.helm.helm_release import helm_history, means_helm
    from symphony_charts.gitops import layout
    from symphony_charts.gitops.operations.promote_rollback_retire import read_pointer

    if means_helm(args):
        return helm_history(args)
    settings = shared.settings_of(args)
    env = settings.environment(args.env)
    store = shared.open_store(args, settings, reads_only=True)
    team = shared.find_team(args, settings, store, env)
    name = args.experiment_name
    path = layout.pointer_path(env, team, name)
    pointer = read_pointer(store.read([layout.pointer_folder(env, team)], lambda _seen: [path]), env, team, name)
    items = [_item(entry, is_now=number == 0) for number, entry in enumerate([pointer.deployed, *pointer.history])]
    columns = [
        output.Column("VERSION", "version"),
        output.Column("NOW", lambda item: "now" if item["isNow"] else None, state=lambda _item: "good"),
        output.Column("WHY", "op"),
        output.Column("AT", "at"),
        output.Column("VALUES", "values"),
        output.Column("DIGEST", "digest", is_wide=True),
    ]
    output.print_items(args, "Deployed", items, columns, name="version")
    return 0


def _item(entry: Deployed, *, is_now: bool) -> dict[str, object]:
    import json

    values = json.dumps(entry.values, sort_keys=True, ensure_ascii=False) if entry.values else ""
    return {
        "version": entry.version,
        "isNow": is_now,
        "op": entry.op,
        "at": entry.at,
        "values": values,
        "digest": entry.digest,
    }
