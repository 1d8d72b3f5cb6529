"""`symph upgrade`: let an installed release run another chart, or other values."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options import release as shared

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph upgrade`."""
    shared.add_source(parser)
    shared.add_target(parser)
    parser.add_argument("-i", "--install", action="store_true", help="install it where it is not there")
    parser.add_argument(
        "--create-namespace", action="store_true", help="with --install: make the namespace where it is missing"
    )
    shared.add_waiting(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_dry_run(parser, "let the cluster judge every object and change nothing")
    common.add_examples(
        parser,
        "symph upgrade experiment.yaml",
        "symph upgrade dist/rl-0.3.0.tgz --set runKey=2 --wait",
        "symph upgrade experiment.yaml --install --dry-run",
    )


def run(args: argparse.Namespace) -> int:
    """The same steps as `symph install`; values of earlier revisions do not count."""
    from symphony_charts.cli.commands.helm.helm_release import send

    return send(args, is_upgrade=True)
