"""Print results to stdout in the requested format and everything else to stderr; ask questions."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO
from unicodedata import combining, east_asian_width

from symphony_charts.errors import NotFound, UsageError
from symphony_charts.formats.printable import printable_line, printable_lines

if TYPE_CHECKING:
    from symphony_charts.importers.report import Report

API_VERSION = "symph.dev/v1"

# SGR codes by the meaning of a state; nothing else is coloured.
_COLORS = {"good": "32", "busy": "33", "bad": "31", "dim": "2", "bold": "1"}
_OWN_COLOR = re.compile(rf"(\x1b\[(?:0|{'|'.join(_COLORS.values())})m)")

# Global output options from the command line.
_given = SimpleNamespace(is_quiet=False, color=None)


# Minimum width of a cut column.
_LEAST = 5


class Column(NamedTuple):
    """A table column. `text` is a key of the item or a function of it; `is_wide` shows it with `-o wide` only.

    `state` returns the state of a cell (good, busy, bad, dim), which has a colour.
    """

    title: str
    text: str | Callable[[Mapping[str, Any]], object]
    is_wide: bool = False
    state: Callable[[Mapping[str, Any]], str] | None = None

    def cell(self, item: Mapping[str, object]) -> str:
        value = item.get(self.text) if isinstance(self.text, str) else self.text(item)
        return "-" if value is None or value == "" else printable_line(str(value))


def columns(*keys: str) -> list[Column]:
    """Return a column for each key of an item, with the key as its title."""
    return [Column(key.upper(), key) for key in keys]


def print_items(
    args: argparse.Namespace,
    kind: str,
    items: Sequence[Mapping[str, object]],
    columns: Sequence[Column],
    *,
    empty: str = "",
    name: str = "name",
) -> None:
    """Print a list in the format of `-o`: a table, names, or JSON/YAML with apiVersion, kind ``<kind>List`` and items.

    An empty list is no error; `empty` is then printed to stderr. `name` is the key that `-o name` prints.
    """
    form = "name" if _given.is_quiet and args.output == "table" and all(name in item for item in items) else args.output
    if form in ("json", "yaml"):
        print_document({**_head(args, f"{kind}List"), "items": [dict(item) for item in items]}, form)
    elif form == "name":
        for item in items:
            line(printable_line(str(item[name])))
    elif items:
        line(table_of(args, items, columns))
    if not items and empty and form not in ("json", "yaml"):
        note(empty)


def table_of(args: argparse.Namespace, items: Sequence[Mapping[str, object]], columns: Sequence[Column]) -> str:
    """Return the table as the options want it: `-o wide`, `--no-headers`, `--color`, and the terminal's width."""
    shown = [column for column in columns if args.output == "wide" or not column.is_wide]
    headers = not getattr(args, "no_headers", False)
    return format_table(items, shown, headers=headers, room=room_of(args.output))


def print_record(args: argparse.Namespace, kind: str, record: Mapping[str, object], text: str = "") -> None:
    """Print one record: `text` for people, or JSON/YAML with apiVersion and kind."""
    if args.output in ("json", "yaml"):
        print_document({**_head(args, kind), **record}, args.output)
    elif text:
        line(text)


def plan_printer(args: argparse.Namespace) -> Callable[[Mapping[str, object], str], None]:
    """Return the function that prints what a dry run of `local.up` would do."""
    return lambda plan, text: print_record(args, "Run", plan, text.removesuffix("\n"))


def _head(args: argparse.Namespace, kind: str) -> dict[str, object]:
    dry_run = {"dryRun": True} if getattr(args, "dry_run", False) else {}
    return {"apiVersion": API_VERSION, "kind": kind, **dry_run}


def format_table(
    items: Iterable[Mapping[str, object]],
    columns: Sequence[Column],
    *,
    headers: bool = True,
    color: bool | None = None,
    room: int | None = None,
) -> str:
    """Format the items as columns two spaces apart, without trailing blanks or a final newline.

    With `room` lines are at most that wide: drop columns without content, and cut the widest ones. `color` None: as on
    stdout.
    """
    color = use_color(sys.stdout) if color is None else color
    items = list(items)
    rows = [[column.cell(item) for column in columns] for item in items]
    titles = [[column.title for column in columns]] if headers else []
    widths = [max(map(_width, texts), default=0) for texts in zip(*titles, *rows, strict=True)]
    gap = 2 * (len(columns) - 1)
    if room is not None and sum(widths) + gap > room:
        said = [column for column, *cells in zip(columns, *rows, strict=True) if set(cells) != {"-"}]
        if len(said) < len(columns):
            return format_table(items, said, headers=headers, color=color, room=room)
        while sum(widths) + gap > room and max(widths) > _LEAST:
            widths[widths.index(max(widths))] -= 1
    lines = ["  ".join(map(_fit, row, widths)).rstrip() for row in titles]
    for item, row in zip(items, rows, strict=True):
        cells = list(map(_fit, row, widths))
        cells[-1] = cells[-1].rstrip()
        states = [column.state(item) if column.state else "" for column in columns]
        lines.append("  ".join(paint(cell, state, color) for cell, state in zip(cells, states, strict=True)).rstrip())
    return "\n".join(lines)


def room_of(form: str) -> int | None:
    """Return the width of the terminal; None if stdout is not a terminal or the format is wide."""
    return get_terminal_size().columns if form != "wide" and sys.stdout.isatty() else None


def paint(text: str, state: str, color: bool | None = None) -> str:
    """Return `text` in the colour of a state (good, busy, bad, dim, bold), or unchanged; `color` None: as on stdout."""
    color = use_color(sys.stdout) if color is None else color
    return f"\x1b[{_COLORS[state]}m{text}\x1b[0m" if color and state else text


