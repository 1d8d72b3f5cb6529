"""The options that change values, the same for every verb: helm's `-f` and `--set`, with all of its sisters."""

from __future__ import annotations

import argparse

__all__ = ["add_values"]

_FLAGS = (
    ("--set", "KEY=VALUE", "change one value; may be repeated"),
    ("--set-string", "KEY=TEXT", "the same, and the value stays a text"),
    ("--set-json", "KEY=JSON", "the same with a value in JSON, or a whole object"),
    ("--set-file", "KEY=FILE", "the same with the content of a file"),
    ("--set-literal", "KEY=TEXT", "the same with all that follows, commas too"),
)


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add `-f FILE` (args.values) and `--set` with its sisters (args.set, ...)."""
    parser.add_argument(
        "-f",
        "--values",
        dest="values",
        metavar="FILE",
        action="append",
        default=[],
        help="values to put over the experiment's; `-` is stdin",
    )
    for flag, form, text in _FLAGS:
        parser.add_argument(flag, metavar=form, action="append", default=[], help=text)
