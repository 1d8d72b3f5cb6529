"""The options of `symph logs`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, times

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph logs`."""
    text = "process, process/REPLICA, group/process, or an experiment for all of its"
    parser.add_argument("component_name", metavar="PROCESS", nargs="?", help=text)
    common.add_experiment(parser)
    parser.add_argument(
        "-p", "--process", metavar="PROCESS", action="append", default=[], help="one more process; may be repeated"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the experiment has ended")
    parser.add_argument(
        "-s", "--since", metavar="TIME", type=times.moment, help="only from then on: 90 (seconds ago), 5m, or a time"
    )
    parser.add_argument("--until", metavar="TIME", type=times.moment, help="only up to then, written like --since")
    parser.add_argument("-t", "--tail", metavar="LINES", type=int, default=-1, help="only the last so many lines")
    parser.add_argument("--regex", metavar="PATTERN", default="", help="only lines in which this is found")
    parser.add_argument("--previous", action="store_true", help="of the run, or container, before this one")
    parser.add_argument("--stream", default="combined", help="combined: terminals and containers keep but one")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    common.add_backend(parser)
    common.add_output(parser, ("table", "json"), headers=False)
    common.add_examples(
        parser,
        "symph logs learner",
        "symph logs -f ring",
        "symph logs agent/3 rl --on kube --since 5m --regex reward",
        "symph logs team-a/worker-0 integrate --tail 20 --timestamps",
    )
