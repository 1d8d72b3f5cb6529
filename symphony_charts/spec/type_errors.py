"""Every type fault of data against the records is found, with its path; msgspec alone stops at the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import NODEFAULT, inspect

from symphony_charts.errors import Problem
from symphony_charts.formats.paths import join, nearest
from symphony_charts.spec.added_kinds import settings_record
from symphony_charts.spec.model import Experiment, Process

__all__ = ["experiment_faults", "record_faults"]

# What people write out of habit, from Symphony, compose files and Kubernetes, and the key meant.
_HABITS = {
    "container_image": "image",
    "containers": "processes",
    "depends_on": "after",
    "entrypoint": "command",
    "environment": "env",
    "env_from": "env",
    "group": "groups",
    "ports": "exposes",
    "process": "processes",
    "process_groups": "groups",
    "readiness_probe": "ready",
    "resources": "requests",
    "restart_policy": "restart",
    "service_account_name": "service_account",
    "start_dir": "cwd",
    "termination_grace_period_seconds": "grace_period",
    "volume_mounts": "mounts",
    "working_dir": "cwd",
}
# A port of the host before one of the container, as compose files publish it.
_PORTS = re.compile(r"\d+:(\d+)", re.ASCII)


def experiment_faults(data: object) -> Iterator[Problem]:
    """All faults of `data` (shorthand already expanded) as the fields of an Experiment."""
    return _faults(data, _type_of(Experiment), "")


def record_faults(data: object, record: type) -> Iterator[Problem]:
    """All faults of `data` as the fields of `record`."""
    return _faults(data, _type_of(record), "")


def _unknown_key(key: object, keys: list[str], path: str) -> Problem:
    """The fault of a key that nothing reads, with the key that was probably meant, or where it belongs."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(key)).strip("_")
    snake = snake.replace("-", "_")
    habit = _HABITS.get(snake)
    meant = habit if habit in keys else nearest(snake, keys)
    if key == "resources" and "requests" in keys:
        next_step = "write `requests` and `limits` right here, without `resources` around them"
    elif path and "restart" in keys and key in _names_of(Experiment):
        next_step = f"`{key}` belongs to the experiment: write it at the left margin"
    elif not path and "processes" in keys and key in _names_of(Process):
        next_step = f"`{key}` belongs to a process: indent it below its name, below `processes:`"
    elif not path and "processes" in keys and key == "services":
        next_step = "a service is what a process `binds`; a compose file comes over by symph import compose FILE"
    elif meant:
        next_step = f'did you mean "{meant}"?'
    else:
        next_step = f"known keys: {', '.join(sorted(keys))}" if keys else "drop it"
    return Problem(what=f'unknown key "{key}"', path=join(path, str(key)), next=next_step)


@cache
def _names_of(record: type) -> frozenset[str]:
    kind = _type_of(record)
    return (
        frozenset(field.encode_name for field in kind.fields) if isinstance(kind, inspect.StructType) else frozenset()
    )


@cache
def _type_of(record: type) -> inspect.Type:
    return inspect.type_info(record)


def _faults(value: object, kind: inspect.Type, path: str) -> Iterator[Problem]:
    match kind:
        case inspect.StructType():
            yield from _struct_faults(value, kind, path)
        case inspect.UnionType():
            yield from _union_faults(value, kind, path)
        case inspect.DictType():
            yield from _dict_faults(value, kind, path)
        case inspect.ListType():
            yield from _list_faults(value, kind, path)
        case inspect.TupleType():
            if not isinstance(value, (list, tuple)) or len(value) != len(kind.item_types):
                yield _mismatch(value, f"a list of {len(kind.item_types)} values", path)
            else:
                for index, (item, item_kind) in enumerate(zip(value, kind.item_types, strict=True)):
                    yield from _faults(item, item_kind, join(path, index))
        case inspect.LiteralType():
            if value not in kind.values:
                choices = [str(choice) for choice in kind.values]
                meant = nearest(value, choices) if isinstance(value, str) else None
                next_step = f'did you mean "{meant}"?' if meant else "write one of them"
                yield Problem(what=f"{_show(value)} is none of: {', '.join(choices)}", path=path, next=next_step)
        case _:
            if not _is_scalar(value, kind):
                yield _mismatch(value, _expected(kind), path)


