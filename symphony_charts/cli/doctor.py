"""`symph doctor`: what this machine has and lacks."""

from __future__ import annotations

import argparse

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]

_COLORS = {"ok": "good", "warning": "busy", "missing": "bad"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph doctor`."""
    parser.add_argument(
        "--for",
        dest="needs",
        metavar="USE",
        action="append",
        default=[],
        choices=("tmux", "helm", "git", "kubectl"),
        help="fail unless this can be used: tmux, helm, git or kubectl; may be repeated",
    )
    common.add_output(parser, ("table", "wide", "json", "yaml", "name"))
    common.add_examples(parser, "symph doctor", "symph doctor --for tmux --for helm")


def run(args: argparse.Namespace) -> int:
    """List each thing with its state and, where it is not well, the step to take."""
    from symphony_charts.cluster.health import examine

    items = [
        {"name": found.name, "status": found.status, "detail": found.detail, "next": found.next} for found in examine()
    ]
    columns = [
        output.Column("WHAT", "name"),
        output.Column("STATE", "status", state=lambda item: _COLORS[str(item["status"])]),
        output.Column("DETAIL", "detail"),
        output.Column("NEXT", "next"),
    ]
    output.print_items(args, "Check", items, columns)
    lacking = [item for item in items if item["name"] in args.needs and item["status"] == "missing"]
    return 1 if lacking else 0
