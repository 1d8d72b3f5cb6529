"""The options of `symph secrets`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph secrets`."""
    parser.add_argument(
        "action",
        choices=("push", "seal", "check"),
        help="push: put the files into the cluster's Secret; seal: encrypt them for Git; check: look whether the Secret"
        " is there with all keys",
    )
    common.add_specs(parser, many=False)
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    common.add_cluster(parser, "the namespace (default: the experiment's)")
    parser.add_argument("--name", default=None, help="the Secret's name (default: <release>-secrets)")
    parser.add_argument("--cert", metavar="FILE|URL|cluster", default=None, help="seal: the controller's certificate")
    common.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    parser.add_argument(
        "--hide-values", action="store_true", help="with --dry-run: print sizes instead of the contents"
    )
    common.add_dry_run(parser, "print the Secret and push nothing")
    common.add_examples(
        parser,
        "symph secrets push experiment.yaml --dry-run --hide-values",
        "symph secrets push experiment.yaml -n rl",
        "symph secrets check experiment.yaml -n rl",
        "symph secrets seal experiment.yaml -n rl --cert cluster > sealed-values.yaml",
    )