def _struct_faults(value: object, kind: inspect.StructType, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _mismatch(value, _expected(kind), path)
        return
    fields = {field.encode_name: field for field in kind.fields}
    keys = [*([kind.tag_field] if kind.tag_field else []), *fields]
    for key, item in value.items():
        if key in fields:
            record = settings_record(kind.cls, key)
            yield from _faults(item, _type_of(record) if record else fields[key].type, join(path, key))
        elif key != kind.tag_field:
            yield _unknown_key(key, keys, path)
    for name, field in fields.items():
        if field.required and name not in value and field.default is NODEFAULT:
            yield Problem(what=f'"{name}" is missing', path=path or name, next=f"add `{name}:` there")


def _union_faults(value: object, kind: inspect.UnionType, path: str) -> Iterator[Problem]:
    choices = [choice for choice in kind.types if not isinstance(choice, inspect.NoneType)]
    if value is None and len(choices) < len(kind.types):
        return
    structs = [choice for choice in choices if isinstance(choice, inspect.StructType)]
    if isinstance(value, dict) and len(structs) > 1:
        yield from _tagged_faults(value, structs, path)
    elif isinstance(value, dict) and structs:
        yield from _faults(value, structs[0], path)
    elif len(choices) == 1:
        yield from _faults(value, choices[0], path)
    elif isinstance(value, (list, tuple)) and (lists := [c for c in choices if isinstance(c, inspect.ListType)]):
        yield from _faults(value, lists[0], path)
    elif isinstance(value, str) and (words := [c for c in choices if isinstance(c, inspect.LiteralType)]):
        yield from _faults(value, words[0], path)
    elif not any(_is_scalar(value, choice) for choice in choices):
        yield _mismatch(value, " or ".join(_expected(choice) for choice in choices), path)


def _tagged_faults(value: dict[str, object], structs: list[inspect.StructType], path: str) -> Iterator[Problem]:
    by_tag = {str(struct.tag): struct for struct in structs}
    tag_field = structs[0].tag_field or "type"
    tag = value.get(tag_field)
    if isinstance(tag, str) and tag in by_tag:
        yield from _faults(value, by_tag[tag], path)
        return
    meant = nearest(tag, by_tag) if isinstance(tag, str) else None
    next_step = f'did you mean "{meant}"?' if meant else f"`{tag_field}` is one of: {', '.join(sorted(by_tag))}"
    is_said = tag_field in value
    what = f"{_show(tag)} is no known {tag_field}" if is_said else f'"{tag_field}" is missing'
    yield Problem(what=what, path=join(path, tag_field) if is_said else path, next=next_step)


def _dict_faults(value: object, kind: inspect.DictType, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _mismatch(value, _expected(kind), path)
        return
    for key, item in value.items():
        if not isinstance(key, str):
            yield Problem(what=f"the key {key!r} is not text", path=path, next=f'write "{key}" in quotes')
            continue
        record = kind.value_type
        if isinstance(record, inspect.StructType) and not isinstance(item, dict) and key in _names_of(record.cls):
            what = f"`{key}` stands where a name is needed"
            step = "indent it deeper, below the name that it belongs to"
            yield Problem(what=what, path=join(path, key), next=step)
            continue
        yield from _faults(item, kind.value_type, join(path, key))


def _list_faults(value: object, kind: inspect.ListType, path: str) -> Iterator[Problem]:
    if not isinstance(value, (list, tuple)):
        yield _mismatch(value, _expected(kind), path)
        return
    for index, item in enumerate(value):
        yield from _faults(item, kind.item_type, join(path, index))


def _is_scalar(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.AnyType():
            return True
        case inspect.CustomType():
            return isinstance(value, kind.cls)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        case inspect.FloatType():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case inspect.BoolType():
            return isinstance(value, bool)
        case _:
            return False


def _expected(kind: inspect.Type) -> str:
    match kind:
        case inspect.StrType():
            return "text"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType():
            return "a list"
        case inspect.LiteralType():
            return " or ".join(str(choice) for choice in kind.values)
        case inspect.DictType() | inspect.StructType():
            return "a map"
        case _:
            return "another type"


def _mismatch(value: object, expected: str, path: str) -> Problem:
    if value is None:
        what, next_step = f"nothing stands here, where {expected} is needed", "give it a value, or drop the key"
        if expected == "a map":
            next_step = "indent what belongs to it deeper than its name, or drop it"
    else:
        what, next_step = f"{_show(value)} stands where {expected} is needed", f"write {expected}"
    if expected == "text" and isinstance(value, (int, float)):
        next_step = f'write "{value}" in quotes'
    elif expected == "a whole number" and isinstance(value, str) and (ports := _PORTS.fullmatch(value)):
        next_step = f"write the port where it listens alone: {ports[1]}"
    elif expected == "a whole number" and isinstance(value, str) and _is_whole(value):
        next_step = f"write {value.strip()} without quotes"
    elif expected == "a map" and isinstance(value, (list, tuple)):
        next_step = f"write KEY: VALUE, without dashes{_as_map(value)}"
    elif expected == "a map" and isinstance(value, str):
        next_step = "write KEY: VALUE in a line of its own, indented below"
    return Problem(what=what, path=path, next=next_step)


def _is_whole(text: str) -> bool:
    return text.strip().removeprefix("-").isdecimal()


def _as_map(items: Sequence[object]) -> str:
    """How the first item of a list would begin a map, as Kubernetes and compose files list what has a name."""
    first = items[0] if items else None
    if isinstance(first, str) and "=" in first:
        name, _, value = first.partition("=")
        return f', as in `{name}: "{value}"`'
    if isinstance(first, dict) and isinstance(first.get("name"), str):
        value = f' "{first["value"]}"' if isinstance(first.get("value"), (str, int, float)) else ""
        return f", as in `{first['name']}:{value}`"
    return ""


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str):
        return f'"{value if len(value) <= 60 else value[:57] + "..."}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    text = str(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
