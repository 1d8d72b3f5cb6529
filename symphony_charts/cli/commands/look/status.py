"""`symph status`: what each environment, or a Helm release, runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.errors import NotFound
from symphony_charts.gitops.operations.pointer import Pointer
from symphony_charts.gitops.store.pointers import pointers

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print a line for each pointer; the status is 1 when one names a chart that is not there.

    A Helm release is shown with its workloads; the status is 1 when one has failed.
    """
    status = on_release(args, "status")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env) if args.env else None
    team, _, name = (args.experiment_name or "").rpartition("/")
    store = git_repository.open_store(args, settings, reads_only=True)
    deployments = [
        (pointer, is_there)
        for pointer, is_there in pointers(store, env)
        if name in ("", pointer.name) and (team or args.team or pointer.team) == pointer.team
    ]
    if name and not deployments:
        raise NotFound(f"no environment runs {args.experiment_name}", next="symph status lists what runs")
    columns = [
        output.Column("ENV", "env"),
        output.Column("TEAM", "team"),
        output.Column("NAME", "name"),
        output.Column("VERSION", "version"),
        output.Column("WAS", "was"),
        output.Column("WHY", "op"),
        output.Column("AT", "at"),
        output.Column("STATE", "state", state=lambda item: "good" if item["state"] == "published" else "bad"),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("DIGEST", "digest", is_wide=True),
    ]
    items = [_item(pointer, is_there) for pointer, is_there in deployments]
    output.print_items(args, "Deployment", items, columns, empty="nothing is published")
    return int(not all(is_there for _, is_there in deployments))


def _item(pointer: Pointer, is_there: bool) -> dict[str, object]:
    return {
        "env": pointer.env,
        "team": pointer.team,
        "name": pointer.name,
        "version": pointer.version,
        "was": pointer.history[0].version if pointer.history else None,
        "op": pointer.op,
        "at": pointer.at,
        "namespace": pointer.destination.namespace,
        "digest": pointer.digest,
        "chart": pointer.chart,
        "values": pointer.values,
        "state": "published" if is_there else "chart missing",
    }
