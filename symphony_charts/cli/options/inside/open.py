"""The options of `symph open`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph open`."""
    parser.add_argument("service_name", metavar="SERVICE", nargs="?", help="the service (default: the only one)")
    common.add_experiment(parser)
    parser.add_argument("-u", "--url-only", action="store_true", help="print the URL and open no browser")
    parser.add_argument("--scheme", choices=("http", "https"), default="http", help="what the URL begins with")
    common.add_backend(parser)
    common.add_examples(parser, "symph open tensorboard", "symph open --url-only tensorboard rl --on kube")
