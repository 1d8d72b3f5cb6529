"""`symph gitops`: begin a repository of charts, check it, print its manifests, tidy it; review a change."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from symphony_charts.cli import git_repository, gitops_init, gitops_review, options, output, reports, validate
from symphony_charts.errors import CheckFailed
from symphony_charts.gitops import lint, promote_rollback_retire
from symphony_charts.gitops.store import environments
from symphony_charts.system.git import program


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_init(actions.add_parser("init", help="lay project, ApplicationSet, health checks and README into it"))
    for name, text in (
        ("lint", "check a checkout of the repository for what re-runs, loses or blocks work"),
        ("doctor", "lint it, and say how large it is and what slows Argo CD down"),
    ):
        check = actions.add_parser(name, help=text)
        check.add_argument("folder", metavar="CHECKOUT", nargs="?", default=".", help="default: the current folder")
        check.add_argument("--base", metavar="COMMIT", help="refuse edits of published charts since then")
        check.add_argument("--strict", action="store_true", help="exit with 1 for warnings, too")
        options.add_output(check, options.FINDING_FORMATS, headers=False)
    review = actions.add_parser("review", help="what a change of experiments means, as a comment of its pull request")
    options.add_specs(review)
    options.add_list(
        review,
        "--env",
        metavar="NAME",
        help="compare with what runs in this environment; may be repeated (default: each of .symph.yaml)",
    )
    options.add_list(review, "--pools", metavar="FILE", help="node pools to plan on")
    review.add_argument("--strict", action="store_true", help="let warnings of `symph validate` say no, too")
    review.add_argument(
        "--post",
        action="store_true",
        help="leave it at the pull request that GitHub Actions or GitLab CI runs this for, with $GITHUB_TOKEN or "
        "$GITLAB_TOKEN, in place of an earlier one",
    )
    options.add_output(review, ("markdown", "json"), default="markdown")
    options.add_dry_run(review, "with --post: say what would be done and leave nothing")
    render = actions.add_parser("render", help="print the manifests of what an environment runs")
    options.add_env(render)
    options.add_place(render)
    options.add_output(render, ("yaml", "json", "name"), default="yaml", headers=False)
    tidy = actions.add_parser("gc", help="remove chart versions that no environment runs or can roll back to")
    tidy.add_argument("--keep", metavar="N", type=options.count, default=5, help="newest versions to keep (default: 5)")
    options.add_repository(tidy)
    options.add_change_options(tidy)
    options.add_yes(tidy)
    options.add_examples(
        parser,
        "symph gitops init --repo git@example.org:team/charts.git --destination dev=rl-dev --destination prod=big/rl",
        "symph gitops init --flux --into ~/charts --destination dev=rl-dev --dry-run",
        "symph gitops lint ~/charts --base origin/main -o sarif",
        "symph gitops review rl.yaml --env dev --post",
        "symph gitops render --env prod",
        "symph gitops gc --keep 5 --dry-run",
    )


def _configure_init(parser: argparse.ArgumentParser) -> None:
    options.add_repository(parser)
    parser.add_argument(
        "--destination",
        metavar="ENV=[CLUSTER/]NAMESPACE",
        action="append",
        default=[],
        help="an environment and where it runs, the first to the last; written to a new .symph.yaml",
    )
    parser.add_argument(
        "--cluster-url", metavar="URL", help="by which address the cluster reads it (default: --repo's)"
    )
    parser.add_argument(
        "--ci", choices=("all", "github", "gitlab", "none"), help="whose CI runs the check (default: by host)"
    )
    parser.add_argument("--argocd-version", metavar="V", help="which Argo CD reads it (default: 3.4)")
    parser.add_argument("--flux", action="store_true", help="for Flux instead of Argo CD")
    parser.add_argument(
        "--sops-secret", metavar="NAME", default="", help="with --flux: the Secret with the keys that open SOPS files"
    )
    parser.add_argument(
        "--git-secret",
        metavar="NAME",
        default="",
        help="with --flux: the Secret by which it reads the repository (default: symph for ssh, none for https)",
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
        help="what the repository's check installs symph from: git+https://HOST/REPOSITORY@COMMIT, git+ssh://..., or "
        "https://HOST/FILE.whl#sha256=HASH (default: where this symph came from)",
    )
    parser.add_argument(
        "--protect", action="store_true", help="keep what runs when a pointer vanishes (retire then needs a hand)"
    )
    options.add_list(parser, "--gpg-key", metavar="ID", help="sync only commits signed by this key")
    parser.add_argument("--force", action="store_true", help="replace the files in bootstrap/")
    options.add_change_options(parser)


def _owners(text: str) -> str:
    """Parse names as in a CODEOWNERS file: accounts, teams and email addresses, separated by blanks."""
    if not re.fullmatch(r"[\w.+-]*@[\w./-]+( [\w.+-]*@[\w./-]+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no owner: write @user, @org/team or a mail address")
    return text


def run(args: argparse.Namespace) -> int:
    verbs = {
        "init": gitops_init.run,
        "lint": _lint,
        "doctor": _lint,
        "render": _render,
        "gc": _tidy,
        "review": gitops_review.run,
    }
    return verbs[args.action](args)


def _lint(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    files, links = program.read_checkout(folder)
    changed = program.changed_since(folder, args.base) if args.base else ()
    tree = lint.RepositoryFiles(files=files, links=links, changed=changed)
    if not lint.is_repository(tree):
        what = f"{folder} holds no charts, pointers or bootstrap files of symph: there is nothing to check"
        raise CheckFailed(what, "", "give a checkout of the repository, with the branch that the cluster reads")
    problems = lint.check_repository(tree)
    if args.action == "doctor":
        problems += [("", finding) for finding in lint.size_findings(files, program.count_refs(folder))]
    return reports.print_findings(args, problems, str(folder))


def _render(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    env = settings.environment(args.env)
    store = git_repository.open_store(args, settings, reads_only=True)
    objects, notes = environments.objects_of_environment(store.tip(), env)
    for note in notes:
        output.warn(note)
    validate.print_objects(args, objects)
    return 0


def _tidy(args: argparse.Namespace) -> int:
    settings = git_repository.settings_of(args)
    store = git_repository.store_or_none(args, settings)
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, "Remove the chart versions that nothing needs?")
    changes, receipt = git_repository.carry_out(
        args, store, [promote_rollback_retire.Tidy(keep=args.keep)], int(time.time())
    )
    removed = changes[0].facts["removed"]
    assert isinstance(removed, list)  # noqa: S101 - a fact of Tidy
    text = f"{len(removed)} versions removed" + (f": {', '.join(removed[:6])}" if removed else "")
    git_repository.print_changes(args, settings, changes, receipt, text)
    return 0
