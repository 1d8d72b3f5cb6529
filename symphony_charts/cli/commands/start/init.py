"""`symph init`: a new experiment to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.formats.names import sanitize
from symphony_charts.system.scaffold import scaffold

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Make the folder, whole or not at all; one that is there is never touched."""
    name = sanitize(args.name)
    answers = common.parse_assignments(args.answers)
    made = scaffold(name, args.template, Path(args.dest), answers, dry_run=args.dry_run)
    record = {"name": name, "folder": str(made.folder), "files": list(made.files)}
    verb = "would make" if args.dry_run else "made"
    lines = [f"{verb} {made.folder}", *(f"  {file}" for file in made.files)]
    output.print_record(args, "Scaffold", record, "\n".join(lines))
    spec = next((file for file in made.files if file.startswith("experiment.")), "")
    if spec and not args.dry_run:
        output.next_step(f"symph up {made.folder / spec}", f"symph package {made.folder / spec}")
    return 0
