"""`symph logs`: what processes printed, one or many, as a whole or as it comes."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time

from symphony_charts.backend.protocol import Watcher, find_instances
from symphony_charts.backend.status import ExperimentStatus, LogLine, LogQuery
from symphony_charts.cli import experiments, output
from symphony_charts.errors import NotFound, UsageError

__all__ = ["run"]

# Colours of names in merged logs: one each, in turn.
_NAME_COLORS = ("36", "33", "35", "32", "34", "31")


def run(args: argparse.Namespace) -> int:
    """Print the lines of all chosen processes in order of time."""
    if args.stream != "combined":
        raise UsageError(
            f'there is no stream "{args.stream}"', next="only the combined one is kept: leave out --stream"
        )
    try:
        re.compile(args.regex)
    except re.error as error:
        step = r"write a character that means itself with a backslash, as in '\['"
        raise UsageError(f"--regex is no regular expression: {error}", "--regex", step) from error
    watcher = experiments.watcher_of(args)
    status, words = _choose(args, watcher)
    chosen = [instance for word in words for instance in experiments.some_instances(status, word)]
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
    printer = _Printer(args, paths or tuple(instance.path for instance in status.instances))
    for line in watcher.logs(status.name, query):
        printer.print(line)
    return 0


def _choose(args: argparse.Namespace, watcher: Watcher) -> tuple[ExperimentStatus, list[str]]:
    """The experiment and processes that the words mean: `PROCESS [EXPERIMENT]`, or an experiment alone."""
    word = args.component_name
    words = [*([word] if word else []), *args.process]
    if word is None or args.experiment_name is not None:
        return experiments.find_status(args, watcher), words
    try:
        status = experiments.find_status(args, watcher)
        if _knows(status, word):
            return status, words
    except NotFound:
        status = None
    try:
        return watcher.describe(word, events=False), list(args.process)
    except NotFound:
        if status is None:
            raise _of_ended(watcher, word) from None
        return status, words


def _of_ended(watcher: Watcher, word: str) -> NotFound:
    """What to say of a word alone when nothing runs: it is mostly a process of what has ended."""
    ended = watcher.experiments(ended=True)
    names = [status.name for status in ended if _knows(status, word)]
    if not names:
        known = ", ".join(status.name for status in ended) or "none"
        return NotFound(f'there is no experiment "{word}", and nothing runs', next=f"with logs there are: {known}")
    is_are = f"{names[0]}, which has" if len(names) == 1 else f"{', '.join(names)}, which have"
    return NotFound(f'"{word}" is a process of {is_are} ended', next=f"symph logs {word} {names[0]}")


def _knows(status: ExperimentStatus, word: str) -> bool:
    """Whether a word names a process of the experiment exactly."""
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
