"""The options of `symph import`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]

FORMATS = ("torchx", "dijob", "compose", "symphony")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph import`."""
    parser.add_argument("format", choices=FORMATS, metavar="FORMAT", help=f"what is imported: {', '.join(FORMATS)}")
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the file (- for stdin); for torchx also module:component or a component's name",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="",
        help="write the experiment to FILE (.yaml, .json) instead of stdout; json or yaml: print it with the report",
    )
    parser.add_argument("--strict", action="store_true", help="fail (1) and write nothing if anything is lost")
    common.add_dry_run(parser, "report what would be written and write nothing")
    group = parser.add_argument_group("options of single formats")
    group.add_argument("--cfg", default="", metavar="K=V,...", help="torchx: run options, as `torchx run -cfg`")
    group.add_argument(
        "--as",
        dest="scheduler",
        choices=("kubernetes_mcad", "kubernetes"),
        help="torchx: print its own objects",
    )
    group.add_argument(
        "--compat", choices=("torchx",), help="torchx: the same, an AppWrapper or with --kind a Volcano Job"
    )
    group.add_argument("--app-id", default="", metavar="ID", help="torchx: the app id of those objects")
    group.add_argument("--job", default="", metavar="NAME", help="dijob: the one to import out of several")
    group.add_argument("--kind", default="", metavar="KIND", help="torchx, dijob: workload kind of the result")
    group.add_argument("--profile", action="append", default=[], metavar="NAME", help="compose: profile to include")
    group.add_argument("--env-file", action="append", default=[], metavar="FILE", help="compose: variables (.env)")
    group.add_argument(
        "--name", default="", help="compose: name of the experiment (default: the file's, or its folder)"
    )
    common.add_examples(
        parser,
        "symph import torchx app.json -o experiment.yaml --cfg namespace=ml,queue=batch",
        "symph import torchx my.components:trainer -- --nodes 4",
        "symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",
        "symph import compose compose.yaml --profile train",
    )