def texts(value: object) -> list[str]:
    """Return the texts of a list; an empty list for any other value."""
    return [str(item) for item in value] if isinstance(value, list) else []


def print_report(report: Report) -> None:
    """Print changes and losses to stderr with their paths and next steps, without duplicates, then the summary."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for item in report.notes:
        places.setdefault((item.verdict, item.what, item.next), []).append(item.path)
    for (verdict, what, next_step), paths in places.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        _tell(f"{verdict}: {what}\n  at:   {paths[0]}{more}" + (f"\n  next: {next_step}" if next_step else ""))
    note(report.summary())


def use_color(stream: TextIO) -> bool:
    """Return True to colour: the flag, else NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, else a terminal that is not dumb."""
    if _given.color in ("always", "never"):
        return bool(_given.color == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def line(text: str = "") -> None:
    sys.stdout.write(f"{safe_text(text)}\n")


def safe_text(text: str) -> str:
    """Return text without terminal control sequences: keep only line breaks, tabs and the colours of `paint`.

    All text except documents passes through here, so that no verb can forget it: names and messages come from
    repositories, clusters and files of other people.
    """
    return "".join(part if _OWN_COLOR.fullmatch(part) else printable_lines(part) for part in _OWN_COLOR.split(text))


def fenced(text: str, language: str) -> str:
    """Return text as a block of Markdown that none of its lines can end."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return `value` as JSON with every unprintable character escaped, such as U+009B and U+202E, which JSON allows."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def set_up(*, is_quiet: bool = False, color: str | None = None) -> None:
    """Take `--color`, and `--quiet`: no notes and next steps, and tables as names. Warnings are still printed."""
    _given.is_quiet, _given.color = is_quiet, color


def note(text: str) -> None:
    if not _given.is_quiet:
        _tell(text)


def _tell(text: str) -> None:
    sys.stderr.write(f"{safe_text(text)}\n")


def warn(text: str, next: str = "") -> None:
    _tell(f"warning: {text}" + (f"\n  next: {next}" if next else ""))


def next_step(*commands: str) -> None:
    note(f"next: {' | '.join(commands)}")


def can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def counted(number: int, noun: str) -> str:
    """Return ``1 pod`` for `1`, `pod` and ``3 processes`` for `3`, `process`."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def confirm(args: argparse.Namespace, question: str) -> None:
    """Return if the user agrees, by `--yes` or by answering ``y``.

    Raises UsageError if the answer is anything else, or if there is neither `--yes` nor a terminal.
    """
    if getattr(args, "yes", False):
        return
    if not can_ask():
        raise UsageError(f"{question} This question needs a terminal", "", "add --yes if you mean it")
    if _answer(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise UsageError("nothing was done: the answer was no")


def ask(question: str, default: str) -> str:
    """Return the user's answer, or `default` for an empty line. Call it only if `can_ask`."""
    return _answer(f"{question} [{default}]: ") or default


def _answer(question: str) -> str:
    sys.stderr.write(safe_text(question))
    sys.stderr.flush()
    return sys.stdin.readline().strip()


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar by n steps; drawn only on a terminal, never in CI."""
    is_watched = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
    if _given.is_quiet or total < 2 or not is_watched:
        yield lambda _steps: None
        return
    # rich takes 36 ms to import, and most commands draw no bar.
    from rich import console, progress

    parts = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*parts, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda steps: bar.advance(task, steps)


def print_document(document: Mapping[str, object], form: str) -> None:
    """Print a document as JSON or YAML."""
    if form == "json":
        sys.stdout.write(f"{json_text(document, indent=2)}\n")
    else:
        # YAML takes 17 ms to import; `symph ls` does not need it.
        from symphony_charts.formats import yaml_write

        sys.stdout.write(yaml_write.dump(document))


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """Return the text, cut if it is wider than `width` cells."""
    return text if _width(text) <= width else _fit(text, width)


def _fit(text: str, width: int) -> str:
    """Return the text at exactly this width: cut, or with blanks behind it."""
    if _width(text) > width:
        while _width(text) >= width:
            text = text[:-1]
        text += "…"
    return text + " " * (width - _width(text))


def choose(matches: Sequence[str], name: str, noun: str) -> str:
    """Return the only inexact match with a warning, or the one that the user picks."""
    if not matches:
        raise NotFound(f'no {noun} matches "{name}"', "", "symph ls shows all experiments")
    if len(matches) == 1:
        note(f'unknown {noun} "{name}"; using {matches[0]}')
        return matches[0]
    if not can_ask():
        raise UsageError(f'"{name}" fits several: {", ".join(matches)}', "", f"write the {noun}'s whole name")
    for index, match in enumerate(matches):
        note(f"{index}) {match}")
    answer = _answer(f"which {noun}? 0-{len(matches) - 1} (enter for none): ")
    if not (answer.isascii() and answer.isdigit() and int(answer) < len(matches)):
        raise UsageError(f"no {noun} was chosen")
    return matches[int(answer)]


class Screen:
    """Show texts one after another, each in place of the last."""

    def __init__(self) -> None:
        self._lines = 0
        self._shown: str | None = None
        self._is_terminal = sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Show this text unless it is shown already."""
        if text == self._shown:
            return
        if self._is_terminal and self._lines:
            sys.stdout.write(f"\x1b[{self._lines}F\x1b[J")
        elif self._shown is not None and not self._is_terminal:
            sys.stdout.write("\n")
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        self._lines, self._shown = text.count("\n") + 1, text
