"""The options of `symph cp`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph cp`."""
    parser.add_argument("src_file", metavar="SOURCE", help="a path, or PROCESS:PATH")
    parser.add_argument("dest_file", metavar="DEST", help="a path, or PROCESS:PATH")
    common.add_experiment(parser)
    common.add_dry_run_like_symphony(parser)
    common.add_backend(parser)
    common.add_examples(
        parser, "symph cp learner:/results ./results", "symph cp config.yaml agent/0:/tmp/ rl --on kube"
    )
