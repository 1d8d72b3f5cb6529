"""The options of `symph upgrade`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph upgrade`."""
    release.add_source(parser)
    release.add_target(parser)
    parser.add_argument("-i", "--install", action="store_true", help="install it where it is not there")
    parser.add_argument(
        "--create-namespace", action="store_true", help="with --install: make the namespace where it is missing"
    )
    release.add_waiting(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_dry_run(parser, "let the cluster judge every object and change nothing")
    common.add_examples(
        parser,
        "symph upgrade experiment.yaml",
        "symph upgrade dist/rl-0.3.0.tgz --set runKey=2 --wait",
        "symph upgrade experiment.yaml --install --dry-run",
    )
