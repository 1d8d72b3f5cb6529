"""Find the repository, settings and team of the Git verbs; apply and print changes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.backend.status import time_text
from symphony_charts.cli import output
from symphony_charts.cli.differences import Comparison
from symphony_charts.errors import NotFound, SpecError, SymphError, UsageError
from symphony_charts.formats.names import nearest
from symphony_charts.formats.printable import printable_line
from symphony_charts.gitops.base import REASON, Change, Operation
from symphony_charts.gitops.diff import compare_sides, side_of
from symphony_charts.gitops.pointer import Move
from symphony_charts.gitops.snapshot import POINTER_SUFFIX, Snapshot, check_folder, check_names, pointer_folder
from symphony_charts.gitops.store.checkout import apply_to_checkout, preview_in_checkout
from symphony_charts.gitops.store.review import review_link
from symphony_charts.gitops.store.store import PushResult, Store, all_edits
from symphony_charts.secrets.leaks import Guard
from symphony_charts.settings.project import Repository, Settings, find_settings
from symphony_charts.system.git.program import Author, author_of_commits
from symphony_charts.system.user_folders import state_dir


def settings_of(args: argparse.Namespace, folder: Path | None = None) -> Settings:
    """Return the settings above `folder` (default: the current one), overridden by the flags."""
    settings = find_settings(folder or Path.cwd())
    repository = settings.repository
    if given := getattr(args, "repo", None):
        url, _, branch = given.partition("#")
        repository = msgspec.structs.replace(repository or Repository(url=url), url=url, branch=branch or "main")
    if repository:
        args.repo_path = check_folder(getattr(args, "repo_path", None) or repository.path)
        repository = msgspec.structs.replace(repository, path=args.repo_path)
    elif getattr(args, "into", None) is None:
        raise UsageError(
            "which repository holds the charts?", next="--repo URL, or `repository:` in .symph.yaml (symph gitops init)"
        )
    return msgspec.structs.replace(settings, repository=repository)


def open_store(
    args: argparse.Namespace,
    settings: Settings,
    guard: Guard | None = None,
    *,
    author: Author | None = None,
    reads_only: bool = False,
) -> Store:
    """Return the store of the repository, to which `author` commits (default: `author_of_change`).

    With `--branch` a change goes to that branch; a new branch starts at the usual one. `guard` checks outgoing content;
    without one, the store searches for private keys and tokens. If `reads_only`, no author is needed.
    """
    repository = settings.repository
    assert repository is not None  # noqa: S101 - settings_of has checked it
    review = getattr(args, "branch", None)
    guard = guard or Guard({}, allowed=settings.allow_leaks)
    if review and not reads_only:
        guard.refuse_names([review])
    reason = " ".join(printable_line(getattr(args, "message", None) or "").split())
    guard.refuse({"the message (-m)": reason.encode()})
    return Store(
        repository.url,
        review or repository.branch,
        base=repository.branch if review else "",
        root=state_dir() / "git",
        author=author or (Author(name="") if reads_only else author_of_change(settings)),
        guard=guard.refuse,
        trailers=[(REASON, reason)] if reason else (),
        notice=output.note,
        folder=repository.path,
    )


def author_of_change(settings: Settings) -> Author:
    """Return the author of the change: git's, overridden by that of the settings. Raises SpecError."""
    return author_of_commits(settings.repository.author if settings.repository else "")


def author_name(settings: Settings, author: Author | None) -> str:
    """Return the author's name for pointers: that of the commit's `author`, or of the configured identity without one.

    Empty if unknown; a commit by hand will name its author.
    """
    if author is not None:
        return author.name
    try:
        return author_of_change(settings).name
    except SpecError:
        return ""


def move_text(facts: Mapping[str, object]) -> str:
    """Describe a change of destination, to be appended to the line of a change; empty if there is none."""
    moves = facts.get("moves")
    return f"   {Move(*moves.values()).text()}" if isinstance(moves, Mapping) else ""


def store_or_none(args: argparse.Namespace, settings: Settings) -> Store | None:
    """Return the store, or None with `--into`, which needs only the checkout."""
    return None if args.into is not None else open_store(args, settings)


