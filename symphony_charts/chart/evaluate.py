"""Evaluate a chart's trees in Python: the objects that Helm would print, and hashes of their inputs.

A hash identifies a run, or a ConfigMap whose content values change. The constants are hashed here into a literal
digest; the template adds the values that occur in the trees, so the hash depends on nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from symphony_charts.chart.tree import (
    All,
    Block,
    Call,
    Condition,
    Either,
    Entries,
    Equals,
    File,
    Frame,
    Helper,
    Include,
    Join,
    Let,
    Merged,
    NonZero,
    Not,
    Scope,
    Sum,
    Text,
    Tree,
    Value,
    When,
    children,
    go_path,
    leaves_of,
    names_in,
    quoted,
    steps_of,
    text_of,
)
from symphony_charts.formats import yaml_write

_ABSENT = object()


def printed(value: object) -> str:
    """Return a string, number or boolean as the chart prints it in a string field."""
    return value if isinstance(value, str) else yaml_write.dumps(value)


class Evaluator:
    """Evaluates the trees of one chart in one release.

    `root` is the data that Helm gives to a template: ``Values``, ``Release``, ``Chart``. The values must be complete
    and fit the chart's schema.
    """

    def __init__(self, frame: Frame, root: Mapping[str, Any]) -> None:
        self.frame = frame
        self.scope: Scope = {".": root, "$": root}
        self._texts: dict[str, Any] = {}

    def objects(self, tree: Tree) -> list[dict[str, Any]]:
        return list(_flat(self._of(tree, self.scope)))

    def value(self, tree: Tree) -> Any:
        return self._of(tree, self.scope)

    def _look(self, path: str, scope: Scope) -> Any:
        if path.startswith('"'):
            return json.loads(path)
        head, names = steps_of(path)
        return _inside(scope[head], names)

    def _source(self, name: str, scope: Scope) -> Any:
        return self._look(name, scope) if name[0] in '.$"' else self._helper(name, scope)

    def _holds(self, condition: Condition, scope: Scope) -> bool:
        match condition:
            case str():
                return bool(self._look(condition, scope))
            case NonZero():
                return int(self._look(condition.path, scope) or 0) != 0
            case Equals():
                return bool(self._look(condition.path, scope) == condition.constant)
            case Not():
                return not self._holds(condition.condition, scope)
            case All():
                return all(self._holds(part, scope) for part in condition.conditions)
            case Either():
                return any(self._holds(part, scope) for part in condition.conditions)

    def _helper(self, name: str, scope: Scope) -> Any:
        """Return the result of a helper without arguments; cached per release if it sees the root."""
        if scope["."] is not self.scope["."]:
            return self._run(name, scope["."])
        if name not in self._texts:
            self._texts[name] = self._run(name, scope["."])
        return self._texts[name]

    def _run(self, name: str, dot: Any) -> Any:
        helper = self.frame.helpers[name]
        return helper.py(dot) if helper.py else self._of(helper.tree, {".": dot, "$": dot})

    def _called(self, node: Include | Call, scope: Scope) -> Any:
        if isinstance(node.args, str):
            return self._helper(node.name, {".": self._look(node.args, scope)})
        dot = {
            key: self._look(arg, scope) if isinstance(arg, str) else self._helper(arg.name, scope)
            for key, arg in node.args.items()
        }
        return self._run(node.name, dot)

    def _number(self, part: str | int, scope: Scope) -> int:
        return part if isinstance(part, int) else int(self._look(part, scope))

    def _text(self, node: Text, scope: Scope) -> str:
        return "".join(constant + (printed(self._source(name, scope)) if name else "") for constant, name in node.parts)

    def _of(self, node: Tree, scope: Scope) -> Any:
        match node:
            case dict():
                entries = {}
                for key, item in node.items():
                    value = item if isinstance(item, str) else self._of(item, scope)
                    if value is not _ABSENT:
                        entries[key] = value
                return entries
            case list():
                return [item for item in [self._of(each, scope) for each in node] if item is not _ABSENT]
            case str() | int() | float():
                return node
            case Value():
                value = self._look(node.path, scope)
                value = self._look(node.fallback, scope) if node.fallback and not value else value
                return printed(value) if node.is_text else _unquoted(value)
            case Text():
                return self._text(node, scope)
            case Call() | Include():
                return self._called(node, scope)
            case When():
                return self._of(node.tree, scope) if self._holds(node.condition, scope) else _ABSENT
            case Let():
                return self._of(node.tree, {**scope, node.name: self._source(node.source, scope)})
            case Block():
                value = self._look(node.path, scope)
                return (self._run(node.via, value) if node.via else value) if value else _ABSENT
            case Join():
                count = int(self._look(node.count, scope))
                return ",".join(self._text(node.item, {**scope, "$i": index}) for index in range(count))
            case Sum():
                total = sum(min(self._number(part, scope) for part in term) for term in node.terms)
                return str(total) if node.is_text else total
            case Merged():
                return _joined([part for part in [self._of(part, scope) for part in node.parts] if part is not _ABSENT])
            case File():
                text = text_of(self.frame.files[node.path])
                return base64.b64encode(self.frame.files[node.path]).decode() if text is None else text
        raise TypeError(f"unknown node {node!r}")


def _inside(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _joined(parts: list[Any]) -> Any:
    if parts and isinstance(parts[0], list):
        return [item for part in parts for item in part]
    return {key: item for part in parts for key, item in part.items()} if parts else _ABSENT


def _unquoted(value: Any) -> Any:
    """Return a scalar as YAML reads it without quotes: digits in a string become a number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else value


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif value is not _ABSENT:
        yield value


