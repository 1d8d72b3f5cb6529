"""`symph init`: a new experiment to begin with."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

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
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="an answer for your own template; may repeat"
    )
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser)
    common.add_examples(
        parser, "symph init rl", "symph init rl --template python", "symph init rl --template ~/templates/ours"
    )


def run(args: argparse.Namespace) -> int:
    """Make the folder, whole or not at all; one that is there is never touched."""
    from pathlib import Path

    from symphony_charts.formats.names import sanitize
    from symphony_charts.system.scaffold import scaffold

    name = sanitize(args.name)
    answers = common.parse_assignments(args.set)
    made = scaffold(name, args.template, Path(args.dest), answers, dry_run=args.dry_run)
    record = {"name": name, "folder": str(made.folder), "files": list(made.files)}
    verb = "would make" if args.dry_run else "made"
    lines = [f"{verb} {made.folder}", *(f"  {file}" for file in made.files)]
    output.print_record(args, "Scaffold", record, "\n".join(lines))
    spec = next((file for file in made.files if file.startswith("experiment.")), "")
    if spec and not args.dry_run:
        output.next_step(f"symph up {made.folder / spec}", f"symph package {made.folder / spec}")
    return 0
