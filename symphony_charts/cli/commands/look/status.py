"""`symph status`: what each environment, or a Helm release, runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.errors import NotFound
from symphony_charts.gitops.store.pointers import Placed, pointers

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print a line for each pointer; the status is 1 when one names a chart that is not there, or cannot be read.

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
        each
        for each in pointers(store, env)
        if name in ("", each.name) and (team or args.team or each.team) == each.team
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
        output.Column("BY", "by", is_wide=True),
        output.Column("STATE", "state", state=lambda item: "good" if item["state"] == "published" else "bad"),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("DIGEST", "digest", is_wide=True),
    ]
    items = [_item(each) for each in deployments]
    output.print_items(args, "Deployment", items, columns, empty="nothing is published")
    for each in deployments:
        if each.fault:
            output.warn(f"the pointer of {each.team}/{each.name} in {each.env} cannot be read: {each.fault}")
    return int(not all(each.has_chart for each in deployments))


def _item(each: Placed) -> dict[str, object]:
    pointer = each.pointer
    state = "published" if each.has_chart else "chart missing"
    return {
        "env": each.env,
        "team": each.team,
        "name": each.name,
        "version": pointer.version if pointer else None,
        "was": pointer.history[0].version if pointer and pointer.history else None,
        "op": pointer.op if pointer else None,
        "at": pointer.at if pointer else None,
        "by": (pointer.by or None) if pointer else None,
        "namespace": pointer.destination.namespace if pointer else None,
        "digest": pointer.digest if pointer else None,
        "chart": pointer.chart if pointer else None,
        "values": pointer.values if pointer else None,
        "state": state if pointer else "cannot be read",
    }
