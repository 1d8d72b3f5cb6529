"""`symph status`: what each environment, or a Helm release, runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.errors import NotFound
from symphony_charts.gitops.review_links import review_link
from symphony_charts.gitops.store.pointers import Placed, pointers
from symphony_charts.gitops.store.review import Waiting, find_waiting, is_done
from symphony_charts.settings.project import Settings
from symphony_charts.system.user_folders import state_dir

__all__ = ["run"]

_COLORS = {"published": "good", "chart missing": "bad", "cannot be read": "bad"}


def run(args: argparse.Namespace) -> int:
    """Print a line for each pointer, and for each change that waits for review.

    The status is 1 when a pointer names a chart that is not there, or cannot be read. A Helm release is shown with its
    workloads; the status is 1 when one has failed.
    """
    status = on_release(args, "status")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env) if args.env else None
    team, _, name = (args.experiment_name or "").rpartition("/")
    store = git_repository.open_store(args, settings, reads_only=True)
    everything = pointers(store, env)
    deployments = [
        each for each in everything if name in ("", each.name) and (team or args.team or each.team) == each.team
    ]
    wanted_team = team or args.team
    reviews = _reviews(settings, everything)
    waiting = [
        (each, runs)
        for each, runs in reviews
        if name in ("", each.name) and wanted_team in ("", None, each.team) and env in (None, each.env)
    ]
    if name and not deployments and not waiting:
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
        output.Column("STATE", "state", state=lambda item: _COLORS.get(str(item["state"]), "busy")),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("DIGEST", "digest", is_wide=True),
        output.Column("REVIEW", "review", is_wide=True),
    ]
    items = [_item(each) for each in deployments]
    items += [_waiting_item(settings, each, runs) for each, runs in waiting]
    output.print_items(args, "Deployment", items, columns, empty="nothing is published")
    for each in deployments:
        if each.fault:
            output.warn(f"the pointer of {each.team}/{each.name} in {each.env} cannot be read: {each.fault}")
    return int(not all(each.has_chart for each in deployments))


def _reviews(settings: Settings, runs: list[Placed]) -> list[tuple[Waiting, str | None]]:
    """What waits on branches, each with the version that its environment runs now."""
    repository = settings.repository
    assert repository is not None  # noqa: S101 - settings_of has seen to it
    versions = {(each.env, each.team, each.name): each.pointer.version for each in runs if each.pointer}
    found = find_waiting(repository.url, repository.branch, state_dir() / "git")
    pairs = [(each, versions.get((each.env, each.team, each.name))) for each in found]
    return [(each, version) for each, version in pairs if not is_done(each, version)]


def _waiting_item(settings: Settings, waiting: Waiting, runs: str | None) -> dict[str, object]:
    repository = settings.repository
    assert repository is not None  # noqa: S101 - settings_of has seen to it
    return {
        "env": waiting.env,
        "team": waiting.team,
        "name": waiting.name,
        "version": waiting.version,
        "was": runs,
        "op": waiting.op,
        "state": f"waits on {waiting.branch}",
        "branch": waiting.branch,
        "review": review_link(repository.url, waiting.branch, repository.branch, forge=repository.forge),
    }


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
