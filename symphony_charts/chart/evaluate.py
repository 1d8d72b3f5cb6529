"""Return the objects of a chart from its trees and values, as Helm would print them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    steps_of,
    text_of,
)
from symphony_charts.formats import go_json

_ABSENT = object()


def printed(value: object) -> str:
    """Return the text of a string, number or boolean, as the chart prints it in a string field."""
    return value if isinstance(value, str) else go_json.dumps(value)


class Evaluator:
    """Evaluates the trees of one chart in one release.

    `root` is what Helm gives to a template: ``Values``, ``Release``, ``Chart``. The values must be complete and fit
    the chart's schema.
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
        value = scope[head]
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

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
        message = f"unknown condition {condition!r}"
        raise TypeError(message)

    def _helper(self, name: str, scope: Scope) -> Any:
        """Return what a helper without arguments gives; once per release if it sees the root."""
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
        return self._run(node.name, {key: self._argument(arg, scope) for key, arg in node.args.items()})

    def _argument(self, arg: str | Entries, scope: Scope) -> Any:
        return self._look(arg, scope) if isinstance(arg, str) else self._helper(arg.name, scope)

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
        message = f"unknown node {node!r}"
        raise TypeError(message)


def _joined(parts: list[Any]) -> Any:
    if parts and isinstance(parts[0], list):
        return [item for part in parts for item in part]
    return {key: item for part in parts for key, item in part.items()} if parts else _ABSENT


def _unquoted(value: Any) -> Any:
    """Return what YAML reads where a scalar was printed without quotes: digits in a string are a number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]+", value) else value


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif value is not _ABSENT:
        yield value