def find_team(args: argparse.Namespace, settings: Settings, store: Store | None, env: str) -> str:
    """Return the team of `args.experiment_name`; strip a leading ``team/`` from the name.

    Raises NotFound or UsageError if the name fits no team, or several.
    """
    team, _, name = args.experiment_name.rpartition("/")
    args.experiment_name = name
    check_names(experiment=name)
    chosen: str = team or args.team or settings.team
    if chosen:
        check_names(team=chosen)
        return chosen
    teams = [
        team
        for team in _names(args, store, f"envs/{env}")
        if f"{name}{POINTER_SUFFIX}" in _names(args, store, pointer_folder(env, team))
    ]
    if len(teams) == 1:
        return teams[0]
    if not teams:
        raise NotFound(f"{env} runs no {name}", next=f"symph status --env {env} lists what it runs")
    raise UsageError(f"{name} is an experiment of {', '.join(teams)}", next=f"name the team: {teams[0]}/{name}")


def _names(args: argparse.Namespace, store: Store | None, folder: str) -> list[str]:
    if store is not None:
        return sorted(store.tip().folder(folder))
    place = Path(args.into).expanduser() / (args.repo_path or "") / folder
    return sorted(item.name for item in place.iterdir()) if place.is_dir() else []


def pointer_fields(
    args: argparse.Namespace, settings: Settings, store: Store | None, env: str, now: int
) -> dict[str, Any]:
    """Return the fields of an operation on the pointer of `args.experiment_name` in `env`, without its team."""
    place = settings.environments.get(env)
    return {
        "name": args.experiment_name,
        "env": env,
        "settings": place.values if place else None,
        "destination": place.destination if place else None,
        "expect": args.expect,
        "at": time_text(now),
        "by": author_name(settings, store.author if store else None),
    }


def confirm_push(args: argparse.Namespace, question: str) -> None:
    """Ask before a change that takes effect at once: not a preview, a change for a review or one in a checkout."""
    if not args.dry_run and args.into is None and args.branch is None:
        output.confirm(args, question)


def carry_out(
    args: argparse.Namespace,
    store: Store | None,
    operations: Sequence[Operation],
    now: int | None = None,
    guard: Guard | None = None,
) -> tuple[tuple[Change, ...], PushResult | Snapshot | None]:
    """Push the operations' changes, or write them into `--into`, or with `--dry-run` only preview them.

    Returns the changes, and the result of a push, or for a preview the tip that would change. `guard` checks content
    for a checkout and previews; the store checks pushed content with its own guard.
    """
    guard = guard or Guard({}, allowed=find_settings(Path.cwd()).allow_leaks)
    if args.into is not None:
        if args.message:
            raise UsageError("with --into the commit is yours, and so is its message", next="git commit -m WHY")
        checkout, folder = Path(args.into).expanduser(), check_folder(getattr(args, "repo_path", None) or "")
        tip, changes = preview_in_checkout(checkout, operations, folder)
        for change in changes:
            guard.refuse({path: content for path, content in change.edits.items() if content is not None})
            if not args.dry_run:
                apply_to_checkout(checkout / folder, change.edits)
        return changes, tip if args.dry_run else None
    assert store is not None  # noqa: S101 - only --into has no store
    if args.dry_run:
        tip, changes = store.preview(operations)
        edits = [(path, content) for change in changes for path, content in change.edits.items()]
        guard.refuse({path: content for path, content in edits if content is not None})
        return changes, tip
    receipt = store.apply(operations, now=int(time.time()) if now is None else now)
    return receipt.changes, receipt


def print_changes(
    args: argparse.Namespace,
    settings: Settings,
    changes: Sequence[Change],
    result: PushResult | Snapshot | None,
    *texts: str,
) -> None:
    """Print a line of `texts` per change, then the commit and the link to the review; for a preview, the effects."""
    repository, branch = settings.repository, branch_of(args, settings)
    receipt = result if isinstance(result, PushResult) else None
    is_review = bool(repository and receipt and receipt.commit and branch != repository.branch)
    link = review_link(receipt.heard) if receipt and is_review else ""
    _note_new_environment(settings, changes[0].facts)
    compared: list[Comparison] = []
    if isinstance(result, Snapshot):
        compared = _effects(result, result.edited(all_edits(changes)), changes)
    elif is_review and args.output == "markdown":
        before = open_store(argparse.Namespace(), settings, reads_only=True)
        after = open_store(argparse.Namespace(branch=branch), settings, reads_only=True)
        compared = _effects(before.tip(), after.tip(), changes)
    paths = sum(len(change.edits) for change in changes)
    if args.output == "markdown":
        _print_markdown(changes, receipt, texts, compared)
    else:
        record: dict[str, object] = {
            "changes": [
                {
                    "subject": change.subject,
                    **change.facts,
                    "paths": {path: "remove" if new is None else "write" for path, new in change.edits.items()},
                }
                for change in changes
            ],
            "commit": receipt.commit if receipt else None,
            "branch": branch,
            "paths": paths,
            "dryRun": args.dry_run,
        }
        if args.dry_run:
            record["effects"] = [comparison.record for comparison in compared]
        if receipt:
            record |= {"seconds": round(receipt.seconds, 3), "moved": receipt.moved, "wasLost": receipt.was_lost}
        output.print_record(args, "Change", record | ({"review": link} if link else {}), "\n".join(texts))
        listed = [change.facts.get("warnings") for change in changes]
        for warning in dict.fromkeys(text for each in listed if isinstance(each, list) for text in each):
            output.warn(warning)
    if args.output == "table" and args.dry_run:
        for path, content in (item for change in changes for item in _summed(change.edits)):
            output.line(f"  {'-' if content is None else '+'} {path}")
        if not paths:
            output.note("nothing would change")
        for comparison in compared:
            output.line(f"\n{comparison.text()}")
    elif args.output == "table":
        output.note(_ending(args, receipt, paths, branch))
    if link and args.output in ("table", "markdown"):
        output.note(f"review: {link}")


