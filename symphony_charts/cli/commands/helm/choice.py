"""`on_release` decides whether `history` and `rollback` mean a Helm release, and answers for it then."""

from __future__ import annotations

import argparse
from pathlib import Path

from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.options import common
from symphony_charts.cli.options.defaults import typed
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.gitops.store.pointers import pointers
from symphony_charts.settings.project import find_settings

__all__ = ["on_release"]


def on_release(args: argparse.Namespace, verb: str) -> int | None:
    """The exit status of `verb` on the Helm release that is meant; None where the Git repository is meant."""
    if not _means_helm(args):
        return None
    # Clients of helm and Kubernetes take 190 ms to import, which Git's half of the verb has not.
    from symphony_charts.cli.commands.helm import release

    verbs = {"history": release.helm_history, "rollback": release.helm_rollback}
    return verbs[verb](args)


def _means_helm(args: argparse.Namespace) -> bool:
    """Whether a verb that Git and Helm share means the release.

    `--env` and the flags of the repository choose Git, `-n`, `--context` and `--kubeconfig` the release. Without any
    the one is taken that is there. Raises UsageError, listing them, where both are, and NotFound where neither is.
    """
    if common.cluster_flags(args):
        if typed(args, "env"):
            raise UsageError("--env means Git, and -n, --context and --kubeconfig mean a release", next="choose one")
        return True
    has_repository = bool(_has_repository(args) or args.repo) or find_settings(Path.cwd()).repository is not None
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
    from symphony_charts.cli.commands.helm.release import open_releases

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
    """The environments whose Git pointers bear the experiment's name."""
    store = git_repository.open_store(args, git_repository.settings_of(args), reads_only=True)
    team, _, name = args.experiment_name.rpartition("/")
    return [each.env for each in pointers(store, None) if each.name == name and team in ("", each.team)]
