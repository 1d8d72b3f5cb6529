"""`symph gitops`: begin a repository of charts, check it, render what it says, tidy it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from symphony_charts.cli import findings, output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.gitops.argocd.objects import DEFAULT_VERSION, ArgoSetup, parse_version
from symphony_charts.gitops.bootstrap import Initialise
from symphony_charts.gitops.bootstrap_files import setup_files
from symphony_charts.gitops.layout import check_names
from symphony_charts.gitops.lint.repository import RepositoryFiles, check_repository, holds_anything, size_findings
from symphony_charts.gitops.operations.garbage_collect import Tidy
from symphony_charts.gitops.store.hydrate import Render, load_environment, rendered_files
from symphony_charts.settings.project import Destination, Environment, Settings
from symphony_charts.system import installation
from symphony_charts.system.git.checkout import changed_since, count_refs, read_checkout

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    verbs = {"init": _init, "lint": _lint, "doctor": _lint, "render": _render, "gc": _tidy}
    return verbs[args.action](args)


def _init(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    repository = settings.repository
    environments = _environments(args, settings)
    setup = ArgoSetup(
        url=repository.url if repository else "https://git.example.org/charts.git",
        branch=repository.branch if repository else "main",
        project=repository.project if repository else "symph",
        version=parse_version(args.argocd_version) if args.argocd_version else DEFAULT_VERSION,
        protects=args.protect,
        gpg_keys=tuple(args.gpg_key),
    )
    files = setup_files(
        setup,
        environments,
        requirement=_requirement(args),
        owners=args.owners,
        uses_flux=args.flux,
        sops_secret=args.sops_secret,
        suspended_as=args.suspended_as,
    )
    store = git_repository.store_or_none(args, settings)
    operation = Initialise(contents=files, replaces=args.force)
    changes, receipt = git_repository.carry_out(args, store, [operation], int(time.time()))
    written, kept = changes[0].facts["written"], changes[0].facts["kept"]
    assert isinstance(written, list)  # noqa: S101 - what Initialise says
    assert isinstance(kept, list)  # noqa: S101 - likewise
    text = f"{len(written)} files" + (f", {len(kept)} left as they are: {', '.join(kept)}" if kept else "")
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    if args.output == "table" and not args.dry_run:
        output.next_step(
            "apply bootstrap/ to the cluster as its README says", "symph publish SPEC --env " + next(iter(environments))
        )
    return 0


def _requirement(args: argparse.Namespace) -> str:
    """What the check of the repository installs. Raises UsageError where nobody else could install the same."""
    if args.install_from is not None:
        return installation.requirement(installation.check_pinned(args.install_from))
    where = installation.pinned_source()
    if where is None:
        what = "what shall the repository's check install? This symph did not come from where others find the same"
        raise UsageError(what, "", f"--install-from WHERE: {installation.FORMS}")
    return installation.requirement(where)


def _environments(args: argparse.Namespace, settings: Settings) -> dict[str, Destination]:
    named = [name.strip() for name in (args.environments or "").split(",") if name.strip()]
    names = named or list(settings.environments) or ["dev", "prod"]
    for name in names:
        check_names(environment=name)
    return {name: settings.environments.get(name, Environment()).destination for name in names}


def _lint(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    files, links = read_checkout(folder)
    changed = changed_since(folder, args.base) if args.base else ()
    tree = RepositoryFiles(files=files, links=links, changed=changed)
    if not holds_anything(tree):
        what = f"{folder} holds no charts, environments, bootstrap or manifests: there is nothing to check"
        raise CheckFailed(what, "", "give a checkout of the repository, with the branch that the cluster reads")
    problems = check_repository(tree)
    if args.action == "doctor":
        problems += [("", finding) for finding in size_findings(files, count_refs(folder))]
    return findings.print_findings(args, problems, str(folder))


def _render(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    source = git_repository.open_store(argparse.Namespace(), settings, reads_only=True)
    commit, pointers = load_environment(source.at_tip(), env)
    # On a branch of its own an environment stands at the top, as GitOps Promoter has it.
    root = "" if args.branch else f"rendered/{env}"
    experiments = {
        f"{pointer.team}/{pointer.name}": rendered_files(pointer, values, commit, schema)
        for pointer, values, schema in pointers
    }
    operation = Render(env=env, root=root, dry_sha=commit, experiments=experiments)
    store = None if args.into is not None else git_repository.open_store(args, settings, begins_empty=True)
    changes, receipt = git_repository.carry_out(args, store, [operation], int(time.time()))
    text = f"{changes[0].facts['changed']} of {len(experiments)} experiments of {env} rendered"
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0


def _tidy(args: argparse.Namespace) -> int:
    if args.keep < 1:
        raise UsageError(f"--keep takes a number of at least 1, got {args.keep}")
    settings = git_repository.settings_of(args)
    store = git_repository.open_store(args, settings)
    read = store.at_tip()
    top = read(["charts", "envs"], lambda _seen: [])
    teams, envs = sorted(top.folder("charts")), sorted(top.folder("envs"))
    middle = read([*(f"charts/{team}" for team in teams), *(f"envs/{env}" for env in envs)], lambda _seen: [])
    experiments = tuple((team, name) for team in teams for name in sorted(middle.folder(f"charts/{team}")))
    folders = tuple(f"envs/{env}/{team}" for env in envs for team in sorted(middle.folder(f"envs/{env}")))
    operation = Tidy(keep=args.keep, experiments=experiments, pointer_folders=folders)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, "Remove the chart versions that nothing needs?")
    changes, receipt = git_repository.carry_out(args, None if args.into else store, [operation], int(time.time()))
    removed = changes[0].facts["removed"]
    assert isinstance(removed, list)  # noqa: S101 - what Tidy says
    text = f"{len(removed)} versions removed" + (f": {', '.join(removed[:6])}" if removed else "")
    git_repository.print_changes(args, changes, receipt, text, branch=git_repository.branch_of(args, settings))
    return 0
