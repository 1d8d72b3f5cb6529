"""The options of `symph catalog`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph catalog`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    import_ = actions.add_parser("import", help="print the node pools of a cluster file")
    import_.add_argument("files", metavar="FILE", nargs="+", help="cluster file; several are taken as one cluster")
    import_.add_argument("--var", metavar="KEY=VALUE", action="append", default=[], help="a Terraform variable")
    common.add_system(import_)
    common.add_output(import_)
    show = actions.add_parser("show", help="print machine types by name, custom ones too")
    show.add_argument("names", metavar="MACHINE", nargs="+")
    common.add_output(show)
    search = actions.add_parser("search", help="find machine types by a part of name, family or accelerator")
    search.add_argument("text", metavar="TEXT")
    common.add_output(search)
    refresh = actions.add_parser("refresh", help="keep the machine types that your own gcloud or cluster lists")
    refresh.add_argument(
        "file", metavar="FILE", help="gcloud compute machine-types list --format=json, or MachineConfigs"
    )
    common.add_dry_run(refresh)
    common.add_output(refresh)
    common.add_examples(
        parser,
        "symph catalog import cluster.tf.json",
        "symph catalog show n1-standard-8 n2-custom-6-20480",
        "symph catalog search a100",
        "gcloud compute machine-types list --format=json > types.json; symph catalog refresh types.json",
    )
