"""`symph logs`: what processes printed, one or many, as a whole or as it comes."""

from __future__ import annotations

import argparse
import sys
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.backend.protocol import Watcher
    from symphony_charts.backend.status import ExperimentStatus, LogLine

# Colours of names in merged logs: one each, in turn.
_NAME_COLORS = ("36", "33", "35", "32", "34", "31")


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
        "-s", "--since", metavar="TIME", type=watching.moment, help="only from then on: 90 (seconds ago), 5m, or a time"
    )
    parser.add_argument("--until", metavar="TIME", type=watching.moment, help="only up to then, written like --since")
    parser.add_argument("-t", "--tail", metavar="LINES", type=int, default=-1, help="only the last so many lines")
    parser.add_argument("--regex", metavar="PATTERN", default="", help="only lines in which this is found")
    parser.add_argument("--previous", action="store_true", help="of the run, or container, before this one")
    parser.add_argument("--stream", default="combined", help="combined: terminals and containers keep but one")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    watching.add_target(parser)
    common.add_output(parser, ("table", "json"), headers=False)
    common.add_examples(
        parser,
        "symph logs learner",
        "symph logs -f ring",
        "symph logs agent/3 rl --on kube --since 5m --regex reward",
        "symph logs team-a/worker-0 integrate --tail 20 --timestamps",
    )


def run(args: argparse.Namespace) -> int:
    """Print the lines of all chosen processes in order of time."""
    import re

    from symphony_charts.backend.status import LogQuery
    from symphony_charts.errors import UsageError

    if args.stream != "combined":
        raise UsageError(
            f'there is no stream "{args.stream}"', next="only the combined one is kept: leave out --stream"
        )
    try:
        re.compile(args.regex)
    except re.error as error:
        raise UsageError(f"--regex is no regular expression: {error}") from error
    watcher = watching.watcher_of(args)
    status, words = _choose(args, watcher)
    chosen = [one for word in words for one in watching.some_instances(status, word)]
    paths = tuple(dict.fromkeys(one.path for one in chosen))
    query = LogQuery(
        instances=paths,
        since=args.since,
        until=args.until,
        tail=args.tail,
        regex=args.regex,
        follow=args.follow,
        previous=args.previous,
    )
    printer = _Printer(args, paths or tuple(one.path for one in status.instances))
    for line in watcher.logs(status.name, query):
        printer.print(line)
    return 0


def _choose(args: argparse.Namespace, watcher: Watcher) -> tuple[ExperimentStatus, list[str]]:
    """The experiment and processes that the words mean: `PROCESS [EXPERIMENT]`, or an experiment alone."""
    from symphony_charts.errors import NotFound

    word = args.component_name
    words = [*([word] if word else []), *args.process]
    if word is None or args.experiment_name is not None:
        return watching.find_status(args, watcher), words
    try:
        status = watching.find_status(args, watcher)
        if _knows(status, word):
            return status, words
    except NotFound:
        status = None
    try:
        return watcher.describe(word, events=False), list(args.process)
    except NotFound:
        if status is None:
            raise
        return status, words


def _knows(status: ExperimentStatus, word: str) -> bool:
    """Whether a word names a process of the experiment exactly."""
    from symphony_charts.backend.protocol import find_instances
    from symphony_charts.errors import NotFound

    try:
        return bool(find_instances(status, word))
    except NotFound:
        # A process with another number of replicas; the error is raised where it is chosen.
        return True


class _Printer:
    """Prints lines, each after its process where there are several, whose colours stay theirs."""

    def __init__(self, args: argparse.Namespace, paths: tuple[str, ...]) -> None:
        self._args = args
        self._is_many = len(paths) > 1
        self._width = max(map(len, paths), default=0)
        self._numbers = {path: number for number, path in enumerate(paths)}
        self._has_color = output.use_color(sys.stdout, getattr(args, "color", None))

    def print(self, line: LogLine) -> None:
        """Print one line as it came, but for its end."""
        text = line.text.removesuffix("\n")
        if self._args.output == "json":
            import json

            record = {"time": line.time, "process": line.process, "line": text}
            output.line(json.dumps(record, ensure_ascii=False))
        else:
            output.line(f"{self._stamp(line)}{self._name(line)}{text}")
        if self._args.follow:
            sys.stdout.flush()

    def _stamp(self, line: LogLine) -> str:
        if not self._args.timestamps:
            return ""
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(line.time)) + f".{int(line.time % 1 * 1000):03d} "

    def _name(self, line: LogLine) -> str:
        if not self._is_many:
            return ""
        name = line.process.ljust(self._width)
        if self._has_color:
            number = self._numbers.setdefault(line.process, len(self._numbers))
            name = f"\x1b[{_NAME_COLORS[number % len(_NAME_COLORS)]}m{name}\x1b[0m"
        return f"{name} | "
