"""The options of verbs that speak to the Git repository of charts: which one, which environment, how to push."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = [
    "FORMATS",
    "add_change_options",
    "add_env",
    "add_named",
    "add_place",
    "add_publish_options",
    "add_repository",
]

FORMATS = ("table", "json", "yaml", "markdown")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add `--repo URL[#BRANCH]` (args.repo) and `--repo-path` (args.repo_path)."""
    parser.add_argument(
        "--repo",
        metavar="URL[#BRANCH]",
        default=None,
        help="the Git repository of charts (default: `repository` of .symph.yaml)",
    )
    parser.add_argument(
        "--repo-path",
        metavar="FOLDER",
        default=None,
        help="its folder that holds charts and environments",
    )


def add_repository(parser: argparse.ArgumentParser) -> None:
    """Add where the repository is, and `--team` (args.team)."""
    add_place(parser)
    parser.add_argument("--team", default=None, help="whose experiment (default: the spec's, else .symph.yaml's)")


def add_env(parser: argparse.ArgumentParser, *, text: str = "the environment") -> None:
    """Add `--env NAME` (args.env)."""
    parser.add_argument("--env", metavar="NAME", default=None, help=f"{text} (default: the only one of .symph.yaml)")


def add_named(parser: argparse.ArgumentParser) -> None:
    """Add the experiment (args.experiment_name) by its name in Git, ``team/name`` where teams share one."""
    parser.add_argument("experiment_name", metavar="EXPERIMENT", help="its name, or team/name")


def add_change_options(parser: argparse.ArgumentParser, *, is_alone: bool = True) -> None:
    """Add what every change of the repository takes; `is_alone`: also how it is printed, and `--dry-run`."""
    parser.add_argument("--expect", metavar="VERSION", default=None, help="only if this version runs there now")
    parser.add_argument("--branch", metavar="NAME", default=None, help="push a branch of this name, for a review")
    parser.add_argument("--into", metavar="CHECKOUT", default=None, help="write into this work tree; do not push")
    parser.add_argument(
        "-m", "--message", metavar="WHY", default=None, help="why, for `symph history`: it stands in the commit"
    )
    parser.add_argument("--sign", metavar="KEY", default=None, help="sign the commit: an SSH key, or gpg:KEYID")
    parser.add_argument(
        "--no-sign", dest="sign", action="store_const", const="", help="sign nothing, whatever git or .symph.yaml say"
    )
    if not is_alone:
        return
    common.add_output(parser, FORMATS, headers=False)
    common.add_dry_run(parser, "show what would change in the repository and push nothing")


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """Add which environment is published to, and its values."""
    add_env(parser, text="the environment that shall run it")
    parser.add_argument("--chart-only", action="store_true", help="publish the chart; no environment runs it yet")
    parser.add_argument(
        "--env-values",
        metavar="FILE",
        action="append",
        default=[],
        help="the environment's own values, instead of those it has",
    )
    parser.add_argument(
        "--env-set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one value of the environment alone, over those that it has",
    )
    parser.add_argument(
        "--env-unset",
        metavar="KEY",
        action="append",
        default=[],
        help="take one value of the environment's own away: .symph.yaml's counts again, or the chart's",
    )
    parser.add_argument(
        "--cert",
        metavar="FILE|URL|cluster",
        default=None,
        help="certificate for sealed secrets (default: .symph.yaml's)",
    )
    add_repository(parser)
