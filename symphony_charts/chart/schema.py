"""The schema of a chart's values, written from its trees, and the check of values against it.

A template decides the type of a value: what it prints as a string, a list, a map or a Kubernetes structure. The table
of fields narrows the type if the field that is printed takes less (a port, a name). Helm and `check_values` use the
same schema: draft 7, which Helm 3 and 4 read alike, with patterns of RE2 and no references out of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.digest import Reader
from symphony_charts.chart.fields import FIELDS, pattern_of
from symphony_charts.chart.schema_types import DEFINITIONS, TYPES, TYPES_OF_USE, USUAL_TYPE
from symphony_charts.chart.tree import Block, Condition, Frame, Join, Merged, NonZero, Sum, Text, Tree, Value
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.paths import join, nearest
from symphony_charts.formats.scalars import plain
from symphony_charts.spec.paths import is_spec_path, spec_path

__all__ = ["ValuesSchema", "check_values"]


@dataclass
class _Level:
    """A map that is printed from several parts: the keys that the chart sets, and the maps of users beside them."""

    keys: set[str] = field(default_factory=set)
    maps: list[str] = field(default_factory=list)


class _Uses(Reader):
    """Collects how trees use each value, and for maps of users the keys that the chart sets at the same place."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.uses: dict[str, set[str]] = {}
        self.reserved: dict[str, set[str]] = {}
        self._level: _Level | None = None
        self._use = ""
        self._read_helpers: dict[tuple[str, str], _Level] = {}

    def shape(self, node: Tree, scope: Mapping[str, Any]) -> Any:
        match node:
            case Value():
                self._use = "text" if node.is_text else "bare"
            case Block():
                self._use = node.via or "data"
            case Text():
                self._use = "text"
            case Join() | Sum():
                self._use = "bare"
            case dict() | list():
                return self._shape_inside(node, scope)
            case Merged():
                with self._level_of_parts():
                    return super().shape(node, scope)
        return super().shape(node, scope)

    def _shape_inside(self, node: Tree, scope: Mapping[str, Any]) -> Any:
        """Read the entries of a map or list, which are at a level of their own."""
        outer, self._level = self._level, None
        if outer is not None and isinstance(node, dict):
            outer.keys.update(node)
        constants = super().shape(node, scope)
        self._level = outer
        return constants

    @contextmanager
    def _level_of_parts(self) -> Iterator[_Level]:
        """Collect the keys and the maps of users that are printed at one place, and reserve the keys."""
        outer, self._level = self._level, _Level()
        yield self._level
        level, self._level = self._level, outer
        self._add(level)

    def _add(self, level: _Level) -> None:
        if self._level is not None:
            self._level.keys |= level.keys
            self._level.maps += level.maps
            return
        for path in level.maps:
            self.reserved.setdefault(path, set()).update(level.keys)

    def _condition(self, condition: Condition, scope: Mapping[str, Any]) -> Any:
        self._use = {NonZero: "bare", str: "condition"}.get(type(condition), "compared")
        return super()._condition(condition, scope)

    def _helper(self, name: str, dot: Any, scope: Mapping[str, Any] | None) -> Any:
        """Read a helper; once for each dot, since all objects have the same labels."""
        key = (name, dot) if isinstance(dot, str) else None
        if key in self._read_helpers:
            self._add(self._read_helpers[key])
            return None
        outer, self._use = self._use, name
        with self._level_of_parts() as level:
            super()._helper(name, dot, scope)
        self._use = outer
        if key is not None:
            self._read_helpers[key] = level
        return None

    def _read(self, path: str, scope: Mapping[str, Any]) -> str:
        absolute = super()._read(path, scope)
        if absolute.startswith(".Values."):
            name = absolute.removeprefix(".Values.")
            self.uses.setdefault(name, set()).add(self._use)
            if self._use == "strings" and self._level is not None:
                self._level.maps.append(name)
        return absolute


