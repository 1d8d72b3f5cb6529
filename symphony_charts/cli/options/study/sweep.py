"""The options of `symph sweep`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release, repository, times
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph sweep`."""
    parser.add_argument("spec", metavar="SPEC", nargs="?", type=_spec, default=".", help=common.SPEC_HELP)
    common.add_spec_changes(parser)
    parser.add_argument(
        "sweep_name",
        metavar="NAME",
        nargs="?",
        default=None,
        help="after `show` in place of SPEC: the sweep to look at",
    )
    shown = parser.add_argument_group("show", "`symph sweep show NAME`: trials and what they measured, at any time")
    shown.add_argument("--metric", metavar="KEY", default=None, help="the metric to judge by")
    text = "the best value of the metric (default: max for names such as reward or accuracy, else min)"
    shown.add_argument("--goal", choices=("min", "max"), default=None, help=text)
    shown.add_argument(
        "--pattern",
        metavar="REGEX",
        default=None,
        help="what gives metrics in logs, by named groups: 'loss is (?P<loss>[0-9.]+)' (default: name=number, JSON)",
    )
    text = "order by a metric, which then also names the best trial, or by a setting, state or seconds"
    shown.add_argument("--sort", metavar="KEY", default=None, help=text)
    shown.add_argument("--mean", metavar="KEYS", default=None, help="means over these settings, as seed")
    shown.add_argument("--csv", metavar="FILE", default=None, help="write the table as CSV; `-` is standard output")
    parser.add_argument(
        "-g",
        "--grid",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        help="values of one setting: a,b,c or first..last[..step]; may be repeated. KEY is a variable that processes"
        " declare (lr or LR), or a path of the spec",
    )
    for flag, text in (("--uniform", "evenly"), ("--loguniform", "evenly in the logarithm")):
        parser.add_argument(
            flag, metavar="KEY=LOW..HIGH", action="append", default=[], help=f"draw a setting {text}; needs --random"
        )
    parser.add_argument(
        "--list",
        metavar="FILE",
        default=None,
        help="points in CSV: the first line names the settings, each other line is one; `-` is standard input",
    )
    parser.add_argument("--random", metavar="N", type=int, default=None, help="draw N trials instead of taking all")
    parser.add_argument("--seed", type=int, default=0, help="of --random (default: 0); the same seed, the same trials")
    parser.add_argument(
        "--search",
        metavar="N",
        type=int,
        default=None,
        help="with --up --metric, here or on kube: N trials, each proposed by optuna out of what those before measured"
        " (extra `optuna`)",
    )
    parser.add_argument("--up", action="store_true", help="run the trials that are not done yet, and wait for them")
    parser.add_argument(
        "--again", action="store_true", help="with --up: run those anew, too, that are done with what they are now"
    )
    parser.add_argument(
        "--on",
        choices=("tmux", "kube", "argo"),
        default="tmux",
        help="where they run: here (default), as a Helm release each, or as one Argo Workflow, which is not waited for",
    )
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=int,
        default=None,
        help="how many trials run at a time (default: 1 here, 64 as releases, all in a Workflow)",
    )
    release.add_target(parser)
    parser.add_argument("--no-wait", action="store_true", help="with --on kube --up: return once all are installed")
    parser.add_argument(
        "--timeout",
        type=times.seconds,
        default=None,
        metavar="TIME",
        help="how long a trial may take before it is ended: 90, 90s, 5m, 2d (default: as long as it does)",
    )
    parser.add_argument(
        "--early-stop",
        choices=("median", "halving"),
        default=None,
        help="with --up --metric, here or on kube: end trials that are worse than the median of the others by the same"
        " step, or that are not in the best third at the steps GRACE, 3 GRACE, 9 GRACE...",
    )
    parser.add_argument(
        "--grace", metavar="STEPS", type=float, default=1.0, help="of --early-stop: none ends before this step (1)"
    )
    repository.add_env(parser, text="publish every trial to this environment, in one commit")
    repository.add_repository(parser)
    repository.add_change_options(parser, is_alone=False)
    parser.add_argument("-d", "--dest", metavar="DIR", default="dist", help="folder to write to (default: dist)")
    common.add_output(parser)
    add_values(parser)
    common.add_placement(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph sweep experiment.yaml --grid lr=1e-3,1e-4 --grid seed=0..9      # one chart, a values file a trial",
        "symph sweep experiment.yaml --grid seed=0..9 --up --parallel 4        # here, four at a time",
        "symph sweep experiment.yaml --list points.csv --up --timeout 2h       # points; again: the rest",
        "symph sweep experiment.yaml --loguniform lr=1e-5..1e-1 --search 30 --up --metric loss   # optuna proposes",
        "symph sweep experiment.yaml --grid lr=1,0.1,0.01 --up --metric loss --early-stop median --grace 10",
        "symph sweep experiment.yaml --grid seed=0..9 --on argo --parallel 4   # one Argo Workflow, as a file",
        "symph sweep experiment.yaml --grid seed=0..9 --on kube --up --parallel 4   # a Helm release each",
        "symph sweep experiment.yaml --loguniform lr=1e-5..1e-2 --random 20 --dry-run",
        "symph sweep experiment.yaml --grid seed=0..9 --env dev               # one commit, ten releases of one chart",
        "symph sweep show descent --metric loss --sort loss                    # how they are, best trial named",
        "symph sweep show descent --metric loss --mean seed                    # means and deviations over seeds",
        "symph sweep experiment.yaml --grid processes.agent.replicas=2,4,8",
    )


def _spec(text: str) -> str:
    """`show` is a word of the command, also where a folder is called so."""
    return text if text == "show" else common.spec_of(text)
