"""The schema of a chart's values, and the check of values against it.

The table of fields decides the type of a value. Helm 3 and 4 read the schema as draft 7, with RE2 patterns and no
references to other files. `problems` applies the same types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache, reduce
from itertools import count
from operator import getitem
from textwrap import indent
from typing import Any

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.evaluate import printed
from symphony_charts.chart.fields import DEFINITIONS, FIELDS, TYPES, is_leaf, pattern_of
from symphony_charts.chart.tree import Block, Helper, Include, Let, Merged, Tree, When, children
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import join, nearest
from symphony_charts.formats.yaml_read import plain
from symphony_charts.formats.yaml_write import dump, quote
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.data import is_spec_path, spec_path
from symphony_charts.spec.sources import key_of
from symphony_charts.spec.variable_names import service_variable

# Maps with the same keys in all groups, which the schema defines once.
_SHARED = {"groups.*.containers.*": "container", "services.*": "service"}


class ValuesSchema:
    """The JSON Schema of the values of one chart."""

    def __init__(self, chart: BuiltChart) -> None:
        self.chart = chart
        self._definitions = dict(DEFINITIONS)

    @cached_property
    def data(self) -> dict[str, Any]:
        root = self._schema(self.chart.values, ())
        # Parent charts disable a dependency by this name; no template reads it.
        root["properties"]["enabled"] = self._leaf("enabled", ("enabled",))
        return {"$schema": "http://json-schema.org/draft-07/schema#", **root, "definitions": self._definitions}

    @cached_property
    def text(self) -> bytes:
        return json.dumps(self.data, separators=(",", ":")).encode() + b"\n"

    @cached_property
    def _reserved(self) -> dict[str, set[str]]:
        """Keys that the chart sets in maps that users may extend, by the path of the map."""
        reserved: dict[str, set[str]] = {}
        helpers = self.chart.frame.helpers
        for merged in _merged_nodes(self.chart):
            parts = list(_parts_of(merged, helpers))
            keys = {key for part in parts if isinstance(part, dict) for key in part}
            for part in parts:
                if isinstance(part, Block) and part.via == "strings":
                    reserved.setdefault(part.path.partition("Values.")[2], set()).update(keys)
        return reserved

    def _schema(self, value: Any, steps: tuple[str, ...]) -> dict[str, Any]:
        pattern = pattern_of(steps)
        if is_leaf(steps):
            return self._leaf(pattern, steps)
        if not isinstance(value, dict):
            raise TypeError(f"{pattern} is not in the table of fields")
        properties = {key: self._schema(item, (*steps, key)) for key, item in value.items()}
        required = [key for key in properties if (*steps, key) != ("global",)]
        closed = {"type": "object", "additionalProperties": False, "properties": properties, "required": required}
        if pattern == "groups.*":
            own = {key: properties[key] for key in ("initContainers", "containers") if key in properties}
            shared = {**closed, "properties": properties | {key: {} for key in own}}
            return {"allOf": [self._defined("group", shared)], "properties": own}
        if pattern in _SHARED:
            return self._defined(_SHARED[pattern], closed)
        return closed

    def _leaf(self, pattern: str, steps: tuple[str, ...]) -> dict[str, Any]:
        path = ".".join(steps)
        type_ = self._type(pattern, path)
        described = {"description": FIELDS[pattern].meaning, "allOf": [self._defined(type_, TYPES[type_].schema)]}
        reserved = self._reserved.get(path)
        return {**described, "propertyNames": {"not": {"enum": sorted(reserved)}}} if reserved else described

    def _defined(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a reference to the definition of `schema`; a name that another schema has gets a number."""
        numbered = (f"{name}{number or ''}" for number in count())
        found = next(key for key in numbered if self._definitions.setdefault(key, schema) == schema)
        return {"$ref": f"#/definitions/{found}"}

    def _type(self, pattern: str, path: str) -> str:
        """Return the type of a value. A few values have one of two types, which depends on the kind of workload."""
        draft = self.chart.draft
        if pattern == "groups.*.replicas" and draft.kind.is_single(draft.groups[path.split(".")[1]]):
            return "one"
        if pattern == "workload.priority" and isinstance(self.chart.values["workload"]["priority"], int):
            return "priority"
        return FIELDS[pattern].type

    def problems(self, values: Mapping[str, Any]) -> list[Problem]:
        # Numbers from a file keep their spelling; the validator takes plain numbers only.
        return list(dict.fromkeys(self._problems(plain(values), self.chart.values, ())))

    def _problems(self, given: Any, known: Any, steps: tuple[str, ...]) -> Iterator[Problem]:
        path = ".".join(steps)
        if is_leaf(steps):
            yield from self._misfits(given, path, pattern_of(steps))
        elif not isinstance(given, dict):
            what = f"{path} is a map, got {json.dumps(given)}"
            yield Problem(what=what, path=path, next=f"known here: {', '.join(known)}")
        else:
            for key in [key for key in known if key not in given and (*steps, key) != ("global",)]:
                missing = join(path, key)
                step = f"set {missing}.replicas to 0 to leave it out" if path == "groups" else "set it"
                yield Problem(what=f"null removes {missing}, which the chart needs", path=missing, next=step)
            unknown = given.keys() - known.keys() - ({"enabled"} if not steps else set())
            for key in [key for key in given if key not in unknown]:
                yield from self._problems(given[key], known.get(key), (*steps, key))
            yield from (self._unknown((*steps, key), given[key]) for key in sorted(unknown))

    def _misfits(self, given: Any, path: str, pattern: str) -> Iterator[Problem]:
        type_ = self._type(pattern, path)
        step, validator = f"{path} is {TYPES[type_].words}", _validator(type_)
        # Faster than `iter_errors`; most values fit.
        for error in () if validator.is_valid(given) else validator.iter_errors(given):
            place, kind = reduce(join, error.instance_path, path), error.kind
            if isinstance(kind, ValidationErrorKind.AdditionalProperties):
                what = f"{place} has no key {', '.join(sorted(kind.unexpected))}"
            elif isinstance(kind, ValidationErrorKind.PropertyNames):
                what = f"{place} has a key that is not allowed: {error.message}"
            else:
                what = f"{json.dumps(error.instance, ensure_ascii=False)} does not fit in {place}"
            yield Problem(what=what, path=place, next=step)
        for key in sorted(self._reserved.get(path, set()).intersection(given if isinstance(given, dict) else ())):
            step = "choose another key, or change it in the spec"
            yield Problem(what=f'the chart sets "{key}" itself', path=join(path, key), next=step)

    def _unknown(self, steps: tuple[str, ...], given: Any) -> Problem:
        """Return the problem of an unknown path, with a suggestion: a near value, or a path of the spec."""
        *above, name = steps
        known = reduce(getitem, above, self.chart.values)
        near = nearest(name, known)
        is_name = pattern_of(steps) == pattern_of((*above, "*"))
        whole = steps if is_name else self._deepest(steps, given)
        if whole[0] == "processes" and has_path(self.chart.values, ["groups", *whole[1:]]):
            step = f"did you mean {'.'.join(['groups', *whole[1:]])}?"
        elif not is_name and is_spec_path(self._spec_path(whole)):
            step = f"it belongs to the spec: --spec-set {self._spec_path(whole)}=VALUE"
        elif near is not None:
            step = f"did you mean {'.'.join([*above, near])}?"
        else:
            # An environment variable is most often meant.
            variable = f"-E {name}={given} sets a variable; " if name.isupper() and not above else ""
            step = f"{variable}known here: {', '.join(known)}"
        path = ".".join(whole)
        return Problem(what=f"{path} is not a value of this chart", path=path, next=step)

    def _deepest(self, steps: tuple[str, ...], given: Any) -> tuple[str, ...]:
        """Return the longest path from `steps` into `given` that exists in the spec; `steps` if there is none."""
        found = here = steps
        while isinstance(given, dict) and len(given) == 1:
            (key, given) = next(iter(given.items()))
            here = (*here, key)
            found = here if is_spec_path(self._spec_path(here)) else found
        return found

    def _spec_path(self, steps: Sequence[str]) -> str:
        return spec_path(".".join(steps), self.chart.experiment)


