"""Values over values, as helm merges them, and the text of `--set`.

Source: helm/helm, pkg/chart/common/util/values.go (maps merge, lists replace, null deletes) and pkg/strvals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from symphony_charts.chart.values import Values
from symphony_charts.errors import SpecError, UsageError

__all__ = ["merge", "parse_set"]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INDEX = re.compile(r"\[(\d{1,4})\]")
_MAX_INDEX = 1000


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> Values:
    """`base` with `over` on top: maps merge, all else is replaced; a null takes a default away.

    A null for what `base` does not have stays, as it does in helm. Neither is changed; parts of both are shared.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if value is None and key in result:
            del result[key]
        elif isinstance(value, Mapping) and isinstance(old, dict):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result


def parse_set(texts: Iterable[str]) -> Values:
    """The values that `--set a.b=1,c[0]=x,d={y,z}` texts say, later ones over earlier ones.

    Numbers, `true`, `false` and `null` are read as such, `{...}` is a list, and a backslash takes the meaning from
    the next character. Raises UsageError for what helm would refuse.
    """
    result: Values = {}
    for text in texts:
        for part in filter(None, _split(text, ",")):
            key, equals, value = _cut(part, "=")
            if not equals or not key:
                raise UsageError(f'--set takes KEY=VALUE, got "{text}"')
            _assign(result, _steps(key, text), _typed_or_list(value))
    return result


def _split(text: str, separator: str) -> list[str]:
    """`text` at each `separator` that stands outside of braces and after no backslash."""
    parts, start, depth, index = [], 0, 0, 0
    while index < len(text):
        if text[index] == "\\":
            index += 1
        elif text[index] == "{" and (index == 0 or text[index - 1] == "="):
            depth += 1
        elif text[index] == "}" and depth:
            depth -= 1
        elif text[index] == separator and not depth:
            parts.append(text[start:index])
            start = index + 1
        index += 1
    parts.append(text[start:])
    return parts


def _cut(text: str, separator: str) -> tuple[str, bool, str]:
    index = 0
    while index < len(text):
        if text[index] == "\\":
            index += 1
        elif text[index] == separator:
            return text[:index], True, text[index + 1 :]
        index += 1
    return text, False, ""


def _steps(key: str, text: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in _split(key, "."):
        name, bracket, _ = _cut(part, "[")
        indexes = part[len(name) :]
        if not name or (bracket and not re.fullmatch(r"(?:\[\d{1,4}\])+", indexes)):
            raise UsageError(f'--set cannot read the key of "{text}"')
        steps += [_plain(name), *(int(index) for index in _INDEX.findall(indexes))]
    if any(isinstance(step, int) and step > _MAX_INDEX for step in steps):
        raise UsageError(f'--set takes list indexes up to {_MAX_INDEX}, got "{text}"')
    return steps


def _assign(target: Values, steps: list[str | int], value: object) -> None:
    node: object = target
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        empty: object = value if following is None else ([] if isinstance(following, int) else {})
        if isinstance(node, list) and isinstance(step, int):
            node.extend([None] * (step + 1 - len(node)))
            node[step] = empty if following is None or not isinstance(node[step], type(empty)) else node[step]
            node = node[step]
        elif isinstance(node, dict) and isinstance(step, str):
            if following is None or not isinstance(node.get(step), type(empty)):
                node[step] = empty
            node = node[step]
        else:
            raise SpecError.one("--set mixes a list and a map under one key")


def _typed_or_list(text: str) -> object:
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_typed(item) for item in _split(inner, ",")]
    return _typed(text)


def _typed(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if text == "null":
        return None
    return int(text) if _INTEGER.fullmatch(text) else _plain(text)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
