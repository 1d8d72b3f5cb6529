"""The options of `symph install`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph install`."""
    release.add_source(parser)
    release.add_target(parser)
    parser.add_argument("--create-namespace", action="store_true", help="make the namespace where it is missing")
    release.add_waiting(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_dry_run(parser, "let the cluster judge every object and install nothing")
    common.add_examples(
        parser,
        "symph install experiment.yaml",
        "symph install dist/rl-0.2.0.tgz -n ml --create-namespace --set groups.agent.replicas=32",
        "symph install experiment.yaml --name rl-b --wait",
        "symph install experiment.yaml --dry-run -o json",
    )
