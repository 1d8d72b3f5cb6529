"""Random values from a JSON Schema, and the parts of the schema that a value reaches.

`Drawing` knows nothing of experiments: `words` gives possible texts and numbers by place. A place is the record and the
field in it, as ``Process.cwd``; ``*`` stands for the items of a list and the values of a map, ``?`` for the keys of a
map. The entry of a list also applies to its items.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import jsonschema_rs

Schema: TypeAlias = Mapping[str, Any]
Words: TypeAlias = "Mapping[str, Sequence[Any] | Callable[[], Sequence[Any]]]"
"""Texts and numbers by place; after a place with ``!``, complete values."""

# fmt: off
ODD_TEXTS = [
    "x", "", "on", "n", "null", "1e3", "0o17", "1_000", "12:30:45", "2020-01-01", "~", "{{ .Values.x }}", "[[ x ]]",
    "line\nbreak", "\n\n  two before, one after\n", " spaces ", "a: b # c", "- item", "\"q\" 'q'", "é世\U0001f600",
    "one\u2028two\nthree", "\u2029#\n\ufeff", "$(HOME) $$(X) $HOME", "<>&", "\\n \\", "tab\there", "9007199254740993",
]
# fmt: on
_USUAL: dict[str, list[Any]] = {"integer": [0, 1, 2, 3, 7, 30], "number": [0, 1, 0.5, 2.25], "boolean": [True, False]}
_USUAL |= {"null": [None], "string": ODD_TEXTS}
_TYPES: dict[str, Any] = {"integer": int, "number": (int, float), "boolean": bool, "null": type(None), "string": str}
_TYPES |= {"array": list, "object": dict}
# By identity of the schemas, which each entry also holds so that their ids stay unique.
_VALIDATORS: dict[tuple[int, int], Any] = {}
_KEYS = ["a", "b", "n", "on"]


class Drawing:
    """Draws values of `schema`; `share` gives the probability of optional fields, by place or record, else `usual`.

    `apart` lists the fields of a record of which one is chosen, beside those that the schema itself separates. Values
    on the way to a `wanted` one of `parts_of` are drawn more often.
    """

    def __init__(
        self,
        schema: Schema,
        chance: random.Random,
        words: Words,
        *,
        apart: Mapping[str, Sequence[Sequence[str]]] | None = None,
        share: Mapping[str, float] | None = None,
        usual: float = 0.3,
        wanted: AbstractSet[str] = frozenset(),
    ) -> None:
        self._root = schema
        self._chance = chance
        self._words = words
        self._apart = apart or {}
        self._share = share or {}
        self._usual = usual
        self._wanted = wanted
        self._below: dict[tuple[int, str], set[str]] = {}

    def value(self, schema: Schema, at: str = "") -> Any:
        """Return a value that `schema`, found at the place `at`, accepts."""
        if f"{at}!" in self._words:
            return self._chance.choice(self._said(f"{at}!"))
        if "$ref" in schema:
            found, name = _resolved(self._root, schema)
            return self.value(found, name or at)
        if "allOf" in schema:
            return self.value(self.resolved(schema), at)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            wanted = [word for word in schema["enum"] if f"{at}={word}" in self._wanted]
            return self._chance.choice(wanted if wanted and self._chance.random() < 0.5 else schema["enum"])
        if "anyOf" in schema:
            weights = [_weight(branch) * (9 if self._leads(branch, at) else 1) for branch in schema["anyOf"]]
            return self.value(self._chance.choices(schema["anyOf"], weights)[0], at)
        kinds = schema.get("type", ["object", "string", "integer", "boolean"])
        if not isinstance(kinds, str):
            kinds = [kind for kind in kinds if any(_is(word, kind) for word in self._said(at))] or kinds
        kind = kinds if isinstance(kinds, str) else self._chance.choice(kinds)
        if kind == "object":
            return self._object(schema, at)
        if kind == "array":
            return self._array(schema, at)
        return self._scalar(schema, kind, at)

    def _scalar(self, schema: Schema, kind: str, at: str) -> Any:
        said = [word for word in self._said(at) if _is(word, kind)]
        if said:
            return self._chance.choice(said)
        if "maximum" in schema:
            return self._chance.randint(schema.get("minimum", 0), schema["maximum"])
        return self._chance.choice(_USUAL[kind])

    def _said(self, at: str) -> list[Any]:
        words = self._words.get(at)
        if words is None and at.endswith(".*"):
            words = self._words.get(at.removesuffix(".*"))
        return list(words() if callable(words) else words or ())

    def resolved(self, schema: Schema) -> Schema:
        """Return the schema in place of its reference, with the parts of `allOf` in it."""
        while "$ref" in schema:
            schema = _resolved(self._root, schema)[0]
        parts = [*map(self.resolved, schema.get("allOf", ())), schema]
        whole = {key: value for part in parts for key, value in part.items() if key != "allOf"}
        properties = {key: value for part in parts for key, value in part.get("properties", {}).items()}
        return {**whole, "properties": properties} if properties else whole

    def _object(self, schema: Schema, at: str) -> dict[str, Any]:
        if not schema.keys() & {"properties", "additionalProperties"}:
            return {name: self._anything(2) for name in self._chance.sample(_KEYS, self._chance.randint(0, 2))}
        named = schema.get("patternProperties", {})
        fields: Mapping[str, Schema] = {
            **{name: inner for pattern, inner in named.items() for name in pattern.strip("^()$").split("|")},
            **schema.get("properties", {}),
        }
        present = list(schema.get("required", ()))
        branches = self._apart.get(at) or [branch["required"] for branch in schema.get("oneOf", ())]
        if branches:
            leading = [names for names in branches if any(self._leads(fields[name], f"{at}.{name}") for name in names)]
            present = list(self._chance.choice(leading or branches))
            others = {name for branch in branches for name in branch if name not in present}
            fields = {name: field for name, field in fields.items() if name not in others}
        if schema.get("maxProperties") == 1:
            leading = [name for name, inner in fields.items() if self._leads(inner, f"{at}.{name}")]
            present = [self._chance.choice(leading or list(fields))]
        else:
            present += [
                name for name in fields if name not in present and self._chance.random() < self._of(at, name, fields)
            ]
        made = {name: self.value(fields[name], f"{at}.{name}") for name in fields if name in present}
        inner = schema.get("additionalProperties")
        if isinstance(inner, Mapping):
            names = self._said(f"{at}.?") if f"{at}.?" in self._words else _KEYS
            for name in self._chance.sample(names, self._chance.randint(0, min(2, len(names)))):
                made[name] = self.value(inner, f"{at}.*")
        return made

    def _anything(self, depth: int) -> Any:
        kind = self._chance.choice(["string", "integer", "number", "boolean", *["map", "list"] * (depth > 0)])
        if kind == "map":
            return {name: self._anything(depth - 1) for name in self._chance.sample(_KEYS, 2)}
        if kind == "list":
            return [self._anything(depth - 1) for _ in range(self._chance.randint(0, 2))]
        return self._chance.choice(_USUAL[kind])

    def _of(self, at: str, name: str, fields: Mapping[str, Schema]) -> float:
        usual = self._share.get(f"{at}.{name}", self._share.get(at, self._usual))
        return max(usual, 0.6) if self._leads(fields[name], f"{at}.{name}") else usual

    def _leads(self, schema: Schema, at: str) -> bool:
        """Return True if a wanted part is at a place or below it."""
        if not self._wanted:
            return False
        key = (id(schema), at)
        if key not in self._below:
            self._below[key] = {at, f"{at}|{_form(schema)}", *_parts_below(self._root, schema, at)}
        return not self._wanted.isdisjoint(self._below[key])

    def _array(self, schema: Schema, at: str) -> list[Any]:
        if "prefixItems" in schema:
            return [self.value(item, f"{at}.*") for item in schema["prefixItems"]]
        return [self.value(schema["items"], f"{at}.*") for _ in range(self._chance.randint(0, 2))]


def parts_of(root: Schema) -> set[str]:
    """Return every field, enumeration value and union form that values of `root` can have."""
    return _parts_below(root, root, "")


def _parts_below(root: Schema, start: Schema, place: str) -> set[str]:
    found: set[str] = set()

    def walk(schema: Schema, at: str) -> None:
        if "$ref" in schema:
            schema, name = _resolved(root, schema)
            at = name or at
            if f"{at}:" in found:
                return
            found.add(f"{at}:")
        found.update(f"{at}={value}" for value in schema.get("enum", ()))
        for branch in schema.get("anyOf", ()):
            found.add(f"{at}|{_form(branch)}")
            walk(branch, at)
        for name, field in schema.get("properties", {}).items():
            found.add(f"{at}.{name}")
            walk(field, f"{at}.{name}")
        for inner in ("additionalProperties", "items"):
            if isinstance(schema.get(inner), Mapping):
                walk(schema[inner], f"{at}.*")

    walk(start, place)
    return {part for part in found if not part.endswith((":", "|null"))}


def reached_by(root: Schema, value: object) -> set[str]:
    """Return those of `parts_of` that the value has."""
    return set(_reached(root, root, value, ""))


def _reached(root: Schema, schema: Schema, value: object, at: str) -> Iterator[str]:
    if "$ref" in schema:
        schema, name = _resolved(root, schema)
        at = name or at
    if "enum" in schema:
        yield f"{at}={value}"
    for branch in schema.get("anyOf", ()):
        if _takes(root, branch, value):
            yield f"{at}|{_form(branch)}"
            yield from _reached(root, branch, value, at)
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        for name, inner in value.items():
            if name in fields:
                yield f"{at}.{name}"
                yield from _reached(root, fields[name], inner, f"{at}.{name}")
            elif isinstance(schema.get("additionalProperties"), Mapping):
                yield from _reached(root, schema["additionalProperties"], inner, f"{at}.*")
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for inner in value:
            yield from _reached(root, schema["items"], inner, f"{at}.*")


def _resolved(root: Schema, schema: Schema) -> tuple[Schema, str]:
    """Return the target of a reference, and the record's name if it is one."""
    kind, _, name = schema["$ref"].removeprefix("#/").partition("/")
    return root[kind][name], name if name[0].isupper() else ""


def _weight(schema: Schema) -> int:
    """Return the relative frequency of a union's form, which grows with the number of its parts."""
    return 1 if schema.get("type") == "null" else 2 + len(schema.get("properties", ()))


def _is(word: object, kind: str) -> bool:
    """Return True if a word is of a JSON type; Python treats a boolean as a number."""
    return isinstance(word, _TYPES[kind]) and not (isinstance(word, bool) and kind in ("integer", "number"))


def _form(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_form(branch) for branch in schema["anyOf"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "enum")
    items = schema.get("items")
    return f"{kind} of {_form(items)}" if isinstance(items, Mapping) else str(kind)


def _takes(root: Schema, schema: Schema, value: object) -> bool:
    key = (id(root), id(schema))
    if key not in _VALIDATORS:
        definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        _VALIDATORS[key] = (root, schema, jsonschema_rs.validator_for({**schema, **definitions}))
    return bool(_VALIDATORS[key][2].is_valid(value))
