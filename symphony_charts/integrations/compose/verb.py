"""Options of `symph import compose`."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.integrations.compose import importer

SUMMARY = "a docker compose file"
EXAMPLES = (
    "symph import compose compose.yaml --profile train",
    "symph import compose compose.yaml --image web=registry.example.org/web:1 --to experiment.yaml",
)

IS_COMPOSE = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", action="append", default=[], metavar="NAME", help="include this profile")
    parser.add_argument("--env-file", action="append", default=[], metavar="FILE", help="variables (default: .env)")
    parser.add_argument("--name", default="", help="name of the experiment (default: the file's, or its folder)")
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="SERVICE=IMAGE",
        help="the image of a service, as of one that is built; may be repeated",
    )


def run(source: Any, args: argparse.Namespace) -> Any:
    return importer.read_compose(source, args)