# A bare number or boolean in JSON. The chart prints 7000 and "7000" alike, so they must hash alike.
_BARE = r"([:\[,])(-?[0-9][-+.eE0-9]*|true|false)"
_TEXT_OF_INPUTS = f'regexReplaceAll {quoted(_BARE)} (toJson $inputs) "${{1}}\\"${{2}}\\""'
_LINE = 110
# Prefix of a path that only matters for whether its number is 0.
_SWITCH = "int "

# Start of a path while a tree is read: the absolute path of a value, or those of a helper's arguments by name.
_Start: TypeAlias = "str | Mapping[str, Any] | None"
_Starts: TypeAlias = Mapping[str, _Start]


def short_sha256(text: str) -> str:
    """Return the first eight hex digits of the SHA-256 hash of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def digest_helper(
    name: str, tree: Tree, frame: Frame, values: Mapping[str, Any], comment: str, live: Collection[str] = ()
) -> Helper:
    """Return the helper `name`: eight hex digits that change with every constant and every value in `tree`.

    `values` are the chart's own; a map of theirs that is read whole is listed as one path. The numbers at the paths
    `live` may change without effect, except to or from 0.
    """
    reader = Reader(frame)
    reader.read(tree, {".": "", "$": ""})
    paths = _outermost(reader.paths.difference(live), values)
    paths += sorted(_SWITCH + path for path in reader.switches if set(paths).isdisjoint([path, *_ancestors(path)]))
    literal = hashlib.sha256(msgspec.json.encode([tree, sorted(reader.constants.items())])).hexdigest()[:8]
    go = "\n".join([*_inputs(literal, paths), f"{{{{- {_TEXT_OF_INPUTS} | sha256sum | trunc 8 -}}}}"])

    def digest(root: Mapping[str, Any]) -> str:
        text = yaml_write.dumps([literal, *(_look(root, path) for path in paths)])
        return short_sha256(re.sub(_BARE, r'\1"\2"', text))

    # A tree that prints this digest depends on all of its inputs.
    return Helper(name=name, go=go, py=digest, comment=comment, reads=(f'"{literal}"', *paths), is_constant=True)


def _inputs(literal: str, paths: list[str]) -> list[str]:
    lines = [f'{{{{- $inputs := list "{literal}"']
    for path in paths:
        if path.startswith(_SWITCH):
            word = f"(ne 0 (int {go_path(path.removeprefix(_SWITCH))}))"
        else:
            word = re.sub(r"^\.Values\.global\.(\w+)$", r'((.Values.global).\1 | default "")', go_path(path))
        if len(lines[-1]) + 1 + len(word) > _LINE:
            lines.append("   ")
        lines[-1] += f" {word}"
    return [*lines[:-1], f"{lines[-1]} -}}}}"]


def _look(root: Mapping[str, Any], path: str) -> Any:
    """Return the value at `path`. Charts set no `global` themselves, so a missing one counts as empty."""
    if path.startswith(_SWITCH):
        return int(_look(root, path.removeprefix(_SWITCH)) or 0) != 0
    value = _inside(root, steps_of(path)[1])
    return "" if value is None and path.startswith(".Values.global.") else value


def _outermost(paths: set[str], values: Mapping[str, Any]) -> list[str]:
    """Return sorted `paths`; if they cover all entries of a map of `values`, the map replaces its entries."""
    covered = set(paths)

    def cover(value: Any, path: str) -> bool:
        if path in covered:
            return True
        if not isinstance(value, dict) or not value:
            return False
        parts = [cover(item, f"{path}.{key}") for key, item in value.items()]
        if all(parts):
            covered.add(path)
        return all(parts)

    for key, value in values.items():
        cover(value, f".Values.{key}")
    return sorted(path for path in covered if covered.isdisjoint(_ancestors(path)))


def _ancestors(path: str) -> Iterator[str]:
    while "." in path[1:]:
        path = path.rpartition(".")[0]
        yield path


class Reader:
    """Reads trees without values.

    `constants` are the trees or constants of the helpers that they include, and the hashes of their files. `paths` are
    those of the values, and `switches` those of which only matters if they are 0.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.constants: dict[str, Any] = {}
        self.paths: set[str] = set()
        self.switches: set[str] = set()

    def read(self, node: Tree, scope: _Starts) -> None:
        match node:
            case Value() | Block() | Join() | Sum() | Text():
                for name in names_in(node):
                    self._source(name, scope)
            case When():
                for condition in leaves_of(node.condition):
                    path = condition if isinstance(condition, str) else condition.path
                    self._add(path, scope, self.switches if isinstance(condition, NonZero) else self.paths)
            case Let():
                self._source(node.source, scope, is_read=False)
                scope = {**scope, node.name: self._absolute(node.source, scope)}
            case Include() | Call():
                self._helper(node.name, self._arguments(node.args, scope))
            case File():
                self.constants[node.path] = hashlib.sha256(self.frame.files[node.path]).hexdigest()
        for child in children(node):
            if not isinstance(child, str):
                self.read(child, scope)

    def _absolute(self, path: str, scope: _Starts) -> _Start:
        """Return the path from the root; None if it is not the path of a value."""
        head, names = steps_of(path)
        start = scope.get(head)
        if isinstance(start, dict) and names:
            start, names = start.get(names[0]), names[1:]
        return ".".join((start, *names)) if isinstance(start, str) else start

    def _add(self, path: str, scope: _Starts, found: set[str]) -> None:
        absolute = self._absolute(path, scope)
        if isinstance(absolute, str) and absolute.startswith(".Values."):
            found.add(absolute)

    def _source(self, name: str, scope: _Starts, *, is_read: bool = True) -> None:
        """Read a helper or the value at a path; without `is_read`, the path only defines a variable."""
        if name[0] not in '.$"':
            self._helper(name, scope["."])
        elif is_read:
            self._add(name, scope, self.paths)

    def _arguments(self, args: Mapping[str, str | Entries] | str, scope: _Starts) -> _Start:
        if isinstance(args, str):
            return self._absolute(args, scope)
        for arg in args.values():
            if isinstance(arg, Entries):
                self._helper(arg.name, scope["."])
        return {key: self._absolute(arg, scope) for key, arg in args.items() if isinstance(arg, str)}

    def _helper(self, name: str, dot: _Start) -> None:
        helper, inner = self.frame.helpers[name], {".": dot, "$": dot}
        if helper.tree is not None:
            self.constants[name] = helper.tree
            self.read(helper.tree, inner)
            return
        self.constants[name] = helper.reads
        for path in helper.reads:
            found = self.switches if path.startswith(_SWITCH) else self.paths
            self._add(path.removeprefix(_SWITCH), inner, found)
