"""The options of `symph uninstall`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph uninstall`."""
    parser.add_argument("release", metavar="RELEASE", help="its name")
    release.add_target(parser)
    parser.add_argument("--keep-history", action="store_true", help="let helm remember the release")
    parser.add_argument("--wait", action="store_true", help="return when its pods are gone")
    parser.add_argument(
        "--timeout", type=release.seconds, default=300.0, metavar="TIME", help="for helm and for waiting (default: 5m)"
    )
    common.add_yes(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_dry_run(parser, "list what would be removed")
    common.add_examples(parser, "symph uninstall rl", "symph uninstall rl -n ml --yes --wait", "symph uninstall rl -dr")
