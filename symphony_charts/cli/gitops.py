"""`symph gitops`: begin a repository of charts, check it, print its manifests, tidy it; review a change."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from symphony_charts.cli import git_repository, gitops_init, options, output, specs, validate
from symphony_charts.errors import CheckFailed, Conflict, UsageError
from symphony_charts.formats import yaml_write
from symphony_charts.gitops import lint, operations
from symphony_charts.gitops.store import environments
from symphony_charts.settings import places, project
from symphony_charts.spec import variable_names
from symphony_charts.system import files as system_files
from symphony_charts.system import subprocess_runner
from symphony_charts.system.git import program


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_init(actions.add_parser("init", help="write the AppProject, ApplicationSet, health checks and README"))
    check = actions.add_parser("lint", help="check a checkout of the repository for what re-runs, loses or blocks work")
    check.add_argument("folder", metavar="CHECKOUT", nargs="?", default=".", help="default: the current folder")
    check.add_argument("--base", metavar="COMMIT", help="refuse edits of published charts since then")
    options.add_output(check, options.FINDING_FORMATS, headers=False)
    check.set_defaults(strict=False)
    review = actions.add_parser("review", help="summarise a change of experiments for its pull request")
    options.add_specs(review)
    options.add_list(
        review,
        "--env",
        metavar="NAME",
        help="compare with what runs in this environment; may be repeated (default: each of .symph.yaml)",
    )
    options.add_list(review, "--pools", metavar="FILE", help="node pools to plan on")
    options.add_flag(review, "--strict", help="let warnings of `symph validate` say no, too")
    options.add_output(review, ("markdown", "json"), default="markdown")
    render = actions.add_parser("render", help="print the manifests of what an environment runs")
    options.add_env(render)
    options.add_place(render)
    options.add_output(render, ("yaml", "json", "name"), default="yaml", headers=False)
    tidy = actions.add_parser("gc", help="remove chart versions that no environment runs or can roll back to")
    tidy.add_argument("--keep", metavar="N", type=options.count, default=5, help="newest versions to keep (default: 5)")
    options.add_repository(tidy)
    options.add_change_options(tidy)
    options.add_yes(tidy)
    allow = actions.add_parser("allow", help="record in .symph.yaml that a finding of the leak guard is not a secret")
    allow.add_argument("fingerprints", metavar="FINGERPRINT", nargs="*", help="as the refusal names it")
    allow.add_argument("--rule", metavar="NAME", default="", help="all finds of this rule, with --path or --pattern")
    allow.add_argument("--path", metavar="GLOB", default="", help="only in files whose path is or ends like this")
    allow.add_argument("--pattern", metavar="REGEX", default="", help="only texts that are wholly like this")
    allow.add_argument("--reason", metavar="WHY", required=True, help="reason why it is not a secret")
    options.add_dry_run(allow, "print the entry and write nothing")
    options.add_examples(
        parser,
        "symph gitops init --repo git@example.org:team/charts.git --destination dev=rl-dev --destination prod=big/rl",
        "symph gitops init --flux --into ~/charts --destination dev=rl-dev --dry-run",
        "symph gitops lint ~/charts --base origin/main -o sarif",
        "symph gitops review rl.yaml --env dev",
        "symph gitops render --env prod",
        "symph gitops gc --keep 5 --dry-run",
        "symph gitops allow generic-api-key:5f0d1c9a7be24c31 --reason 'the key of the demo server'",
        "symph gitops allow --rule generic-api-key --path '*.yaml' --reason 'names of runs'",
    )


# Options of `gitops init` with a text, empty by default.
_INIT_TEXTS = (
    ("--cluster-url", "URL", "address that the cluster uses (default: --repo's)"),
    ("--name", "NAME", "prefix of the names of its objects (default: TEAM-REPOSITORY)"),
    ("--project", "NAME", "existing AppProject (default: create one per environment)"),
    ("--sops-secret", "NAME", "with --flux: Secret with the keys of SOPS files"),
    (
        "--git-secret",
        "NAME",
        "with --flux: Secret with the repository's credentials (default: NAME for ssh, none for https)",
    ),
)


def _configure_init(parser: argparse.ArgumentParser) -> None:
    options.add_repository(parser)
    text = "an environment and its place, in order of promotion; may be repeated; written to a new .symph.yaml"
    options.add_list(parser, "--destination", metavar="ENV=[CLUSTER/]NAMESPACE", help=text)
    options.add_flag(parser, "--flux", help="for Flux instead of Argo CD")
    for flag, metavar, text in _INIT_TEXTS:
        parser.add_argument(flag, metavar=metavar, default="", help=text)
    text = "CI system that runs the check (default: by host)"
    parser.add_argument("--ci", choices=("all", "github", "gitlab", "none"), help=text)
    text = "namespace of Argo CD's objects (default: argocd)"
    parser.add_argument("--argocd-namespace", metavar="NAME", default="argocd", help=text)
    text = "source of symph for the repository's check: git+https://HOST/REPOSITORY@COMMIT, git+ssh://..., or "
    text += "https://HOST/FILE.whl#sha256=HASH (default: where this symph came from)"
    parser.add_argument("--install-from", metavar="WHERE", help=text)
    options.add_flag(parser, "--protect", help="keep the run of a deleted pointer (after `retire`, delete it by hand)")
    options.add_flag(parser, "--force", help="replace the files in bootstrap/")
    options.add_change_options(parser)


def run(args: argparse.Namespace) -> int:
    verbs = {
        "init": gitops_init.run,
        "lint": _lint,
        "render": _render,
        "gc": _tidy,
        "review": _review,
        "allow": _allow,
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
    return validate.print_findings(args, problems, str(folder))


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
    git_repository.confirm_push(args, "Remove the chart versions that nothing needs?")
    changes, receipt = git_repository.carry_out(args, store, [operations.Tidy(keep=args.keep)])
    removed = output.texts(changes[0].facts["removed"])
    text = f"{len(removed)} versions removed" + (f": {', '.join(removed[:6])}" if removed else "")
    git_repository.print_changes(args, settings, changes, receipt, text)
    return 0


def _allow(args: argparse.Namespace) -> int:
    entries = [{"fingerprint": text, "reason": args.reason} for text in args.fingerprints]
    if not entries:
        named = {key: getattr(args, key) for key in ("rule", "pattern", "path", "reason")}
        entries = [{key: value for key, value in named.items() if value}]
    elif args.rule or args.pattern or args.path:
        raise UsageError("a fingerprint names one find wherever it is", next="leave --rule, --path and --pattern out")
    file = places.project_file(Path.cwd()) or Path.cwd() / ".symph.yaml"
    before = file.read_text(encoding="utf-8") if file.is_file() else None
    after = _with_items(before or "", yaml_write.dump(entries), file)
    with tempfile.TemporaryDirectory(prefix="symph-allow-") as scratch:
        # Read it before it replaces the user's file.
        trial = Path(scratch) / file.name
        trial.write_text(after, encoding="utf-8")
        project.read_settings(trial)
    if args.dry_run:
        output.line(yaml_write.dump(entries).rstrip())
        return 0
    system_files.write_file(file, after.encode())
    output.line(f"{file.name}: {len(entries)} allowed")
    return 0


def _with_items(text: str, items: str, file: Path) -> str:
    """Return settings with more items of `allow_leaks`, and all else as it is, comments too."""
    match = re.search(r"^allow_leaks:[ \t]*(?:#.*)?\n(?P<indent> *)(?=- )", text, re.MULTILINE)
    if match:
        lines = "".join(f"{match['indent']}{line}\n" for line in items.splitlines())
        begin = match.start("indent")
        return text[:begin] + lines + text[begin:]
    if re.search(r"^allow_leaks:", text, re.MULTILINE):
        step = f"write it as a list of lines, or add to it: {items.splitlines()[0].removeprefix('- ')}, ..."
        raise Conflict("allow_leaks is written in one line there", str(file), step)
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}allow_leaks:\n{items}"


MARK = "<!-- symph review -->"
"""The first line of a review, by which a script finds its own earlier comment."""
# Tokens of forges that CI jobs have, which a Python spec must not see.
_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN")

# The parts are outputs of `validate`, `plan` and `diff`, so that a reader can run the same commands.

_TIMEOUT_S = 300
# Exit statuses that do not reject a change: unknown node pools, and a name that does not run yet.
_HARMLESS = {"plan": (0, 2), "diff": (0, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command (without `symph`), its exit status, and its output."""

    command: tuple[str, ...]
    status: int
    text: str

    @property
    def is_good(self) -> bool:
        """True if the part does not reject the change."""
        return self.status in _HARMLESS.get(self.command[0], (0,))


