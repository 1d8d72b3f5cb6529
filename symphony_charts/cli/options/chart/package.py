"""The options of `symph package`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, registry, repository
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph package`."""
    common.add_specs(parser)
    parser.add_argument("-d", "--dest", metavar="DIR", default="dist", help="folder to write to (default: dist)")
    common.add_output(parser, headers=False)
    parser.add_argument("--version", metavar="V", default=None, help="the chart's version (default: by what changed)")
    parser.add_argument(
        "-t",
        "--template",
        metavar="DIR|URL@REF",
        default=None,
        help="a fork of the chart template: its folder, or a Git repository at a tag or commit; no hook of it runs"
        " (default: `template` of .symph.yaml; '' is the template of this installation)",
    )
    add_values(parser)
    common.add_placement(parser)
    parser.add_argument("--push", action="store_true", help="publish them, too; takes --env and the like of `publish`")
    repository.add_publish_options(parser)
    repository.add_change_options(parser, is_alone=False)
    _add_workspace(parser)
    registry.add_registry(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph package experiment.yaml",
        "symph package experiment.yaml --pools cluster.tf.json",
        "symph package experiments/*.yaml -d charts",
        "symph package rl.yaml --set groups.agent.replicas=32 --version 1.0.0",
        "symph package rl.yaml --dry-run -o json",
        "symph package rl.yaml --push --env dev",
        "symph package rl.yaml --template https://git.example.org/ml/chart-template.git@v3",
        "symph package rl.yaml --workspace . --image-repo registry.example.org/rl/images",
    )


def _add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add `--workspace`, `--image-repo` and `--platform`."""
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        default=None,
        help="put the files of DIR (without those of its .dockerignore) into the working folder of every image",
    )
    parser.add_argument(
        "--image-repo", metavar="HOST/PATH", default=None, help="where the images with the workspace are pushed to"
    )
    parser.add_argument(
        "--platform",
        metavar="OS/ARCH",
        action="append",
        default=[],
        help="keep only this platform of the images; may be repeated (default: all of Linux)",
    )
