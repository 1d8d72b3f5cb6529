"""Every public method of Symphony 0.10 accepts its keywords here, or is in docs/from-symphony.md with the reason."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from symphony_charts.compat import names

DOCS = Path(__file__).parents[2] / "docs/from-symphony.md"
TABLE = Path(__file__).with_name("symphony-0.10.txt")


class Row(NamedTuple):
    module: str
    cls: str
    method: str
    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    forwards: bool

    @property
    def name(self) -> str:
        return f"{self.cls}.{self.method}" if self.cls else self.method


def rows() -> Iterator[Row]:
    for line in TABLE.read_text().splitlines():
        if line.startswith("#"):
            continue
        module, _, rest = line.partition(" ")
        path, _, text = rest.partition("(")
        cls, _, method = path.rpartition(".")
        before, _, after = f"{text.rstrip(')')}, ".partition("*, ")
        words = [[word.rstrip("=") for word in part.split(", ") if word and word[0] != "*"] for part in (before, after)]
        yield Row(module, cls, method, tuple(words[0]), tuple(words[1]), forwards="*args" in text)


ROWS = list(rows())


def excused() -> set[str]:
    """Return the names in the first column of the table "What is not there": `Class.method`, `Class`, or `method`."""
    section = DOCS.read_text().partition("## What is not there")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for line in lines for name in re.findall(r"`([\w.]+)`", line.split("|")[1])}


def is_excused(row: Row, excuses: set[str]) -> bool:
    return not excuses.isdisjoint({row.name, row.method, row.cls or row.method})


def complaint(row: Row) -> str | None:
    """Return the reason why the method cannot be called as Symphony's was; None if it can."""
    # Inherited methods were never called on the abstract class; this backend overrides the fewest.
    module, cls = ("subproc", "SubprocCluster") if row.cls == "Cluster" else (row.module, row.cls)
    try:
        home = import_module(f"symphony.{module}")
    except ModuleNotFoundError:
        return "missing"
    holder: Any = getattr(home, cls, None) if cls else home
    found = None if holder is None else inspect.getattr_static(holder, row.method, None)
    if found is None:
        return "missing"
    if isinstance(found, property) or row.forwards:
        return None
    function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
    own = [] if isinstance(found, staticmethod) or not row.cls else [None]
    signature = inspect.signature(function)
    spelled = getattr(function, "__keywords__", {})
    several = {name for name, one in signature.parameters.items() if one.kind is one.VAR_POSITIONAL}
    words = [spelled.get(word, word) for word in (*row.positional, *row.keywords)]
    try:
        in_order = signature.bind(*own, *row.positional, **{spelled.get(word, word): word for word in row.keywords})
        if "_" not in words:
            theirs = (*row.positional, *row.keywords)
            named = {ours: word for ours, word in zip(words, theirs, strict=True) if ours not in several}
            signature.bind(*own, **named)
            held = {**in_order.arguments, **in_order.kwargs}
            # The rows of each backend give the order of abstract methods' parameters.
            if row.cls != "Cluster" and any(held.get(ours) != word for ours, word in named.items()):
                return f"another order: {signature}"
    except TypeError as error:
        return f"{error}: {signature}"
    return None


def test_every_method_takes_symphonys_keywords_or_is_in_the_docs() -> None:
    excuses = excused()
    with names():
        wrong = [
            f"{row.module} {row.name}: {complaint(row)}"
            for row in ROWS
            if not is_excused(row, excuses) and complaint(row)
        ]
    assert wrong == []
    assert len(ROWS) == 503


def test_the_docs_excuse_nothing_that_is_there() -> None:
    with names():
        failing = {part for row in ROWS if complaint(row) for part in (row.name, row.method, row.cls)}
    assert excused() - failing == set()
