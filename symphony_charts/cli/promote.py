"""`symph promote`, `rollback`, `retire` and `history`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from symphony_charts.cli import git_repository, install, options, output
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.gitops import base as gitops_base
from symphony_charts.gitops import operations
from symphony_charts.gitops import pointer as gitops_pointer
from symphony_charts.gitops.store import environments
from symphony_charts.gitops.store import store as git_store
from symphony_charts.settings import project
from symphony_charts.system.git import remote

LATE = (install,)  # clients of helm and Kubernetes take 190 ms, and Git does not need them


def configure_history(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    options.add_env(parser)
    options.add_repository(parser)
    options.add_target(parser)
    options.add_output(parser)
    options.add_examples(
        parser, "symph history rl --env prod", "symph history ml/rl --env prod -o json", "symph history rl -n ml"
    )


def on_release(args: argparse.Namespace, verb: str) -> int | None:
    """Run `verb` on the Helm release and return the exit status; return None if the Git repository is meant.

    `--env` and the flags of the repository choose Git; `-n`, `--context` and `--kubeconfig` choose the release. Without
    flags the one that exists is meant. Raises UsageError, listing them, if both exist, and NotFound if neither does.
    """
    flags = options.cluster_flags(args)
    if flags and typed(args, "env"):
        raise UsageError("--env means Git, and -n, --context and --kubeconfig mean a release", next="choose one")
    names_git = any(typed(args, name) for name in ("env", "repo", "into", "team", "branch", "expect"))
    if names_git and not flags:
        return None
    run = {"history": install.helm_history, "rollback": install.helm_rollback}[verb]
    name = args.experiment_name
    if flags:
        return run(args)
    release, why = "", None
    try:
        with install.open_releases(args) as there:
            namespace = args.namespace or there.namespace
            there.current(name, namespace)
            release = namespace
    except SymphError as error:
        why = error
    if not (args.repo or project.find_settings(Path.cwd()).repository):
        if why:
            what = f'there is no "{name}": no repository is configured, and {why.what}'
            raise NotFound(what, next="-n NAMESPACE for a release, --env ENV --repo URL for Git") from why
        return run(args)
    if why:
        return None
    store = git_repository.open_store(args, git_repository.settings_of(args), reads_only=True)
    team, _, bare = name.rpartition("/")
    placed = environments.pointers(store.tip(), None)
    envs = [each.env for each in placed if each.name == bare and team in ("", each.team)]
    if envs:
        what = f'"{name}" is in Git ({", ".join(envs)}) and a release in {release}'
        raise UsageError(what, next=f"--env {envs[0]} or -n {release}")
    return run(args)


def run_history(args: argparse.Namespace) -> int:
    """Print the entries, the newest first, also those of retired experiments."""
    status = on_release(args, "history")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.open_store(args, settings, reads_only=True)
    log = remote.Log(store.cache, store.folder)
    team, pointer = _past(args, settings, store, log, env)
    name = args.experiment_name
    events = environments.with_pointer(_events(log, name, env, team), pointer, log, name)
    if not events:
        raise NotFound(f"{env} never ran {team}/{name}", next=f"symph status --env {env} lists what it runs")
    items = [_item(event, is_now=event is events[0] and event.op != "retire") for event in events]
    columns = [
        output.Column("VERSION", "version"),
        output.Column("NOW", lambda item: "now" if item["isNow"] else None, state=lambda _item: "good"),
        *output.columns("op", "at", "by"),
        output.Column("COMMIT", lambda item: str(item["commit"])[:7] if item["commit"] else None),
        output.Column("WHY", "reason"),
        output.Column("VALUES", lambda item: output.json_text(item["values"]) if item["values"] else ""),
        output.Column("DIGEST", "digest", is_wide=True),
    ]
    output.print_items(args, "Deployed", items, columns, name="version")
    return 0


def _past(
    args: argparse.Namespace, settings: project.Settings, store: git_store.Store, log: remote.Log, env: str
) -> tuple[str, gitops_pointer.Pointer | None]:
    """Return the experiment's team, and its pointer if it runs in `env`."""
    try:
        team = git_repository.find_team(args, settings, store, env)
    except NotFound:
        # It may have run in the past: then the commits name its team.
        teams = sorted({event.team for event in environments.events_in(log, args.experiment_name, env)})
        if not teams:
            raise
        if len(teams) > 1:
            what = f"{args.experiment_name} was an experiment of {', '.join(teams)}"
            raise UsageError(what, next=f"name the team: {teams[0]}/{args.experiment_name}") from None
        return teams[0], None
    return team, gitops_base.pointer_or_none(store.tip(), env, team, args.experiment_name)


