"""The options of `symph export`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values
from symphony_charts.system.entry_points import entry_points

__all__ = ["FORMATS", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph export`."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, (add_options, summary) in sorted((FORMATS | _added()).items()):
        one = formats.add_parser(name, help=summary, description=f"Export {summary}.")
        common.add_specs(one, many=False)
        one.add_argument(
            "--to",
            "--file",
            dest="file",
            metavar="FILE|-",
            default="-",
            help="where it goes; a folder for several files (-: stdout)",
        )
        common.add_output(one, ("yaml", "json"), default="yaml", headers=False)
        one.add_argument("--strict", action="store_true", help="fail (1) and write nothing if anything is lost")
        common.add_dry_run(one, "say what would be written and write nothing")
        add_options(one)
    common.add_examples(
        parser,
        "symph export appwrapper experiment.yaml --to appwrapper.yaml",
        "symph export manifests experiment.yaml -n rl | kubectl apply -f -",
        "symph export kustomize experiment.yaml --to base/",
        "symph export dijob experiment.yaml --operator v1.1 | kubectl create -f -",
        "symph export appwrapper experiment.yaml --set groups.agent.replicas=32 | kubectl apply -f -",
    )


def _added() -> dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]]:
    modules: dict[str, Any] = {name: entry.load() for name, entry in entry_points("symph.exporters").items()}
    return {name: (module.configure, module.SUMMARY) for name, module in modules.items()}


def _add_release(parser: argparse.ArgumentParser) -> None:
    """Add what says which release the objects are of, and under which values."""
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default=None, help="a namespace to write into every object")
    add_values(parser)


def _add_appwrapper(parser: argparse.ArgumentParser) -> None:
    """Add the version to write, and what to wrap."""
    parser.add_argument(
        "--api",
        choices=("v1beta2", "v1beta1"),
        default=None,
        help="the version that the cluster serves; v1beta1 is MCAD's (default: the spec's workload.appwrapper.version)",
    )
    parser.add_argument(
        "--everything", action="store_true", help="also wrap what the controller's own role does not let it create"
    )
    _add_release(parser)


# What stands in front of each format: what adds the options that it alone has, and one line of help.
FORMATS = {
    "appwrapper": (_add_appwrapper, "one AppWrapper with all that runs, for kubectl and CodeFlare"),
    "kustomize": (_add_release, "a folder that kubectl kustomize builds to the chart's objects"),
    "manifests": (_add_release, "the chart's objects as one stream, for kubectl apply"),
}