class ValuesSchema:
    """The JSON Schema of the values of one chart."""

    def __init__(self, chart: BuiltChart) -> None:
        self.chart = chart
        self._uses = _uses_of(chart)
        self._definitions = dict(DEFINITIONS)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The schema as JSON types."""
        root = self._schema(self.chart.values, ())
        # Parent charts switch a dependency off by this name; no template reads it.
        root["properties"]["enabled"] = self._leaf("enabled", ("enabled",))
        head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"Values of {self.chart.frame.chart}"}
        return {**head, **root, "definitions": self._definitions}

    @cached_property
    def text(self) -> bytes:
        """The content of values.schema.json, without blanks."""
        return json.dumps(self.data, separators=(",", ":")).encode() + b"\n"

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft7Validator:
        return jsonschema_rs.Draft7Validator(self.data)

    def _schema(self, value: Any, steps: tuple[str, ...]) -> dict[str, Any]:
        pattern = pattern_of(steps) if steps else ""
        entry = FIELDS.get(pattern)
        if entry is not None and entry.type != "section":
            return self._leaf(pattern, steps)
        if not isinstance(value, dict):
            message = f"{pattern} is not in the table of fields"
            raise TypeError(message)
        properties = {key: self._schema(item, (*steps, key)) for key, item in value.items()}
        required = [key for key in properties if (*steps, key) != ("global",)]
        closed = {"type": "object", "additionalProperties": False, "properties": properties, "required": required}
        described = {"description": entry.meaning, **closed} if entry is not None else closed
        return self._defined("container", described) if pattern == "groups.*.containers.*" else described

    def _leaf(self, pattern: str, steps: tuple[str, ...]) -> dict[str, Any]:
        """Return the schema of a value; those that many groups have are defined once."""
        path = ".".join(steps)
        type_ = self._type(pattern, path)
        described = {"description": FIELDS[pattern].meaning, **TYPES[type_].schema}
        reserved = self._uses.reserved.get(path)
        if reserved:
            keys = {"allOf": [described["propertyNames"], {"not": {"enum": sorted(reserved)}}]}
            return {**described, "propertyNames": keys}
        if "*" not in pattern or type_ == "one":
            return described
        words = pattern.replace("containers.*", "container").replace(".*", "").split(".")
        return self._defined(words[0] + "".join(word[0].upper() + word[1:] for word in words[1:]), described)

    def _defined(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        self._definitions[name] = schema
        return {"$ref": f"#/definitions/{name}"}

    def _type(self, pattern: str, path: str) -> str:
        """Return the type of a value. Raises TypeError if the type does not fit how a template prints it."""
        draft, steps = self.chart.draft, path.split(".")
        if pattern == "groups.*.replicas" and draft.kind.is_single(draft.groups[steps[1]]):
            return "one"
        uses = self._uses.uses.get(path, set())
        usual = [USUAL_TYPE[use] for use in sorted(uses, key="condition".__eq__) if use in USUAL_TYPE]
        # Some values have one of two types: a kind of workload decides.
        choices = FIELDS[pattern].type.split() or usual[:1]
        fitting = [type_ for type_ in choices if all(type_ in TYPES_OF_USE.get(use, (type_,)) for use in uses)]
        if not fitting:
            message = f"{path} is printed as {' and '.join(sorted(uses))}, which its type does not allow: {choices}"
            raise TypeError(message)
        return fitting[0]

    def reads(self) -> set[str]:
        """Return the paths of the values that the templates read."""
        return set(self._uses.uses)

    def problems(self, values: Mapping[str, Any]) -> list[Problem]:
        """Return a problem for each value that the schema refuses."""
        # Numbers from a file remember their spelling; the validator takes plain ones only.
        data = plain(values)
        if self._validator.is_valid(data):
            return []
        found = (each for error in self._validator.iter_errors(data) for each in self._explained(error, values))
        return list(dict.fromkeys(found))

    def _explained(self, error: jsonschema_rs.ValidationError, values: Mapping[str, Any]) -> Iterator[Problem]:
        steps = [str(step) for step in error.instance_path]
        path, kind = reduce(join, error.instance_path, ""), error.kind
        field_steps = next((steps[:end] for end in range(len(steps) + 1) if _is_leaf(steps[:end])), None)
        if field_steps is not None:
            yield self._misfit(error, path, field_steps)
        elif isinstance(kind, ValidationErrorKind.Required):
            missing = join(path, kind.property)
            step = f"set {missing}.replicas to 0 to leave it out" if steps == ["groups"] else "set it"
            yield Problem(what=f"null removes {missing}, which the chart needs", path=missing, next=step)
        elif isinstance(kind, ValidationErrorKind.AdditionalProperties):
            for key in sorted(kind.unexpected):
                yield self._unknown([*steps, key], values)
        else:
            what = f"{path} is a map, got {json.dumps(error.instance)}"
            yield Problem(what=what, path=path, next=f"known here: {', '.join(_at(self.chart.values, steps))}")

    def _misfit(self, error: jsonschema_rs.ValidationError, path: str, field_steps: Sequence[str]) -> Problem:
        """Return the problem of something that the type of the value at `field_steps` does not allow."""
        whole, instance = ".".join(field_steps), error.instance
        step = f"{whole} is {TYPES[self._type(pattern_of(field_steps), whole)].words}"
        if isinstance(error.kind, ValidationErrorKind.AdditionalProperties):
            keys = ", ".join(sorted(error.kind.unexpected))
            return Problem(what=f"{path} has no key {keys}", path=path, next=step)
        if isinstance(error.kind, ValidationErrorKind.PropertyNames) and isinstance(instance, dict):
            for key in sorted(self._uses.reserved.get(path, set()).intersection(instance)):
                what = f'the chart sets "{key}" itself'
                return Problem(what=what, path=join(path, key), next="choose another key, or change it in the spec")
            return Problem(what=f"{path} has a key that is not allowed: {error.message}", path=path, next=step)
        what = f"{json.dumps(instance, ensure_ascii=False)} does not fit in {path}"
        return Problem(what=what, path=path, next=step)

    def _unknown(self, steps: list[str], values: Mapping[str, Any]) -> Problem:
        """Return the problem of a path that is not a value, with the value or the path of the spec that is meant."""
        *above, name = steps
        known = _at(self.chart.values, above)
        near = nearest(name, known)
        is_name = pattern_of(steps) == pattern_of([*above, "*"])
        whole = steps if is_name else self._deepest(steps, _at(values, steps))
        if whole[0] == "processes" and _has(self.chart.values, ["groups", *whole[1:]]):
            step = f"did you mean {'.'.join(['groups', *whole[1:]])}?"
        elif not is_name and is_spec_path(self._spec_path(whole)):
            step = f"it belongs to the spec: --spec-set {self._spec_path(whole)}=VALUE"
        elif near is not None:
            step = f"did you mean {'.'.join([*above, near])}?"
        else:
            step = f"known here: {', '.join(known)}"
        path = ".".join(whole)
        return Problem(what=f"{path} is not a value of this chart", path=path, next=step)

    def _deepest(self, steps: list[str], given: Any) -> list[str]:
        """Return the longest path from `steps` into `given` that the spec has; `steps` if it has none."""
        found, here = steps, list(steps)
        while isinstance(given, dict) and len(given) == 1:
            (key, given) = next(iter(given.items()))
            here = [*here, key]
            found = here if is_spec_path(self._spec_path(here)) else found
        return found

    def _spec_path(self, steps: Sequence[str]) -> str:
        return spec_path(".".join(steps), self.chart.experiment)


def check_values(schema: ValuesSchema, values: Mapping[str, Any]) -> None:
    """Raise SpecError with every problem of the complete `values` of a release, as Helm would refuse them."""
    problems = schema.problems(values)
    if problems:
        raise SpecError(problems)


def _uses_of(chart: BuiltChart) -> _Uses:
    uses = _Uses(chart.frame)
    for tree in chart.templates.values():
        uses.shape(tree, {".": "", "$": ""})
    return uses


def _is_leaf(steps: Sequence[str]) -> bool:
    entry = FIELDS.get(pattern_of(steps)) if steps else None
    return entry is not None and entry.type != "section"


def _has(values: Any, steps: Sequence[str]) -> bool:
    for step in steps:
        if not isinstance(values, dict) or step not in values:
            return False
        values = values[step]
    return True


def _at(values: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        values = values[step]
    return values
