"""`symph import runopts`: TorchX's run options, with types, defaults, and the field that each one sets."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.importers.torchx.option_table import OPTIONS, SCHEDULER_OPTIONS

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the options as a table."""
    every = (*SCHEDULER_OPTIONS, *OPTIONS)
    chosen = [option for option in every if args.scheduler in (None, "symph", *option.schedulers)]
    items = [
        {
            "name": option.name,
            "type": option.type,
            "default": option.default,
            "becomes": option.becomes,
            "schedulers": list(option.schedulers),
            "help": option.help,
        }
        for option in chosen
    ]
    columns = (
        output.Column("OPTION", "name"),
        output.Column("TYPE", "type"),
        output.Column("DEFAULT", "default"),
        output.Column("BECOMES", "becomes"),
        output.Column("TORCHX SCHEDULERS", lambda item: ", ".join(output.texts(item["schedulers"])), is_wide=True),
        output.Column("MEANING", "help"),
    )
    output.print_items(args, "RunOption", items, columns)
    return 0
