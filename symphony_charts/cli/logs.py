"""`symph logs`: the output of one or several processes, complete or followed."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime

from symphony_charts.backend import protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import experiments, following, options, output
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import NotFound, UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    text = "process, process/REPLICA, group/process, or an experiment for all of its"
    parser.add_argument("component_name", metavar="PROCESS", nargs="?", help=text)
    options.add_experiment(parser)
    options.add_list(parser, "-p", "--process", metavar="PROCESS", help="another process; may be repeated")
    options.add_flag(parser, "--failed", help="only processes that failed")
    options.add_flag(parser, "-f", "--follow", help="continue until the experiment ends")
    parser.add_argument(
        "-s",
        "--since",
        metavar="TIME",
        type=_moment,
        help="only lines after this time: 90 (seconds ago), 5m, or a time",
    )
    parser.add_argument(
        "--until", metavar="TIME", type=_moment, help="only lines before this time, written as for --since"
    )
    parser.add_argument("-t", "--tail", metavar="LINES", type=int, default=-1, help="only this many last lines")
    parser.add_argument("--regex", metavar="PATTERN", default="", help="only lines that match")
    options.add_flag(parser, "--previous", help="from the previous run or container")
    options.add_flag(parser, "--timestamps", help="begin each line with its time")
    options.add_backend(parser)
    options.add_output(parser, ("table", "json"), headers=False)
    options.add_examples(
        parser,
        "symph logs learner",
        "symph logs -f ring",
        "symph logs --failed --tail 20",
        "symph logs agent/3 rl --on kube --since 5m --regex reward",
        "symph logs team-a/worker-0 integrate --tail 20 --timestamps",
    )


def run(args: argparse.Namespace) -> int:
    try:
        re.compile(args.regex)
    except re.error as error:
        step = r"write a character that means itself with a backslash, as in '\['"
        raise UsageError(f"--regex is not a valid regular expression: {error}", "--regex", step) from error
    if (typed(args, "namespace") or "").isdecimal():
        raise UsageError(
            "-n names a namespace, not a number of lines", next=f"--tail {args.namespace} prints the last lines"
        )
    watcher = experiments.watcher_of(args)
    status, words = _choose(args, watcher)
    paths = tuple(dict.fromkeys(one.path for word in words for one in experiments.some_instances(status, word)))
    if args.failed:
        failed = [one.path for one in status.instances if one.phase == "failed" and (not paths or one.path in paths)]
        if not failed:
            output.note(f"no process of {status.name} has failed")
            return 0
        paths = tuple(failed)
    given = {name: getattr(args, name) for name in ("since", "until", "tail", "regex", "follow", "previous")}
    query = backend_status.LogQuery(instances=paths, in_blocks=args.output == "table" and not args.timestamps, **given)
    names = paths or tuple(instance.path for instance in status.instances)
    printer = following.LinePrinter(
        names,
        form=args.output,
        has_times=args.timestamps,
        is_live=args.follow,
        has_names=len(names) > 1,
    )
    for line in watcher.logs(status.name, query):
        printer.print(line)
    return 0


def _choose(args: argparse.Namespace, watcher: protocol.Watcher) -> tuple[backend_status.ExperimentStatus, list[str]]:
    """Return the experiment and processes of `PROCESS [EXPERIMENT]`, or of an experiment alone."""
    word = args.component_name
    if word is None or args.experiment_name is not None:
        found = experiments.find_status(args, watcher)
        # `find_status` takes EXPERIMENT PROCESS, too, and swaps them.
        return found, [*([args.component_name] if word else []), *args.process]
    words = [word, *args.process]
    status: backend_status.ExperimentStatus | None = None
    try:
        status = experiments.find_status(args, watcher)
        if protocol.find_instances(status.instances, word):
            return status, words
    except NotFound as error:
        unclear = error
    try:
        return watcher.describe(experiments.name_in_spec(word), events=False), list(args.process)
    except NotFound:
        if status is None:
            raise (unclear if watcher.names() else _of_ended(watcher, word)) from None
        return status, words


def _of_ended(watcher: protocol.Watcher, word: str) -> NotFound:
    """Return the error for a single word when nothing runs: usually a process of an ended experiment."""
    ended = watcher.experiments(ended=True)
    names = [status.name for status in ended if protocol.find_instances(status.instances, word)]
    if names:
        return NotFound(
            f'"{word}" is a process of {", ".join(names)}, which ended', next=f"symph logs {word} {names[0]}"
        )
    known = ", ".join(status.name for status in ended)
    step = f"with logs there are: {known}" if known else "symph up SPEC starts an experiment"
    return NotFound(f'there is no experiment "{word}", and nothing runs', next=step)


def _moment(text: str) -> float | None:
    """Parse a span before now (`seconds`) or a time such as 2026-03-01T12:00:00Z into Unix time; ``0`` is None."""
    try:
        ago = options.seconds(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a time: write 10m, 2h, or 2026-03-01T12:00:00Z"
            ) from None
    return time.time() - ago if ago else None
