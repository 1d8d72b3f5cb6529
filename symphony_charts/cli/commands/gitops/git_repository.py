"""How the verbs of Git find repository, settings and team, carry a change out, and print it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from symphony_charts.cli import output
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.gitops.layout import POINTER_SUFFIX, check_names, pointer_folder
from symphony_charts.gitops.operations.base import Change, Operation
from symphony_charts.gitops.store.author import Author, author_of
from symphony_charts.gitops.store.checkout import apply_to_checkout, preview_in_checkout
from symphony_charts.gitops.store.store import PushResult, Store
from symphony_charts.secrets.leaks import Guard
from symphony_charts.settings.project import Repository, Settings, find_settings
from symphony_charts.system.user_folders import state_dir

__all__ = [
    "branch_of",
    "carry_out",
    "find_team",
    "now_text",
    "open_store",
    "print_changes",
    "settings_of",
    "store_or_none",
]


def settings_of(args: argparse.Namespace, folder: Path | None = None) -> Settings:
    """The settings above `folder` (default: the current one), with what the flags say over them."""
    settings = find_settings(folder or Path.cwd())
    given = getattr(args, "repo", None)
    if given:
        url, _, branch = given.partition("#")
        configured = settings.repository or Repository(url=url)
        repository = msgspec.structs.replace(configured, url=url, branch=branch or "main")
        settings = msgspec.structs.replace(settings, repository=repository)
    if settings.repository is None and getattr(args, "into", None) is None:
        raise UsageError(
            "which repository holds the charts?", next="--repo URL, or `repository:` in .symph.yaml (symph gitops init)"
        )
    return settings


def open_store(
    args: argparse.Namespace,
    settings: Settings,
    guard: Callable[[Mapping[str, bytes]], None] | None = None,
    *,
    reads_only: bool = False,
    begins_empty: bool = False,
) -> Store:
    """The store of the repository; with `--branch` a change goes to that branch.

    What goes out is looked through by `guard`, or at least for private keys and tokens. A branch that is new begins at
    the usual one, or with `begins_empty` holds nothing but the change. One that is only read from needs nobody who
    signs for commits.
    """
    repository = settings.repository
    assert repository is not None  # noqa: S101 - settings_of has seen to it
    review = getattr(args, "branch", None)
    return Store(
        repository.url,
        review or repository.branch,
        base=("-" if begins_empty else repository.branch) if review else "",
        root=state_dir() / "git",
        author=Author(name="") if reads_only else author_of(repository, getattr(args, "sign", None)),
        guard=guard or Guard({}).refuse,
        notice=output.note,
    )


def store_or_none(args: argparse.Namespace, settings: Settings) -> Store | None:
    """The store, or None with `--into`, which needs no repository but the checkout."""
    return None if args.into is not None else open_store(args, settings)


def find_team(args: argparse.Namespace, settings: Settings, store: Store | None, env: str) -> str:
    """The team of `args.experiment_name`; a ``team/`` before the name is taken off it.

    Raises NotFound or UsageError where the name fits no team, or several.
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
    raise UsageError(f"{name} is an experiment of {', '.join(teams)}", next=f"say which: {teams[0]}/{name}")


def _names(args: argparse.Namespace, store: Store | None, folder: str) -> list[str]:
    """What a folder of the repository, or of `--into`, holds."""
    if store is not None:
        return sorted(store.read([folder], lambda _seen: ()).folder(folder))
    place = Path(args.into).expanduser() / folder
    return sorted(item.name for item in place.iterdir()) if place.is_dir() else []


def branch_of(args: argparse.Namespace, settings: Settings) -> str:
    """The branch that a change goes to."""
    return args.branch or (settings.repository.branch if settings.repository else "")


def now_text(now: int) -> str:
    """A time as pointers write it: ISO 8601 in UTC."""
    return datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def carry_out(
    args: argparse.Namespace,
    store: Store | None,
    operations: Sequence[Operation],
    now: int,
    guard: Callable[[Mapping[str, bytes]], None] = lambda _files: None,
) -> tuple[tuple[Change, ...], PushResult | None]:
    """Push the operations' changes, or write them into `--into`, or with `--dry-run` only ask for them.

    `guard` sees what is written into a checkout; what is pushed, the store shows to its own.
    """
    if args.into is not None:
        checkout = Path(args.into).expanduser()
        changes = preview_in_checkout(checkout, operations)
        for change in changes:
            guard({path: content for path, content in change.edits.items() if content is not None})
            if not args.dry_run:
                apply_to_checkout(checkout, change.edits)
        return changes, None
    assert store is not None  # noqa: S101 - only --into goes without
    if args.dry_run:
        return store.preview(operations)[1], None
    receipt = store.apply(operations, now=now)
    return receipt.changes, receipt


def print_changes(
    args: argparse.Namespace, changes: Sequence[Change], receipt: PushResult | None, *texts: str, branch: str
) -> None:
    """Say what became of each change, a line each in `texts`, then which commit holds them."""
    record: dict[str, object] = {
        "changes": [_record(change) for change in changes],
        "commit": receipt.commit if receipt else None,
        "branch": branch,
        "paths": sum(len(change.edits) for change in changes),
        "dryRun": args.dry_run,
    }
    if receipt:
        record |= {"seconds": round(receipt.seconds, 3), "moved": receipt.moved, "wasLost": receipt.was_lost}
    if args.output == "markdown":
        _print_markdown(changes, receipt, texts)
        return
    output.print_record(args, "Change", record, "\n".join(texts))
    if args.output != "table":
        return
    if args.dry_run:
        for change in changes:
            for path, content in _summed(change.edits):
                output.line(f"  {'-' if content is None else '+'} {path}")
    output.note(_ending(args, receipt, sum(len(change.edits) for change in changes), branch))


def _ending(args: argparse.Namespace, receipt: PushResult | None, paths: int, branch: str) -> str:
    if args.dry_run:
        return "nothing was pushed (--dry-run)" if paths else "nothing would change"
    if receipt is None:
        return f"{paths} paths written to {args.into}; commit and push them" if paths else "nothing to change"
    if receipt.commit is None:
        return "nothing to change: the repository says so already"
    moved = {0: "", 1: "   (tip moved once, recomputed)"}.get(receipt.moved, f"   (tip moved {receipt.moved} times)")
    lost = "   (the server's answer was lost; the commit is there)" if receipt.was_lost else ""
    counted = "1 path" if paths == 1 else f"{paths} paths"
    return f"commit {receipt.commit[:7]} on {branch}, {counted}, {receipt.seconds:.2f} s{moved}{lost}"


def _record(change: Change) -> dict[str, object]:
    paths = {path: "remove" if content is None else "write" for path, content in change.edits.items()}
    return {"subject": change.subject, **change.facts, "paths": paths}


def _summed(edits: Mapping[str, bytes | None]) -> list[tuple[str, bytes | None]]:
    """The paths, with all files of one new chart as one line."""
    shown: dict[str, bytes | None] = {}
    for path, content in edits.items():
        parts = path.split("/")
        is_chart = content is not None and parts[0] == "charts" and len(parts) > 4
        shown["/".join(parts[:4]) + "/" if is_chart else path] = content
    return sorted(shown.items())


def _print_markdown(changes: Sequence[Change], receipt: PushResult | None, texts: Sequence[str]) -> None:
    output.line("| change | paths |\n| --- | --- |")
    for change, text in zip(changes, texts, strict=True):
        safe = text.replace("|", "\\|")
        output.line(f"| {safe} | {len(change.edits)} |")
    if receipt and receipt.commit:
        output.line(f"\ncommit `{receipt.commit}`")