def _review(args: argparse.Namespace) -> int:
    """Print the review; return 1 if a part fails."""
    parts = [part for spec in specs.specs_of(args.specs) for part in _parts(args, spec)]
    bad = [part for part in parts if not part.is_good]
    text = review_text(parts)
    if args.output == "json":
        output.print_record(args, "Review", {"parts": [asdict(part) for part in parts], "passed": not bad})
    else:
        output.line(text)
    return int(bool(bad))


def review_text(parts: Sequence[Part]) -> str:
    """Return the Markdown of `parts`; it starts with the mark by which a later run finds the comment."""
    words = [f"{'ok' if part.is_good else '**no**'} `{_shown(part)}`" for part in parts]
    return "\n\n".join([MARK, "<br>".join(words), *(_part_text(part) for part in parts)])


def _parts(args: argparse.Namespace, spec: str) -> Iterator[Part]:
    settings = project.find_settings(Path(spec).absolute().parent)
    pools = [word for file in args.pools for word in ("--pools", file)]
    changes = [
        word
        for text in args.spec_set
        for word in ("-E" if isinstance(text, variable_names.Variable) else "--spec-set", text)
    ]
    valid = _run("validate", spec, *(["--strict"] if args.strict else []), *changes)
    yield valid
    if valid.status not in (0, 1):
        return
    plan = _run("plan", spec, *pools, *changes)
    if plan.status != 2:
        yield plan
    for env in args.env or settings.environments:
        yield _run("diff", spec, "--env", env, "-o", "markdown", *pools, *changes)


def _run(*words: str) -> Part:
    # Do not import from the current folder: a file there may have the name of a module.
    begin = "import sys; sys.path = [*filter(None, sys.path)]; from symphony_charts.cli.main import main; "
    env = dict.fromkeys(_TOKENS, None)
    argv = [sys.executable, "-c", f"{begin}sys.exit(main())", *words]
    ended = subprocess_runner.run(argv, timeout_s=_TIMEOUT_S, check=False, env=env)
    return Part(command=words, status=ended.status, text=f"{ended.text}{ended.error_text}".strip())


def _part_text(part: Part) -> str:
    if part.command[0] == "diff" and part.status == 0:
        return f"`{_shown(part)}`\n\n{part.text}"
    is_open = " open" if not part.is_good or part.command[0] == "plan" else ""
    head = f"<details{is_open}><summary><code>{_shown(part)}</code></summary>"
    return f"{head}\n\n{output.fenced(part.text, 'text')}\n</details>"


def _shown(part: Part) -> str:
    """Return the command as a line without Markdown or HTML."""
    words = " ".join(part.command)
    return re.sub(r"[`<>&|\r\n]", "?", f"symph {words}")
