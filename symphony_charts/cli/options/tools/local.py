"""The options of `symph local`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]

FORMATS = ("table", "json", "yaml", "name")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph local`."""
    actions = parser.add_subparsers(dest="local_action", metavar="ACTION", required=True)
    for name, text, add, examples in _ACTIONS:
        action = actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        add(action)
        common.add_examples(action, *examples)
    common.add_examples(
        parser,
        "symph local env learner rl",
        "symph local render experiment.yaml --as process-compose",
        "symph local history ring",
        "symph local replay ring",
        "symph local gc --keep 5 --older-than 7d --dry-run",
        "symph local volumes",
    )


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("component_name", metavar="PROCESS", nargs="?", help="default: the only one there is")
    common.add_experiment(parser)
    parser.add_argument(
        "--spec", metavar="SPEC", type=common.spec_of, default=None, help="of this experiment file, which need not run"
    )
    common.add_spec_changes(parser)
    parser.add_argument("--show-secrets", action="store_true", help="print secret values, too")
    common.add_output(parser, ("shell", "json", "yaml"), default="shell", headers=False)


def _add_render(parser: argparse.ArgumentParser) -> None:
    common.add_specs(parser, many=False)
    parser.add_argument(
        "--as",
        dest="form",
        choices=("plan", "tmuxp", "process-compose"),
        default="plan",
        help="for which runner (default: plan, which prints the plan and writes nothing)",
    )
    parser.add_argument("--to", metavar="FOLDER", default=None, help="where its files go (default: NAME-local)")
    parser.add_argument("--force", action="store_true", help="replace what an earlier render wrote there")
    parser.add_argument("--show-secrets", action="store_true", help="print secret values in the plan, too")
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser, "print the runner's file and write nothing")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", help="an experiment that has run here")
    parser.add_argument("--run", metavar="ID", default=None, help="which run, or how its id begins (default: the last)")
    parser.add_argument("--wait", action="store_true", help="wait until it is over; exit with its status")
    parser.add_argument("--force", action="store_true", help="end the experiment first if it runs already")
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser, "print what would be started, without values of variables")


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    common.add_output(parser, FORMATS)


def _add_gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    parser.add_argument(
        "--keep",
        metavar="N",
        type=int,
        default=None,
        help="newest ended runs to keep (default: 10; 0 with --older-than)",
    )
    parser.add_argument(
        "--older-than", metavar="AGE", default=None, help="only runs that ended so long ago: 90s, 12h, 7d"
    )
    common.add_output(parser, FORMATS)
    common.add_yes(parser)
    common.add_dry_run(parser)


def _add_volumes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", default=None, help="default: all of them")
    parser.add_argument(
        "--remove",
        metavar="NAME",
        nargs="+",
        default=[],
        help="remove these with all their files: EXPERIMENT/VOLUME, or VOLUME where one experiment alone has it",
    )
    common.add_output(parser, FORMATS)
    common.add_yes(parser)
    common.add_dry_run(parser)


_ACTIONS = (
    (
        "env",
        "the exact environment of a process",
        _add_env,
        ("symph local env learner rl", '(eval "$(symph local env learner rl --show-secrets)"; ./debug.sh)'),
    ),
    (
        "render",
        "the plan for this machine, also for tmuxp or process-compose",
        _add_render,
        ("symph local render experiment.yaml", "symph local render experiment.yaml --as tmuxp --to /tmp/rl"),
    ),
    (
        "replay",
        "start a past run again from what it kept",
        _add_replay,
        ("symph local replay ring", "symph local replay ring --run 20260101-1200 --wait"),
    ),
    ("history", "the runs that this machine remembers", _add_history, ("symph local history ring -o json",)),
    (
        "gc",
        "remove old runs and their logs",
        _add_gc,
        ("symph local gc --keep 5 --dry-run", "symph local gc ring --older-than 7d --yes"),
    ),
    (
        "volumes",
        "the volumes that outlive runs: what claims and NFS mounts hold on this machine",
        _add_volumes,
        ("symph local volumes", "symph local volumes -o json", "symph local volumes --remove rl/ckpt"),
    ),
)
