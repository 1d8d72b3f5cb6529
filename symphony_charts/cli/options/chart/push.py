"""The options of `symph push`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, registry

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph push`."""
    parser.add_argument(
        "charts", metavar="CHART", nargs="+", help="a chart's archive or folder; `symph package` makes both"
    )
    parser.add_argument(
        "target", metavar="TARGET", help="oci://HOST/PATH, or a folder that holds (or gets) an index.yaml"
    )
    parser.add_argument(
        "--url", default="", help="where the folder is served (default: addresses relative to the index)"
    )
    parser.add_argument(
        "--sign", metavar="KEY", default=None, help="make a .prov with this key of gpg; helm verifies it"
    )
    registry.add_registry(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph push dist/rl-0.2.0.tgz oci://registry.example.org/charts",
        "symph push dist/rl-0.2.0.tgz oci://registry.lab:5000/charts --plain-http",
        "symph push dist/rl-0.2.0.tgz oci://registry.lab/charts --ca-file lab.pem --username ci --password-stdin <key",
        "symph push dist/*.tgz ./site --url https://charts.example.org",
        "symph push dist/rl-0.2.0.tgz oci://localhost:5000/charts --sign ann@example.org",
    )