def check_values(schema: ValuesSchema, values: Mapping[str, Any]) -> None:
    """Raise SpecError with every problem of a release's complete `values`, as Helm would refuse them."""
    problems = schema.problems(values)
    if problems:
        raise SpecError(problems)


@cache
def _validator(type_: str) -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator({**TYPES[type_].schema, "definitions": DEFINITIONS})


def _merged_nodes(chart: BuiltChart) -> Iterator[Merged]:
    """Yield the Merged nodes of all templates and helpers."""
    nodes = [*chart.templates.values(), *(helper.tree for helper in chart.frame.helpers.values())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Merged):
            yield node
        nodes += [child for child in children(node) if not isinstance(child, str)]


def _parts_of(tree: Tree, helpers: Mapping[str, Helper]) -> Iterator[Tree]:
    inside = [helpers[tree.name].tree] if isinstance(tree, Include) else children(tree)
    if isinstance(tree, Merged | When | Let | Include):
        for part in inside:
            yield from _parts_of(part, helpers)
    else:
        yield tree


def has_path(values: object, steps: Sequence[str]) -> bool:
    """Return True if there is a value at `steps`."""
    for step in steps:
        if not isinstance(values, dict) or step not in values:
            return False
        values = values[step]
    return True


_MAX_LINE = 100
_FLOW_SYNTAX = re.compile(r"[,\[\]{}]")


