"""Values become values.yaml: each setting under what it means, and those that nobody has set as comments.

A comment begins with ``# --``, which helm-docs reads. What can be said of any group, container or service stands once,
above them. helm keeps of this file what it says, so the comments weigh on no release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from textwrap import indent

from symphony_charts.chart.files.value_table import FIELDS, TOP, Field
from symphony_charts.chart.render.values import Values
from symphony_charts.formats.yaml_text import dump

__all__ = ["values_text"]

_NAMED = "*"
_EMPTY = {
    "annotations": " {}",
    "env": " {}",
    "labels": " {}",
    "object": " {}",
    "objects": " []",
    "quantities": " {}",
    "ranges": " []",
    "strings": " {}",
    "texts": " []",
    "words": " []",
}
_NAMES = {"groups": "<group>", "containers": "<process>", "initContainers": "<step>"}
# Written below the settings whatever their order is, since they may be long.
_LAST = ("configs",)


def values_text(values: Values) -> str:
    """values.yaml, a section for each key."""
    keys = [key for key in TOP if key in values and key not in _LAST]
    keys += sorted(set(values) - set(keys) - set(_LAST))
    unset = [f"# {line}\n" for key in TOP if key not in values for line in _sample(key, _tree()[key])]
    keys += [key for key in _LAST if key in values]
    return "\n".join([*(_section(key, values[key]) for key in keys), *unset])


def _section(key: str, value: object) -> str:
    tree = _tree().get(key)
    meaning = f"# -- {TOP[key]}\n" if key in TOP else ""
    if not isinstance(tree, dict) or not isinstance(value, dict):
        return meaning + dump({key: value})
    if _NAMED in tree or not value:
        return _samples(key) + meaning + dump({key: value})
    return meaning + _settings(key, json.dumps(value))


@cache
def _settings(key: str, values: str) -> str:
    """A section that many charts share, with the comments of its settings."""
    tree = _tree()[key]
    assert isinstance(tree, dict)  # noqa: S101 - the caller has looked
    return f"{key}:\n" + indent("\n".join(_lines(tree, json.loads(values))), "  ") + "\n"


def _lines(tree: _Tree, values: Mapping[str, object]) -> Iterator[str]:
    """The entries of a map whose keys are known: those that are set, then the others as comments."""
    for key, value in values.items():
        branch = tree.get(key)
        if isinstance(branch, dict) and _NAMED not in branch and isinstance(value, dict) and value:
            yield f"{key}:"
            yield from (f"  {line}" for line in _lines(branch, value))
            continue
        if isinstance(branch, Field):
            yield f"# -- {branch.meaning}"
        elif branch is not None:
            yield from (f"# {line}" for line in _sample(key, branch))
        yield from dump({key: value}).splitlines()
    for key, branch in tree.items():
        if key not in values:
            yield from (f"# {line}" for line in _sample(key, branch))


@cache
def _samples(key: str) -> str:
    """What can be said of each entry of a section that is keyed by names, as a comment."""
    branch = _tree()[key]
    assert isinstance(branch, dict)  # noqa: S101 - the caller has looked
    return "".join(f"# {line}\n" for line in ("What can be said here:", *_sample(key, branch))) + "\n"


def _sample(key: str, branch: _Branch) -> Iterator[str]:
    """A setting that is not set, with what holds then and what it means."""
    if isinstance(branch, Field):
        default = f" {branch.default}" if branch.default else _EMPTY.get(branch.kind, "")
        yield f"{key}:{default}  # {branch.meaning}"
        return
    if key == "initContainers":
        yield f"{key}: {{}}  # Steps before the rest, in order: containers without lifecycle, connects and probes."
        return
    yield f"{key}:"
    for name, below in branch.items():
        shown = _NAMES.get(key, "<name>") if name == _NAMED else name
        yield from (f"  {line}" for line in _sample(shown, below))


_Tree = dict[str, "_Branch"]
_Branch = Field | _Tree


@cache
def _tree() -> _Tree:
    """The table by the steps of its paths."""
    root: _Tree = {}
    for field in FIELDS:
        *above, last = field.path.split(".")
        node = root
        for step in above:
            below = node.setdefault(step, {})
            assert isinstance(below, dict), field.path  # noqa: S101 - a setting has no settings of its own
            node = below
        node[last] = field
    return root
