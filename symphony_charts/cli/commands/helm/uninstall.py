"""`symph uninstall`: remove a Helm release and whatever failed upgrades of it left behind."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options import release as shared

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph uninstall`."""
    parser.add_argument("release", metavar="RELEASE", help="its name")
    shared.add_target(parser)
    parser.add_argument("--keep-history", action="store_true", help="let helm remember the release")
    parser.add_argument("--wait", action="store_true", help="return when its pods are gone")
    parser.add_argument(
        "--timeout", type=shared.seconds, default=300.0, metavar="TIME", help="for helm and for waiting (default: 5m)"
    )
    common.add_yes(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_dry_run(parser, "list what would be removed")
    common.add_examples(parser, "symph uninstall rl", "symph uninstall rl -n ml --yes --wait", "symph uninstall rl -dr")


def run(args: argparse.Namespace) -> int:
    """Ask, uninstall, sweep."""
    with shared.open_releases(args) as releases:
        namespace = args.namespace or releases.namespace
        found = releases.uninstall(args.release, namespace, dry_run=True)
        if not args.dry_run:
            count = len(found.objects) + len(found.swept)
            output.confirm(args, f"Uninstall {args.release} from {namespace}, {count} objects?")
            wait_s = args.timeout if args.wait else None
            found = releases.uninstall(args.release, namespace, keep_history=args.keep_history, wait_s=wait_s)
    items = [{"name": title, "why": why} for why, titles in _by_why(found.objects, found.swept) for title in titles]
    if args.output == "table":
        for item in items:
            note = "   left by a failed upgrade" if item["why"] == "leftover" else ""
            output.line(f"{'would remove' if args.dry_run else 'removed'} {item['name']}{note}")
    else:
        output.print_items(args, "Removed", items, [output.Column("NAME", "name"), output.Column("WHY", "why")])
    return 0


def _by_why(objects: tuple[str, ...], swept: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [("release", objects), ("leftover", swept)]
