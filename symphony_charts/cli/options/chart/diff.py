"""The options of `symph diff`."""

from __future__ import annotations

import argparse
import os

from symphony_charts.cli.options import common, repository
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph diff`."""
    text = "an experiment file or its folder as a path, or the name of a published one (default: ./experiment.yaml)"
    parser.add_argument("what", metavar="SPEC|EXPERIMENT", nargs="?", type=_what, default=".", help=text)
    parser.add_argument("versions", metavar="VERSION", nargs="*", help="one or two published versions")
    repository.add_env(parser, text="the environment to compare with, or whose values both versions get")
    parser.add_argument(
        "--from", metavar="ENV", dest="before", default=None, help="compare two environments: the first"
    )
    parser.add_argument("--to", metavar="ENV", dest="after", default=None, help="... and the second")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when something differs")
    parser.add_argument("--all", action="store_true", help="list what does not differ, too")
    repository.add_repository(parser)
    common.add_output(parser, repository.FORMATS, headers=False)
    parser.add_argument(
        "--pools",
        metavar="FILE",
        action="append",
        default=[],
        help="node pools to place the spec on; may be repeated"
        " (default: the spec's placement.pools, else the project's)",
    )
    add_values(parser)
    common.add_spec_changes(parser)
    common.add_examples(
        parser,
        "symph diff rl.yaml --env dev                 # the spec against what dev runs",
        "symph diff rl 0.1.3 0.2.0                    # two versions",
        "symph diff rl --from dev --to prod           # two environments",
        "symph diff rl.yaml --env dev -o markdown     # for a pull request",
    )


def _what(text: str) -> str:
    """A path is a spec; a bare word is a name, also where a folder is called so."""
    return common.spec_of(text) if text == "." or os.sep in text else text
