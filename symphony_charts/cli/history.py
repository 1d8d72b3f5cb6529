"""`symph history`: what an environment ran, and why; or the revisions of a release."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from symphony_charts.cli import git_repository, options, output
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.gitops import base, layout
from symphony_charts.gitops.store import environments
from symphony_charts.gitops.store import environments as pointers
from symphony_charts.settings import project
from symphony_charts.system.git import cache as git_log


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    options.add_env(parser)
    options.add_repository(parser)
    options.add_target(parser)
    options.add_output(parser)
    options.add_examples(
        parser, "symph history rl --env prod", "symph history ml/rl --env prod -o json", "symph history rl -n ml"
    )


def on_release(args: argparse.Namespace, verb: str) -> int | None:
    """The exit status of `verb` on the Helm release that is meant; None where the Git repository is meant."""
    if not _means_helm(args):
        return None
    # Clients of helm and Kubernetes take 190 ms to import, which Git's half of the verb has not.
    from symphony_charts.cli import install

    verbs = {"history": install.helm_history, "rollback": install.helm_rollback}
    return verbs[verb](args)


def _means_helm(args: argparse.Namespace) -> bool:
    """Whether a verb that Git and Helm share means the release.

    `--env` and the flags of the repository choose Git, `-n`, `--context` and `--kubeconfig` the release. Without any
    the one is taken that is there. Raises UsageError, listing them, where both are, and NotFound where neither is.
    """
    if options.cluster_flags(args):
        if typed(args, "env"):
            raise UsageError("--env means Git, and -n, --context and --kubeconfig mean a release", next="choose one")
        return True
    has_repository = (
        bool(_has_repository(args) or args.repo) or project.find_settings(Path.cwd()).repository is not None
    )
    if typed(args, "env") or _has_repository(args) or (has_repository and not args.experiment_name):
        return False
    if not args.experiment_name:
        return True
    release, why = _find_release(args)
    if not has_repository:
        if release is None:
            next_step = "-n NAMESPACE for a release, --env ENV --repo URL for Git"
            raise NotFound(f'there is no "{args.experiment_name}": {_reason(why)}', next=next_step) from why
        return True
    if release is None:
        return False
    envs = _environments(args)
    if envs:
        what = f'"{args.experiment_name}" is in Git ({", ".join(envs)}) and a release in {release}'
        raise UsageError(what, next=f"--env {envs[0]} or -n {release}")
    return True


def _find_release(args: argparse.Namespace) -> tuple[str | None, SymphError | None]:
    """The namespace of the release of that name, else why there is none."""
    # As above: only where a name alone does not say which is meant.
    from symphony_charts.cli.install import open_releases

    try:
        with open_releases(args) as there:
            namespace = args.namespace or there.namespace
            there.current(args.experiment_name, namespace)
            return namespace, None
    except SymphError as error:
        return None, error


def _reason(why: SymphError | None) -> str:
    return f"no repository is configured, and {why.what}" if why else "no repository is configured"


def _has_repository(args: argparse.Namespace) -> bool:
    return any(typed(args, name) for name in ("repo", "into", "team", "branch", "expect"))


def _environments(args: argparse.Namespace) -> list[str]:
    store = git_repository.open_store(args, git_repository.settings_of(args), reads_only=True)
    team, _, name = args.experiment_name.rpartition("/")
    return [each.env for each in pointers.pointers(store, None) if each.name == name and team in ("", each.team)]


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


def _events(args: argparse.Namespace, settings: project.Settings, env: str) -> list[environments.Event]:
    """What happened to the experiment in `env`. Raises NotFound where nothing ever did."""
    store = git_repository.open_store(args, settings, reads_only=True)
    log = git_log.Log(store.cache, store.folder)
    try:
        team = git_repository.find_team(args, settings, store, env)
    except NotFound:
        # It may have run: then the commits know whose it was.
        events = environments.events_in(log, args.experiment_name, env)
        if not team_of_events(events, args.experiment_name):
            raise
        return environments.with_pointer(events, None, log, args.experiment_name)
    name = args.experiment_name
    path = layout.pointer_path(env, team, name)
    tip = store.read([layout.pointer_folder(env, team)], lambda _seen: [path])
    pointer = base.pointer_or_none(tip, env, team, name)
    events = environments.with_pointer(
        [event for event in environments.events_in(log, name, env) if event.team == team], pointer, log, name
    )
    if not events:
        raise NotFound(f"{env} never ran {team}/{name}", next=f"symph status --env {env} lists what it runs")
    return events


def team_of_events(events: Iterable[environments.Event], name: str) -> str:
    """Whose experiment it was; empty where there are no events. Raises UsageError where several teams had one."""
    teams = sorted({event.team for event in events})
    if len(teams) > 1:
        raise UsageError(f"{name} was an experiment of {', '.join(teams)}", next=f"say which: {teams[0]}/{name}")
    return teams[0] if teams else ""


def _item(event: environments.Event, *, is_now: bool) -> dict[str, object]:
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