def values_text(values: Mapping[str, Any]) -> str:
    """Return values.yaml with helm-docs comments; keys that repeat per group are explained once."""
    return "\n".join([*_lines(values, (), set()), ""])


def _lines(values: Mapping[str, Any], above: tuple[str, ...], explained: set[str]) -> Iterator[str]:
    pad = "  " * len(above)
    for key, value in values.items():
        pattern = pattern_of((*above, key))
        entry = FIELDS.get(pattern)
        if entry is not None and pattern not in explained:
            yield f"{pad}# -- {entry.meaning}"
            explained.add(pattern)
        if isinstance(value, dict) and value and (entry is None or entry.type == "section"):
            yield pad + _key(key)
            yield from _lines(value, (*above, key), explained)
        else:
            line = f"{pad}{_key(key)} {_flow(value)}" if value and isinstance(value, dict | list) else ""
            is_short = line and len(line) <= _MAX_LINE and "\n" not in line
            yield from [line] if is_short else indent(dump({key: value}), pad).splitlines()


def _flow(value: Any) -> str:
    """Return data in flow style; the text has a line break if the data does not fit on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_flow(key)}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    text = dump(value).removesuffix("\n")
    return quote(value) if isinstance(value, str) and _FLOW_SYNTAX.search(text) else text


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    return dump({name: {}}).removesuffix(" {}\n")


def readme_text(chart: BuiltChart) -> str:
    """Return README.md: contents, and how to install and change the chart."""
    name = chart.frame.chart
    parts = [
        f"# {name}\n\nThe experiment `{name}` as a Helm chart, written by symphony-charts.\n",
        _usage(chart),
        "## What runs\n\n" + _table(("group", "process", "runs as", "replicas", "image"), _processes(chart)),
        _services(chart),
        f"""## Templates of your own

`templates/extra-*.yaml` may use the helpers `{name}.fullname`, `.labels`, `.selectorLabels`, `.run` and `.image`.
""",
    ]
    return "\n".join(part for part in parts if part)


def _usage(chart: BuiltChart) -> str:
    name, experiment = chart.frame.chart, chart.experiment
    controller = KINDS[experiment.workload.kind].controller
    needs = f"The cluster needs {controller}.\n\n" if controller else ""
    if experiment.secrets:
        keys = ", ".join(f"`{key_of(file)}`" for file in experiment.secrets)
        needs += f"The namespace needs a Secret `<full name>-secrets`, or `secrets.name`, with the keys {keys}.\n\n"
    return f"""## Use

{needs}```sh
helm install {name} .
helm test {name}
helm upgrade {name} . --reset-then-reuse-values --cleanup-on-fail --set runKey=2
helm uninstall {name}
```

A change of image, command, replicas or `runKey` starts a new run: the old pods end, and Services lead to the new ones.
So does `helm rollback`, from the beginning of the old experiment. The chart refuses `--reuse-values` if the experiment
has changed. Comments in `values.yaml` explain the values.
"""


def _processes(chart: BuiltChart) -> Iterator[Sequence[str]]:
    kind = KINDS[chart.experiment.workload.kind]
    for name, group in sorted(chart.draft.groups.items()):
        for process, record in group.pod.processes.items():
            runs_as = kind.runs_as if chart.draft.kind.runs(group) else "Job" if group.is_ended else "StatefulSet"
            image = record.image or chart.experiment.image or ""
            yield f"`{name}`", f"`{process}`", runs_as, str(group.pod.settings.replicas), f"`{image}`"


def _services(chart: BuiltChart) -> str:
    services = sub(dict(chart.values), "services")
    rows = [
        (f"`{name}`", printed(sub(services, name)["port"]), f"`{service_variable(name, 'ADDR')}`")
        for name in sorted(services)
    ]
    return "## Services\n\n" + _table(("service", "port", "variable with its address"), rows) if rows else ""


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
