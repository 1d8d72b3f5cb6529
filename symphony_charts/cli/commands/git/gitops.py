"""`symph gitops`: begin a repository of charts, check it, render what it says, tidy it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from symphony_charts.cli import findings, output
from symphony_charts.cli.options import common
from symphony_charts.cli.options import gitops as shared

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.settings.project import Destination, Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph gitops`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_init(actions.add_parser("init", help="lay project, ApplicationSet, health checks and README into it"))
    for name, text in (
        ("lint", "check a checkout, ours or anybody's, for what re-runs, loses or blocks work"),
        ("doctor", "lint it, and say how large it is and what slows Argo CD down"),
    ):
        check = actions.add_parser(name, help=text)
        check.add_argument("folder", metavar="CHECKOUT", nargs="?", default=".", help="default: the current folder")
        check.add_argument("--base", metavar="COMMIT", default=None, help="refuse edits of published charts since then")
        check.add_argument("--strict", action="store_true", help="exit with 1 for warnings, too")
        common.add_output(check, findings.FORMATS, headers=False)
    render = actions.add_parser("render", help="write the manifests of what an environment runs, for reviews")
    shared.add_env(render)
    shared.add_repository(render)
    shared.add_change_options(render)
    tidy = actions.add_parser("gc", help="remove chart versions that no environment runs or can roll back to")
    tidy.add_argument("--keep", metavar="N", type=int, default=5, help="newest versions to keep (default: 5)")
    shared.add_repository(tidy)
    shared.add_change_options(tidy)
    common.add_yes(tidy)
    common.add_examples(
        parser,
        "symph gitops init --repo git@example.org:team/charts.git --environments dev,prod --argocd-version 3.5",
        "symph gitops init --flux --into ~/charts --dry-run",
        "symph gitops lint ~/charts --base origin/main -o sarif",
        "symph gitops render --env prod --branch env/prod-next",
        "symph gitops gc --keep 5 --dry-run",
    )


def _configure_init(parser: argparse.ArgumentParser) -> None:
    shared.add_repository(parser)
    parser.add_argument(
        "--environments",
        metavar="A,B",
        default=None,
        help="environments, the first to the last (default: .symph.yaml's)",
    )
    parser.add_argument("--argocd-version", metavar="V", default=None, help="which Argo CD reads it (default: 3.4)")
    parser.add_argument("--flux", action="store_true", help="for Flux instead of Argo CD")
    parser.add_argument(
        "--sops-secret", metavar="NAME", default="", help="with --flux: the Secret with the keys that open SOPS files"
    )
    parser.add_argument(
        "--owners",
        metavar="@WHO",
        type=_owners,
        default="@platform",
        help="who owns bootstrap/ and the last environment",
    )
    parser.add_argument(
        "--install-from",
        metavar="WHERE",
        default=None,
        help="what the repository's check installs symph from: git+https://HOST/REPOSITORY@COMMIT, git+ssh://..., or "
        "https://HOST/FILE.whl#sha256=HASH (default: where this symph came from)",
    )
    parser.add_argument(
        "--protect", action="store_true", help="keep what runs when a pointer vanishes (retire then needs a hand)"
    )
    parser.add_argument(
        "--gpg-key", metavar="ID", action="append", default=[], help="sync only commits signed by this key"
    )
    parser.add_argument(
        "--suspended-as",
        choices=("Suspended", "Progressing"),
        default="Suspended",
        help="what an application is called while one of its Jobs waits in a queue",
    )
    parser.add_argument("--force", action="store_true", help="replace what stands in bootstrap/")
    shared.add_change_options(parser)


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    verbs = {"init": _init, "lint": _lint, "doctor": _lint, "render": _render, "gc": _tidy}
    return verbs[args.action](args)


def _init(args: argparse.Namespace) -> int:
    import time

    from symphony_charts.gitops.argocd.objects import DEFAULT_VERSION, ArgoSetup, parse_version
    from symphony_charts.gitops.bootstrap import Initialise
    from symphony_charts.gitops.bootstrap_files import setup_files

    settings = shared.settings_of(args)
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
    store = shared.store_or_none(args, settings)
    operation = Initialise(contents=files, replaces=args.force)
    changes, receipt = shared.carry_out(args, store, [operation], int(time.time()))
    written, kept = changes[0].facts["written"], changes[0].facts["kept"]
    assert isinstance(written, list)  # noqa: S101 - what Initialise says
    assert isinstance(kept, list)  # noqa: S101 - likewise
    text = f"{len(written)} files" + (f", {len(kept)} left as they are: {', '.join(kept)}" if kept else "")
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    if args.output == "table" and not args.dry_run:
        output.next_step(
            "apply bootstrap/ to the cluster as its README says", "symph publish SPEC --env " + next(iter(environments))
        )
    return 0


def _owners(text: str) -> str:
    """Names as a CODEOWNERS file has them: accounts, teams and addresses of mail, with blanks between."""
    if not re.fullmatch(r"[\w.+-]*@[\w./-]+( [\w.+-]*@[\w./-]+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no owner: write @user, @org/team or a mail address")
    return text


def _requirement(args: argparse.Namespace) -> str:
    """What the check of the repository installs. Raises UsageError where nobody else could install the same."""
    from symphony_charts.errors import UsageError
    from symphony_charts.system import installation

    if args.install_from is not None:
        return installation.requirement(installation.check_pinned(args.install_from))
    where = installation.pinned_source()
    if where is None:
        what = "what shall the repository's check install? This symph did not come from where others find the same"
        raise UsageError(what, "", f"--install-from WHERE: {installation.FORMS}")
    return installation.requirement(where)


def _environments(args: argparse.Namespace, settings: Settings) -> dict[str, Destination]:
    from symphony_charts.gitops.layout import check_names
    from symphony_charts.settings.project import Environment

    named = [name.strip() for name in (args.environments or "").split(",") if name.strip()]
    names = named or list(settings.environments) or ["dev", "prod"]
    for name in names:
        check_names(environment=name)
    return {name: settings.environments.get(name, Environment()).destination for name in names}


def _lint(args: argparse.Namespace) -> int:
    from symphony_charts.errors import CheckFailed
    from symphony_charts.gitops.lint.repository import RepositoryFiles, check_repository, holds_anything, size_findings
    from symphony_charts.system.git.checkout import changed_since, count_refs, read_checkout

    folder = Path(args.folder)
    files, links = read_checkout(folder)
    changed = changed_since(folder, args.base) if args.base else ()
    tree = RepositoryFiles(files=files, links=links, changed=changed)
    if not holds_anything(tree):
        what = f"{folder} holds no charts, environments, bootstrap or manifests: there is nothing to check"
        raise CheckFailed(what, "", "give a checkout of the repository, with the branch that the cluster reads")
    found = check_repository(tree)
    if args.action == "doctor":
        found += [("", finding) for finding in size_findings(files, count_refs(folder))]
    findings.print_found(args, found, str(folder))
    bad = ("error", "warning") if args.strict else ("error",)
    return int(any(finding.severity in bad for _, finding in found))


def _render(args: argparse.Namespace) -> int:
    import time

    from symphony_charts.gitops.store.hydrate import Render, load_environment, rendered_files

    settings = shared.settings_of(args)
    env = settings.environment(args.env)
    source = shared.open_store(argparse.Namespace(), settings, reads_only=True)
    commit, pointers = load_environment(source.at_tip(), env)
    # On a branch of its own an environment stands at the top, as GitOps Promoter has it.
    root = "" if args.branch else f"rendered/{env}"
    experiments = {
        f"{pointer.team}/{pointer.name}": rendered_files(pointer, values, commit, schema)
        for pointer, values, schema in pointers
    }
    operation = Render(env=env, root=root, dry_sha=commit, experiments=experiments)
    store = None if args.into is not None else shared.open_store(args, settings, begins_empty=True)
    changes, receipt = shared.carry_out(args, store, [operation], int(time.time()))
    text = f"{changes[0].facts['changed']} of {len(experiments)} experiments of {env} rendered"
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    return 0


def _tidy(args: argparse.Namespace) -> int:
    import time

    from symphony_charts.errors import UsageError
    from symphony_charts.gitops.operations.garbage_collect import Tidy

    if args.keep < 1:
        raise UsageError(f"--keep takes a number of at least 1, got {args.keep}")
    settings = shared.settings_of(args)
    store = shared.open_store(args, settings)
    read = store.at_tip()
    top = read(["charts", "envs"], lambda _seen: [])
    teams, envs = sorted(top.folder("charts")), sorted(top.folder("envs"))
    middle = read([*(f"charts/{team}" for team in teams), *(f"envs/{env}" for env in envs)], lambda _seen: [])
    experiments = tuple((team, name) for team in teams for name in sorted(middle.folder(f"charts/{team}")))
    folders = tuple(f"envs/{env}/{team}" for env in envs for team in sorted(middle.folder(f"envs/{env}")))
    operation = Tidy(keep=args.keep, experiments=experiments, pointer_folders=folders)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, "Remove the chart versions that nothing needs?")
    changes, receipt = shared.carry_out(args, None if args.into else store, [operation], int(time.time()))
    removed = changes[0].facts["removed"]
    assert isinstance(removed, list)  # noqa: S101 - what Tidy says
    text = f"{len(removed)} versions removed" + (f": {', '.join(removed[:6])}" if removed else "")
    shared.print_changes(args, changes, receipt, text, branch=shared.branch_of(args, settings))
    return 0
