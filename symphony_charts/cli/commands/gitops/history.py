"""`symph history`: what an environment, or a Helm release, ran and runs, who changed it and by which commit."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.helm.choice import on_release
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.pointer_files import pointer_or_none
from symphony_charts.gitops.store.history import Event, events_in, with_pointer
from symphony_charts.settings.project import Settings
from symphony_charts.system.git.log import Log

__all__ = ["run", "team_of_events"]


def run(args: argparse.Namespace) -> int:
    """Print the entries, the newest first; what was retired has some, too."""
    status = on_release(args, "history")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    events = _events(args, settings, settings.environment(args.env))
    items = [_item(event, is_now=number == 0 and event.op != "retire") for number, event in enumerate(events)]
    columns = [
        output.Column("VERSION", "version"),
        output.Column("NOW", lambda item: "now" if item["isNow"] else None, state=lambda _item: "good"),
        output.Column("OP", "op"),
        output.Column("AT", "at"),
        output.Column("BY", "by"),
        output.Column("COMMIT", lambda item: str(item["commit"])[:7] if item["commit"] else None),
        output.Column("WHY", lambda item: item["reason"]),
        output.Column("VALUES", lambda item: _text(item["values"])),
        output.Column("DIGEST", "digest", is_wide=True),
    ]
    output.print_items(args, "Deployed", items, columns, name="version")
    return 0


def _events(args: argparse.Namespace, settings: Settings, env: str) -> list[Event]:
    """What happened to the experiment in `env`. Raises NotFound where nothing ever did."""
    store = git_repository.open_store(args, settings, reads_only=True)
    log = Log(store.cache, store.folder)
    try:
        team = git_repository.find_team(args, settings, store, env)
    except NotFound:
        # It may have run: then the commits know whose it was.
        events = events_in(log, args.experiment_name, env)
        if not team_of_events(events, args.experiment_name):
            raise
        return with_pointer(events, None, log, args.experiment_name)
    name = args.experiment_name
    path = layout.pointer_path(env, team, name)
    tip = store.read([layout.pointer_folder(env, team)], lambda _seen: [path])
    pointer = pointer_or_none(tip, env, team, name)
    events = with_pointer([event for event in events_in(log, name, env) if event.team == team], pointer, log, name)
    if not events:
        raise NotFound(f"{env} never ran {team}/{name}", next=f"symph status --env {env} lists what it runs")
    return events


def team_of_events(events: Iterable[Event], name: str) -> str:
    """Whose experiment it was; empty where there are no events. Raises UsageError where several teams had one."""
    teams = sorted({event.team for event in events})
    if len(teams) > 1:
        raise UsageError(f"{name} was an experiment of {', '.join(teams)}", next=f"say which: {teams[0]}/{name}")
    return teams[0] if teams else ""


def _item(event: Event, *, is_now: bool) -> dict[str, object]:
    return {
        "version": event.version,
        "isNow": is_now,
        "op": event.op,
        "at": event.at,
        "by": event.by or None,
        "commit": event.commit,
        "reason": event.reason or None,
        "values": event.deployed.values if event.deployed else None,
        "digest": event.deployed.digest if event.deployed else None,
    }


def _text(values: object) -> str:
    return json.dumps(values, sort_keys=True, ensure_ascii=False) if values else ""