def _events(log: remote.Log, name: str, env: str, team: str) -> list[environments.Event]:
    return [event for event in environments.events_in(log, name, env) if event.team == team]


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


def configure_promote(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    parser.add_argument("--from", metavar="ENV", dest="before", required=True, help="the environment that runs it")
    parser.add_argument("--to", metavar="ENV", dest="after", required=True, help="the target environment")
    parser.add_argument("--version", metavar="V", help="only if the first environment runs this version")
    options.add_flag(parser, "--copy-values", help="take the environment's values along (default: keep those of --to)")
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_examples(
        parser,
        "symph promote rl --from dev --to prod",
        "symph promote rl --from dev --to prod --version 0.2.0 --expect 0.1.3 --dry-run",
        "symph promote rl --from dev --to prod --branch promote-rl      # for a review",
    )


def run_promote(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    before, after = settings.environment(args.before), settings.environment(args.after)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, before)
    now = int(time.time())
    fields = git_repository.pointer_fields(args, settings, store, after, now)
    operation = operations.Promote(
        team=team, before=before, copies_values=args.copy_values, version=args.version, **fields
    )
    changes, receipt = git_repository.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['version']} {before} -> {after}   was {facts['was'] or 'not there'}"
    text += git_repository.move_text(facts)
    git_repository.print_changes(args, settings, changes, receipt, text)
    return 0


def configure_rollback(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    parser.add_argument("--to", metavar="VERSION", help="the version, or the revision of a release (default: the last)")
    options.add_env(parser)
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_target(parser)
    options.add_flag(parser, "--wait", help="a release: wait until everything is ready or has finished")
    options.add_timeout(parser)
    options.add_yes(parser)
    options.add_examples(
        parser,
        "symph rollback rl -n ml --to 3",
        "symph rollback rl --env prod",
        "symph rollback rl --env prod --to 0.1.3 --expect 0.2.0 --dry-run",
    )


def run_rollback(args: argparse.Namespace) -> int:
    status = on_release(args, "rollback")
    if status is not None:
        return status
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    retired = None
    if store is None:
        # A checkout has no history.
        team = git_repository.find_team(args, settings, store, env)
    else:
        log = remote.Log(store.cache, store.folder)
        team, pointer = _past(args, settings, store, log, env)
        if pointer is None:
            events = _events(log, args.experiment_name, env, team)
            retired = environments.pointer_retired(events, log, args.experiment_name)
    now = int(time.time())
    fields = git_repository.pointer_fields(args, settings, store, env, now)
    operation = operations.Rollback(team=team, version=args.to, retired=retired, **fields)
    changes, receipt = git_repository.carry_out(args, store, [operation], now)
    facts = changes[0].facts
    text = f"{facts['name']} {facts['was'] or 'retired'} -> {facts['version']} in {env}"
    git_repository.print_changes(args, settings, changes, receipt, text)
    return 0


def configure_retire(parser: argparse.ArgumentParser) -> None:
    options.add_named(parser)
    options.add_env(parser)
    options.add_repository(parser)
    options.add_change_options(parser)
    options.add_yes(parser)
    options.add_examples(
        parser,
        "symph retire rl --env dev            # its pointer goes, and with it what runs; the charts stay",
        "symph retire rl --env dev --expect 0.2.0 --yes",
    )


def run_retire(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.store_or_none(args, settings)
    team = git_repository.find_team(args, settings, store, env)
    name = args.experiment_name
    operation = operations.Retire(team=team, name=name, env=env, expect=args.expect)
    git_repository.confirm_push(args, f"Take {team}/{name} out of {env}, and end what runs there?")
    changes, receipt = git_repository.carry_out(args, store, [operation])
    if changes[0].facts["was"] is None:
        raise NotFound(f"{env} runs no {team}/{name}", next=f"symph status --env {env} lists what it runs")
    text = f"{name} {changes[0].facts['was']} retired from {env}"
    git_repository.print_changes(args, settings, changes, receipt, text)
    return 0