def _effects(before: Snapshot, after: Snapshot, changes: Sequence[Change]) -> list[Comparison]:
    """Return what happens to each changed experiment of an environment between two states of the repository."""
    compared = []
    for change in changes:
        env, team, name = (str(change.facts.get(key) or "") for key in ("env", "team", "name"))
        if env and team and name and change.edits:
            try:
                sides = (side_of(tip, env, team, name) for tip in (before, after))
                compared.append(Comparison(compare_sides(*sides)))
            except SymphError as error:
                output.warn(f"what happens to {name} in {env} is not known: {error.what}")
    return compared


def branch_of(args: argparse.Namespace, settings: Settings) -> str:
    """Return the branch that a change goes to: that of `--branch`, or without it or with `--into` the usual one."""
    usual = settings.repository.branch if settings.repository else ""
    return str(args.branch or usual) if args.into is None else usual


def _note_new_environment(settings: Settings, facts: Mapping[str, object]) -> None:
    """Note that a change creates a new environment: without a list in the settings it may be a typo."""
    env, others = str(facts.get("env")), facts.get("newBeside")
    if not isinstance(others, list) or env in settings.environments:
        return
    near = nearest(env, others)
    meant = f" (did you mean {near}?)" if near else ""
    beside = f"a new one beside {', '.join(others)}{meant}" if others else "the first one"
    output.note(f"environment {env} of the repository is {beside}; .symph.yaml lists none")


def _ending(args: argparse.Namespace, receipt: PushResult | None, paths: int, branch: str) -> str:
    if receipt is None:
        return f"{paths} paths written to {args.into}; commit and push them" if paths else "nothing to change"
    if receipt.commit is None:
        return "nothing to change: the repository is up to date"
    moved = {0: "", 1: "   (tip moved once, recomputed)"}.get(receipt.moved, f"   (tip moved {receipt.moved} times)")
    lost = "   (the server's answer was lost; the commit is there)" if receipt.was_lost else ""
    counted = "1 path" if paths == 1 else f"{paths} paths"
    return f"commit {receipt.commit[:7]} on {branch}, {counted}, {receipt.seconds:.2f} s{moved}{lost}"


def _summed(edits: Mapping[str, bytes | None]) -> list[tuple[str, bytes | None]]:
    """Return the paths, with all files of a new chart as one line."""
    shown: dict[str, bytes | None] = {}
    for path, content in edits.items():
        parts = path.split("/")
        is_chart = content is not None and parts[0] == "charts" and len(parts) > 4
        shown["/".join(parts[:4]) + "/" if is_chart else path] = content
    return sorted(shown.items())


def _print_markdown(
    changes: Sequence[Change], receipt: PushResult | None, texts: Sequence[str], compared: Sequence[Comparison]
) -> None:
    title = changes[0].subject if len(changes) == 1 else f"{len(changes)} changes"
    output.line(f"# {title}\n\n| change | paths |\n| --- | --- |")
    for change, text in zip(changes, texts, strict=True):
        safe = text.replace("|", "\\|")
        output.line(f"| {safe} | {len(change.edits)} |")
    for comparison in compared:
        output.line(f"\n{comparison.markdown()}")
    if receipt and receipt.commit:
        output.line(f"\ncommit `{receipt.commit}`")
