"""The options of `symph init`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]

_TEMPLATES = ("yaml", "python")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph init`."""
    parser.add_argument("name", metavar="NAME", help="the experiment's name, and that of its new folder")
    parser.add_argument(
        "-t",
        "--template",
        metavar="TEMPLATE",
        default="yaml",
        help=f"{' or '.join(_TEMPLATES)}, or the folder of a cookiecutter template of your own (default: yaml)",
    )
    parser.add_argument("-d", "--dest", metavar="DIR", default=".", help="where to make the folder (default: here)")
    text = "an answer to a question of your own template; may be repeated"
    parser.add_argument("--answer", dest="answers", metavar="KEY=VALUE", action="append", default=[], help=text)
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser)
    common.add_examples(
        parser, "symph init rl", "symph init rl --template python", "symph init rl --template ~/templates/ours"
    )
