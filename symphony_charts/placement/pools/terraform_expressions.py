"""Terraform expressions, as far as they can be known without Terraform: variables, locals, each, count, literals.

Whatever else stands in ``${...}`` is left as it is; a reader that needs it says so and asks for the plan's JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from symphony_charts.placement.pools.field_reader import as_text

__all__ = ["Scope", "instances"]

_EXPRESSION = re.compile(r"\$\{\s*([^{}]*?)\s*\}")
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[\s*\"?([^\]\"]+)\"?\s*\]")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean: ``var``, ``local``, ``each`` and ``count``."""

    names: Mapping[str, object] = field(default_factory=dict)

    def value(self, expression: str) -> object:
        """The value of a reference or literal, or `_MISSING`."""
        text = expression.strip().removeprefix("(").removesuffix(")").strip()
        if text in ("true", "false"):
            return text == "true"
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        if (call := re.fullmatch(r"(?:toset|tolist|tomap|tostring|tonumber)\((.*)\)", text)) is not None:
            return self.value(call[1])
        position, here = 0, _MISSING
        while position < len(text):
            step = _STEP.match(text, position)
            if step is None:
                return _MISSING
            here = _follow(self.names if position == 0 else here, step[1] or step[2])
            if here is _MISSING:
                return _MISSING
            position = step.end()
        return self.resolve(here)

    def resolve(self, data: object) -> object:
        """`data` with every expression that can be known replaced by its value."""
        if isinstance(data, str):
            return self._text(data)
        if isinstance(data, list):
            return [self.resolve(item) for item in data]
        if isinstance(data, dict):
            return {self._key(key): self.resolve(item) for key, item in data.items()}
        return data

    def _key(self, key: object) -> str:
        return as_text(self._text(str(key))) or str(key)

    def _text(self, text: str) -> object:
        whole = _EXPRESSION.fullmatch(text)
        if whole is not None:
            value = self.value(whole[1])
            return text if value is _MISSING else value

        def replace(match: re.Match[str]) -> str:
            value = self.value(match[1])
            shown = None if value is _MISSING else as_text(value)
            return match[0] if shown is None else shown

        return _EXPRESSION.sub(replace, text)


def _follow(here: object, step: str) -> object:
    if isinstance(here, Mapping):
        return here.get(step, _MISSING)
    if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
        return here[int(step)]
    return _MISSING


def instances(body: dict[str, object], scope: Scope) -> Iterator[tuple[str, dict[str, object]]]:
    """The resources that one block makes by `count` or `for_each`: (index such as ``[0]`` or ``["a"]``, attributes)."""
    count, each = scope.resolve(body.get("count")), scope.resolve(body.get("for_each"))
    plain = {key: value for key, value in body.items() if key not in ("count", "for_each")}
    if isinstance(count, int) and not isinstance(count, bool):
        for index in range(count):
            yield f"[{index}]", _resolved(plain, scope, {"count": {"index": index}})
    elif isinstance(each, dict):
        for key, value in each.items():
            yield f'["{key}"]', _resolved(plain, scope, {"each": {"key": key, "value": value}})
    elif isinstance(each, list):
        for key in each:
            yield f'["{key}"]', _resolved(plain, scope, {"each": {"key": key, "value": key}})
    else:
        yield "", _resolved(plain | ({"for_each": each} if each is not None else {}), scope, {})


def _resolved(body: dict[str, object], scope: Scope, more: Mapping[str, object]) -> dict[str, object]:
    result = Scope({**scope.names, **more}).resolve(body)
    return result if isinstance(result, dict) else {}
