"""A Procfile, as foreman and honcho read it: a line of shell for each process."""

from __future__ import annotations

import argparse

from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build


def configure(parser: argparse.ArgumentParser) -> None:
    """Add options of this format alone."""
    parser.add_argument("--name", default="procfile", help="the experiment's name")


def run(source: Source, args: argparse.Namespace) -> Imported:
    """Make the experiment, and note in the log what does not come over."""
    log = Log()
    processes = {}
    for line in source.text.splitlines():
        name, colon, command = line.partition(":")
        if colon:
            processes[name.strip()] = {"cmds": [command.strip()]}
        elif line.strip():
            log.lost(line, "no name stands before a colon", "write `name: command`")
    return build({"name": args.name, "processes": processes}, log, {})
