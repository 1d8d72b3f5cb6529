"""`symph history`: what an environment, or a Helm release, ran and runs."""

from __future__ import annotations

import argparse
import json

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.pointer import Deployed
from symphony_charts.gitops.operations.promote_rollback_retire import read_pointer

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the entries, the newest first."""
    status = on_release(args, "history")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.open_store(args, settings, reads_only=True)
    team = git_repository.find_team(args, settings, store, env)
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
    values = json.dumps(entry.values, sort_keys=True, ensure_ascii=False) if entry.values else ""
    return {
        "version": entry.version,
        "isNow": is_now,
        "op": entry.op,
        "at": entry.at,
        "values": values,
        "digest": entry.digest,
    }
