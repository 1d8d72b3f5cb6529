"""`symph import runopts`: TorchX's run options, with types, defaults, and the field that each one sets."""

from __future__ import annotations

import argparse

from symphony_charts.cli import options, output
from symphony_charts.integrations.torchx import options as torchx_options

SUMMARY = "list TorchX's run options and what they become; import nothing"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scheduler",
        nargs="?",
        metavar="SCHEDULER",
        choices=("kubernetes_mcad", "kubernetes", "symph"),
        help="only the options of this one (kubernetes_mcad, kubernetes, symph)",
    )
    options.add_output(parser)
    options.add_examples(
        parser,
        "symph import runopts",
        "symph import runopts kubernetes_mcad -o wide",
        "symph import torchx app.json --cfg namespace=ml,coscheduler_name=gang,priority=5",
    )


def main(args: argparse.Namespace) -> int:
    every = (*torchx_options.SCHEDULER_OPTIONS, *torchx_options.OPTIONS)
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
