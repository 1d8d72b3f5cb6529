"""Read loose data by type. Record every fault with its path and continue with the next field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, TypeAlias, TypeVar

from msgspec import NODEFAULT, inspect

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import hint, join, snake

_Value = TypeVar("_Value")
# (key, path, keys of the map) -> the place where an unknown key belongs, empty if there is none.
_Advice: TypeAlias = "Callable[[str, str, list[str]], str]"
# (record, field) -> the record that decodes a field of raw data, None for all other fields.
_Inner: TypeAlias = "Callable[[type, str], type | None]"

_TEXT = frozenset({str})
_EMPTY: tuple[object, ...] = (None, "", [], {})
# Compose files publish HOST:CONTAINER ports.
_PORTS = re.compile(r"\d+:(\d+)", re.ASCII)


# --- values and what is wrong with them ------------------------------------------------------------------------------


def as_text(value: object) -> str | None:
    """Return a scalar as Kubernetes would show it (True -> ``true``, 8 -> ``8``), or None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, (str, int, float)) else None


def as_integer(value: object) -> int | None:
    """Return a whole number, JSON's int64-as-text included, or None for anything else."""
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str) and len(value) < 20 and re.fullmatch(r"\s*-?\d+\s*", value, re.ASCII):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def show(value: object) -> str:
    """Return a short form of `value` for an error message."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, int) and abs(value) > 10**60:
        return "a very large number"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return f'"{text}"' if isinstance(value, str) else text


def mismatch(value: object, expected: str, path: str) -> Problem:
    step = f"write {expected}"
    if expected == "a map":
        step = {
            type(None): "indent its keys deeper than its name, or drop it",
            str: "write `KEY: VALUE` lines below",
        }.get(type(value), step)
        if isinstance(value, (list, tuple)):
            step = f"write KEY: VALUE, without dashes{_as_map(value)}"
    elif value is None:
        step = "give it a value, or drop the key"
    elif expected == "text" and isinstance(value, (int, float)):
        step = f'write "{value}" in quotes'
    elif expected == "a whole number" and isinstance(value, str):
        if ports := _PORTS.fullmatch(value):
            step = f"write only the port on which it listens: {ports[1]}"
        elif as_integer(value) is not None:
            step = f"write {value.strip()} without quotes"
    return Problem(f"expected {expected}, got {show(value)}", path, step)


def _as_map(items: Sequence[object]) -> str:
    """Return a hint with the map entry to write in place of a `NAME=value` or `{name, value}` item of a list."""
    first = items[0] if items else None
    if isinstance(first, str) and "=" in first:
        name, _, value = first.partition("=")
        return f', as in `{name}: "{value}"`'
    if isinstance(first, dict) and isinstance(first.get("name"), str):
        value = f' "{first["value"]}"' if isinstance(first.get("value"), (str, int, float)) else ""
        return f", as in `{first['name']}:{value}`"
    return ""


# --- records ---------------------------------------------------------------------------------------------------------


def record_faults(
    data: object,
    record: type,
    advice: _Advice = lambda _key, _path, _keys: "",
    inner: _Inner = lambda _record, _field: None,
) -> Iterator[Problem]:
    """Yield all type faults of `data` against `record`; msgspec alone stops at the first.

    `advice` returns where an unknown key belongs, `inner` the record of a field that holds raw data.
    """
    return _Check(advice, inner).faults(data, _type_of(record), "")


@cache
def field_names(record: type) -> frozenset[str]:
    """Return the names of the fields of `record`; empty if it is not a record."""
    kind = _type_of(record)
    return frozenset(each.encode_name for each in kind.fields) if isinstance(kind, inspect.StructType) else frozenset()


@cache
def _type_of(record: type) -> inspect.Type:
    return inspect.type_info(record)


_SCALARS: dict[type[inspect.Type], tuple[str, tuple[type, ...]]] = {
    inspect.StrType: ("text", (str,)),
    inspect.IntType: ("a whole number", (int,)),
    inspect.FloatType: ("a number", (int, float)),
    inspect.BoolType: ("true or false", (bool,)),
}


# Values, and the type that a union has for them besides scalars.
_SHAPES: tuple[tuple[type | tuple[type, ...], type[inspect.Type]], ...] = (
    (dict, inspect.StructType),
    ((list, tuple), inspect.ListType),
    (str, inspect.LiteralType),
)


@dataclass(frozen=True, slots=True)
class _Check:
    advice: _Advice
    inner: _Inner

    def faults(self, value: object, kind: inspect.Type, path: str) -> Iterator[Problem]:
        match kind:
            case inspect.UnionType():
                yield from self._union(value, kind, path)
            case inspect.StructType() | inspect.DictType():
                if not isinstance(value, dict):
                    yield mismatch(value, "a map", path)
                elif isinstance(kind, inspect.StructType):
                    yield from self._struct(value, kind, path)
                else:
                    yield from self._dict(value, kind, path)
            case inspect.ListType():
                if not isinstance(value, (list, tuple)):
                    yield mismatch(value, "a list", path)
                    return
                for index, item in enumerate(value):
                    yield from self.faults(item, kind.item_type, join(path, index))
            case inspect.TupleType():
                if not isinstance(value, (list, tuple)) or len(value) != len(kind.item_types):
                    yield mismatch(value, f"a list of {len(kind.item_types)} values", path)
                    return
                for index, (item, item_kind) in enumerate(zip(value, kind.item_types, strict=True)):
                    yield from self.faults(item, item_kind, join(path, index))
            case inspect.LiteralType():
                if value not in kind.values:
                    choices = [str(choice) for choice in kind.values]
                    step = _meant(value, choices) or "write one of them"
                    yield Problem(f"{show(value)} is none of: {', '.join(choices)}", path, step)
            case _:
                if not _is_scalar(value, kind):
                    yield mismatch(value, _expected(kind), path)

    def _struct(self, value: dict[object, object], kind: inspect.StructType, path: str) -> Iterator[Problem]:
        fields = {each.encode_name: each for each in kind.fields}
        keys = [*([kind.tag_field] if kind.tag_field else []), *fields]
        for key, item in value.items():
            if key in fields:
                record = self.inner(kind.cls, str(key))
                kind_of_item = _type_of(record) if record is not None else fields[str(key)].type
                yield from self.faults(item, kind_of_item, join(path, str(key)))
            elif key != kind.tag_field:
                yield self._unknown(str(key), keys, path)
        for name, each in fields.items():
            if each.required and name not in value and each.default is NODEFAULT:
                yield Problem(f'"{name}" is missing', path or name, f"add `{name}:` there")

    def _unknown(self, key: str, keys: list[str], path: str) -> Problem:
        word = snake(key)
        # A slip rarely changes the first letter: "worker" does not mean "order".
        near = hint(word, [name for name in keys if name[:1] == word[:1]])
        known = f"known keys: {', '.join(sorted(keys))}" if keys else "drop it"
        return Problem(f'unknown key "{key}"', join(path, key), self.advice(key, path, keys) or near or known)

    def _union(self, value: object, kind: inspect.UnionType, path: str) -> Iterator[Problem]:
        choices = [choice for choice in kind.types if not isinstance(choice, inspect.NoneType)]
        if value is None and len(choices) < len(kind.types):
            return
        structs = [choice for choice in choices if isinstance(choice, inspect.StructType)]
        if isinstance(value, dict) and len(structs) > 1:
            yield from self._tagged(value, structs, path)
            return
        wanted = next((kind for types, kind in _SHAPES if isinstance(value, types)), ())
        fitting = choices if len(choices) == 1 else [each for each in choices if isinstance(each, wanted)]
        if fitting:
            yield from self.faults(value, fitting[0], path)
        elif not any(_is_scalar(value, choice) for choice in choices):
            yield mismatch(value, " or ".join(dict.fromkeys(map(_expected, choices))), path)

    def _tagged(self, value: dict[str, object], structs: list[inspect.StructType], path: str) -> Iterator[Problem]:
        by_tag = {str(struct.tag): struct for struct in structs}
        tag_field = structs[0].tag_field or "type"
        tag = value.get(tag_field)
        if isinstance(tag, str) and tag in by_tag:
            yield from self.faults(value, by_tag[tag], path)
            return
        step = _meant(tag, by_tag) or f"`{tag_field}` is one of: {', '.join(sorted(by_tag))}"
        if tag_field in value:
            what, path = f"{show(tag)} is not a known {tag_field}", join(path, tag_field)
        else:
            what = f'"{tag_field}" is missing'
        yield Problem(what, path, step)

    def _dict(self, value: dict[object, object], kind: inspect.DictType, path: str) -> Iterator[Problem]:
        record = kind.value_type
        names = field_names(record.cls) if isinstance(record, inspect.StructType) else frozenset()
        for key, item in value.items():
            if not isinstance(key, str):
                yield Problem(f"the key {key!r} is not text", path, f'write "{key}" in quotes')
            elif key in names and not isinstance(item, dict):
                step = "indent it deeper, below the name that it belongs to"
                yield Problem(f"expected a name, got the key `{key}`", join(path, key), step)
            else:
                yield from self.faults(item, record, join(path, key))


def _meant(word: object, choices: Sequence[str] | Mapping[str, object]) -> str:
    return hint(word, choices) if isinstance(word, str) else ""


def _is_scalar(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.CustomType):
        return isinstance(value, kind.cls)
    _, types = _SCALARS.get(type(kind), ("", ()))
    is_small = not isinstance(value, int) or not isinstance(kind, inspect.IntType) or abs(value) < 2**63
    is_kind = isinstance(value, types) and is_small and isinstance(value, bool) == isinstance(kind, inspect.BoolType)
    return is_kind or isinstance(kind, inspect.AnyType)


def _expected(kind: inspect.Type) -> str:
    match kind:
        case inspect.ListType():
            return "a list"
        case inspect.LiteralType():
            return " or ".join(str(choice) for choice in kind.values)
        case inspect.DictType() | inspect.StructType():
            return "a map"
        case _:
            return _SCALARS.get(type(kind), ("another type", ()))[0]


# --- maps of unknown shape -------------------------------------------------------------------------------------------


class Reader:
    """One map of loose data at `path`. A value of the wrong type is a fault and reads as None."""

    __slots__ = ()
    flags: ClassVar[Mapping[str, bool]] = {"true": True, "false": False}
    path: str

    def value(self, key: str) -> object:
        """Return the value of `key`; None if it is absent."""
        raise NotImplementedError

    def fault(self, what: str, key: str = "", next: str = "") -> None:
        """Record a fault of `key`, or of the whole map."""
        raise NotImplementedError

    def at(self, key: str) -> str:
        """Return the path of `key`; that of the whole map if it is empty."""
        return join(self.path, key) if key else self.path

    def mismatch(self, key: str, value: object, expected: str) -> None:
        """Record that `value` of `key` is not of the `expected` type."""
        problem = mismatch(value, expected, "")
        self.fault(problem.what, key, problem.next)

    def read(self, key: str, expected: str, convert: Callable[[object], _Value | None]) -> _Value | None:
        """Return the value of `key` as `convert` returns it; record a fault if that is None."""
        value = self.value(key)
        result = convert(value) if value is not None else None
        if result is None and value is not None:
            self.mismatch(key, value, expected)
        return result

    def boolean(self, key: str) -> bool | None:
        """Return a boolean, also from one of the texts in `flags`."""
        return self.read(key, "true or false", self._as_boolean)

    def items(self, key: str) -> list[object]:
        """Return the list at `key`; empty if it is absent."""
        return self.read(key, "a list", lambda value: value if isinstance(value, list) else None) or []

    def _as_boolean(self, value: object) -> bool | None:
        if isinstance(value, str):
            return self.flags.get(value.lower())
        return value if isinstance(value, bool) else None


@dataclass(slots=True)
class Faults:
    """The faults of one file. `line_of` finds the line of a path; it is slow, so only errors use it.

    If another program replaces ``${...}`` in the file, `unresolved` is the next step for one that is left.
    """

    file: str = ""
    line_of: Callable[[str], int | None] = lambda _path: None
    unresolved: str = ""
    problems: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, path: str, next: str = "") -> None:
        self.problems.append((what, path, next))

    def is_unresolved(self, value: object, path: str) -> bool:
        """Return True, and record a fault, if `value` is a placeholder that another program should have replaced."""
        if not self.unresolved or not isinstance(value, str) or "${" not in value:
            return False
        self.add(f"cannot evaluate {value}", path, self.unresolved)
        return True

    def position(self, path: str) -> str:
        """Return ``file:line, path``; without the line if it is unknown."""
        line = self.line_of(path)
        head = f"{self.file or 'input'}:{line}" if line is not None else self.file
        return ", ".join(part for part in (head, path) if part)

    def source(self, path: str) -> str:
        """Return ``file, path`` of a valid value; skips the slow search for its line."""
        return ", ".join(part for part in (self.file, path) if part)

    def check(self) -> None:
        """Raise SpecError with all recorded faults, each with file, line and path."""
        if self.problems:
            raise SpecError(Problem(what, self.position(path), step) for what, path, step in self.problems)


# Not frozen: that would double the cost of creation, and a plan creates twenty per pod.
@dataclass(slots=True, eq=False)
class Fields(Reader):
    """One map of the input. The getters return their empty value for an absent or null field.

    If a getter takes several keys, the first one that is present counts.
    """

    data: dict[str, object]
    path: str
    faults: Faults

    @classmethod
    def of(cls, value: object, path: str, faults: Faults) -> Fields:
        """Return `value`, or the single item of a list, as a map; anything else is a fault and an empty map."""
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            # Rendered charts and JSON have only text keys; avoid the copy, which is the largest cost here.
            data = value if _TEXT.issuperset(map(type, value)) else {str(key): item for key, item in value.items()}
            return cls(data, path, faults)
        fields = cls({}, path, faults)
        if value is not None and value != []:
            fields.mismatch("", value, "a map")
        return fields

    def value(self, key: str) -> object:
        return self.data.get(key)

    def fault(self, what: str, key: str = "", next: str = "") -> None:
        self.faults.add(what, self.at(key), next)

    def mismatch(self, key: str, value: object, expected: str) -> None:
        if not self.faults.is_unresolved(value, self.at(key)):
            Reader.mismatch(self, key, value, expected)

    def has(self, key: str) -> bool:
        """Return True if `key` is present and not null, an empty list, an empty map or empty text."""
        value = self.data.get(key)
        return bool(value) or value == 0

    def text(self, *keys: str, required: bool = False) -> str:
        """Return text; numbers and booleans become text."""
        key = self._first(keys)
        text = self.read(key, "text", as_text) if key else None
        if not key and required:
            self.fault(f'"{keys[0]}" is missing')
        return "" if text is None or self.faults.is_unresolved(text, self.at(key)) else text

    def number(self, *keys: str, minimum: int = 0) -> int | None:
        """Return an integer; accepts JSON's int64 as text."""
        key = self._first(keys, (None, ""))
        value = self.read(key, "a whole number", as_integer) if key else None
        if value is not None and value < minimum:
            self.fault(f"{key} is {value}, below {minimum}", key)
            return None
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean, also from the texts ``true`` and ``false``."""
        return bool(self.boolean(key))

    def block(self, *keys: str) -> Fields:
        """Return a map, or the single item of a list."""
        key = self._first(keys, _EMPTY)
        return Fields.of(self.data[key] if key else None, self.at(key or keys[0]), self.faults)

    def blocks(self, key: str) -> Iterator[Fields]:
        """Yield the maps in a list; a map alone counts as a list of one."""
        value = self.data.get(key)
        if isinstance(value, dict):
            yield Fields.of(value, self.at(key), self.faults)
        elif value != "":
            for index, item in enumerate(self.items(key)):
                yield Fields.of(item, f"{self.at(key)}[{index}]", self.faults)

    def texts(self, key: str) -> list[str]:
        texts = []
        for index, item in enumerate(self.items(key)):
            text = as_text(item)
            if text is None:
                self.mismatch(f"{key}[{index}]", item, "text")
            else:
                self.faults.is_unresolved(text, self.at(key))
                texts.append(text)
        return texts

    def mapping(self, key: str) -> dict[str, str]:
        """Return a map of texts; numbers and booleans become text as in a node label."""
        if not self.has(key):
            return {}
        fields, result = self.block(key), {}
        for name, value in fields.data.items():
            text = as_text(value)
            if text is None:
                fields.mismatch(name, value, "text")
            else:
                result[name] = text
        return result

    def _first(self, keys: tuple[str, ...], skipped: tuple[object, ...] = (None,)) -> str:
        for key in keys:
            if self.data.get(key) not in skipped:
                return key
        return ""
