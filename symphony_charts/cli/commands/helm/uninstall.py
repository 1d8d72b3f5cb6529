"""`symph uninstall`: remove a Helm release and whatever failed upgrades of it left behind."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.helm.release import open_releases

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Ask, uninstall, sweep."""
    with open_releases(args) as releases:
        namespace = args.namespace or releases.namespace
        removal = releases.uninstall(args.release, namespace, dry_run=True)
        if not args.dry_run:
            count = len(removal.objects) + len(removal.swept)
            output.confirm(args, f"Uninstall {args.release} from {namespace}, {count} objects?")
            wait_s = args.timeout if args.wait else None
            removal = releases.uninstall(args.release, namespace, keep_history=args.keep_history, wait_s=wait_s)
    items = [{"name": title, "why": why} for why, titles in _by_why(removal.objects, removal.swept) for title in titles]
    if args.output == "table":
        for item in items:
            note = "   left by a failed upgrade" if item["why"] == "leftover" else ""
            output.line(f"{'would remove' if args.dry_run else 'removed'} {item['name']}{note}")
    else:
        output.print_items(args, "Removed", items, [output.Column("NAME", "name"), output.Column("WHY", "why")])
    return 0


def _by_why(objects: tuple[str, ...], swept: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [("release", objects), ("leftover", swept)]
