"""The JSON Schema of experiment files, and the settings of kinds from integrations and other packages.

Generated from the records, so it is always up to date; fields also get the short forms of
`symphony_charts.spec.shorthand`. It checks the form only; `finish` checks consistency.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias, cast, get_args, get_type_hints

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.names import SERVICE_NAME
from symphony_charts.spec import model, sources, workload
from symphony_charts.spec.model import Experiment, ExposeSettings
from symphony_charts.spec.sources import Record
from symphony_charts.spec.workload import ADDED_KINDS, Workload
from symphony_charts.system.launching import entry_points


class AddedKind(Protocol):
    """The part of a kind that reads and checks its settings. `symphony_charts.kinds.base.Kind` has the defaults."""

    settings: type[Record]
    short_forms: Mapping[str, Sequence[dict[str, Any]]]

    def expanded(self, settings: dict[str, object]) -> dict[str, object]:
        """Return the settings with short forms expanded."""
        ...

    def with_clean_names(self, settings: Any) -> Record:
        """Return the settings with sanitised names of groups and processes."""
        ...

    def faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return the faults of its settings, independent of the experiment's kind."""
        ...

    def cluster_faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return parts of an experiment of this kind that it cannot run."""
        ...


@cache
def added_kind(name: str) -> AddedKind:
    """Return an added kind.

    Raises:
        ToolFailed: The package that adds it cannot be loaded.
    """
    return cast("AddedKind", entry_points("symph.kinds")[name].load())


def used_kinds(workload: Workload) -> dict[str, AddedKind]:
    """Return the added kinds for which a workload has settings."""
    return {name: added_kind(name) for name in ADDED_KINDS if workload.written(name)}


def settings_record(record: type, field: str) -> type[Record] | None:
    """Return the record for a field of `record` that holds the settings of an added kind; None for other fields."""
    return added_kind(field).settings if record is Workload and field in ADDED_KINDS else None


def decoded(experiment: Experiment) -> Experiment:
    """Return the experiment with the settings of added kinds as their records write them, without defaults.

    Raises:
        msgspec.ValidationError: A setting has another type than its record wants.
    """
    workload = experiment.workload
    for name, kind in used_kinds(workload).items():
        workload = workload.with_settings(name, workload.settings(name, kind.settings))
    return experiment if workload is experiment.workload else msgspec.structs.replace(experiment, workload=workload)


Schema: TypeAlias = "dict[str, Any]"

# Descriptions of keys that are not fields of a record.
_SHM = "The size of the memory at /dev/shm, such as `2Gi`"
_NAME = "The name of the volume; without names, mounts with the same content share a volume"
_TAG = "The kind of the volume"
# A name, not an address: no tool fetches it.
_ID = "urn:symphony-charts:experiment:v1"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_TEXTS: Schema = {"type": "object", "additionalProperties": _SCALAR}
_WORDS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": _SCALAR}]}
_PORT: Schema = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "null"}]}
_SERVICE: Schema = {"type": "string", "pattern": f"^{SERVICE_NAME.pattern}$", "maxLength": 40}
_PORTS: Schema = {"type": "object", "propertyNames": _SERVICE, "additionalProperties": _PORT}
_SERVICES: Schema = {"anyOf": [_SERVICE, {"type": "array", "items": {"anyOf": [_SERVICE, _PORTS]}}, _PORTS]}
_CONNECTS: Schema = {"anyOf": [_SERVICE, {"type": "array", "items": _SERVICE}]}
_WORD_FIELDS = (
    *("command", "args", "cmds", "preamble", "after", "names"),
    *("done_when", "order", "only", "also_at", "groups", "pass_env", "env_file"),
)
_TEXT_FIELDS = ("requests", "limits", "labels", "annotations", "node_selector", "capabilities")


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of the data that `symphony_charts.spec.data.from_data` reads."""
    root, components = described_schema(Experiment, _records(), _shorten)
    for name in ADDED_KINDS:
        components |= _added(name, components["Workload"]["properties"])
    components["Inline"] = _inline_mount(components)
    components["AnyVolume"] = _any_volume(components["Experiment"])
    return {
        "$schema": _DRAFT,
        "$id": _ID,
        "title": "symphony-charts experiment",
        **root,
        "$defs": dict(sorted(components.items())),
    }


def _added(name: str, workload: Schema) -> dict[str, Schema]:
    """Add the settings of an added kind to the properties of `workload`, and return the schemas that they need."""
    kind = added_kind(name)
    record, forms = kind.settings, kind.short_forms
    root, components = described_schema(record, {record.__name__: record}, _shorten)
    properties: dict[str, Schema] = components[record.__name__]["properties"]
    for field, further in forms.items():
        properties[field] = _also(properties[field], *further)
    workload[name] = {"description": workload[name]["description"], **root}
    return components


def described_schema(
    record: type[msgspec.Struct], records: Mapping[str, type[msgspec.Struct]], shorten: Callable[[str, Schema], None]
) -> tuple[Schema, dict[str, Schema]]:
    """Return the schema of a record and, by name, of the `records` in it; each field has a description.

    `shorten` adds the short forms of one record.
    """
    (root,), components = msgspec.json.schema_components([record], ref_template="#/$defs/{name}", schema_hook=_anything)
    for name, schema in components.items():
        _describe(schema)
        shorten(name, schema)
        schema["properties"] = _described(records[name], schema["properties"])
    return root, components


def field_texts(record: type[msgspec.Struct]) -> dict[str, str]:
    """Return the description of each field, from the ``Attributes:`` of the record's and its bases' docstrings."""
    found: dict[str, str] = {}
    for base in reversed(record.__mro__):
        _, _, section = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("\nAttributes:\n")
        for entry in re.split(r"\n {4}(?=\w)", f"\n{section}")[1:]:
            name, _, text = entry.partition(": ")
            found[name] = " ".join(text.split()).removesuffix(".")
    return found


def _described(record: type[msgspec.Struct], properties: dict[str, Schema]) -> dict[str, Schema]:
    texts = {**field_texts(record), record.__struct_config__.tag_field or "": _TAG}
    return {field: {"description": texts[field], **form} for field, form in properties.items()}


def _records() -> dict[str, type[msgspec.Struct]]:
    named = {**vars(model), **vars(sources), **vars(workload)}
    return {name: each for name, each in named.items() if isinstance(each, type) and issubclass(each, msgspec.Struct)}


def _anything(kind: type) -> Schema:
    """Return the schema of overlays, which hold any data."""
    if kind is not object:
        raise NotImplementedError(kind)
    return {"description": "Any data."}


def _describe(schema: Schema) -> None:
    """Drop msgspec's additions: titles that repeat the key, and defaults without information."""
    schema["description"] = " ".join(schema.get("description", "").split("\n\n")[0].split())
    for field in schema.get("properties", {}).values():
        if field.get("default", 0) in (None, {}, []):
            field.pop("default", None)


def _shorten(name: str, schema: Schema) -> None:
    properties: dict[str, Schema] = schema["properties"]
    for field in properties:
        form = properties[field]
        is_list = any(option.get("type") == "array" for option in form.get("anyOf", [form]))
        if field in _WORD_FIELDS and is_list:
            properties[field] = _also(form, _WORDS)
        elif form.get("additionalProperties") == {"type": "string"} and field in (*_TEXT_FIELDS, "env"):
            properties[field] = _TEXTS
        elif field in _REPLACED:
            properties[field] = _REPLACED[field]
        elif field in _SHORT and (name, field) != ("Assignment", "assign_to"):
            properties[field] = _also(form, *_SHORT[field])


def _also(field: Schema, *forms: Schema) -> Schema:
    """Return `field` with further forms; description and default stay at the top, where editors look for them."""
    kept: Schema = {key: field[key] for key in ("description", "default") if key in field}
    bare = {key: value for key, value in field.items() if key not in kept}
    return {**kept, "anyOf": [*(bare["anyOf"] if set(bare) == {"anyOf"} else [bare]), *forms]}


def _any_volume(experiment: Schema) -> Schema:
    """Return the schema of a declared volume: a record with a `type`, or the inline form."""
    declared: Schema = experiment["properties"]["volumes"]["additionalProperties"]
    inline = {"type": "object", "minProperties": 1, "maxProperties": 1, "properties": _inline_properties()}
    experiment["properties"]["volumes"]["additionalProperties"] = {"$ref": "#/$defs/AnyVolume"}
    declared.pop("discriminator", None)
    return {"anyOf": [*declared["anyOf"], {**inline, "additionalProperties": False}]}


def _inline_mount(components: dict[str, Schema]) -> Schema:
    mount = components["Mount"]["properties"]
    own = {key: mount[key] for key in ("at", "read_only", "sub_path")}
    kinds = _inline_properties()
    return {
        "type": "object",
        "description": "A mount that describes its volume, under one of the volume keys.",
        "properties": {**own, "name": {"description": _NAME, "type": "string"}, **kinds},
        "oneOf": [{"required": [kind] if kind == "shm" else ["at", kind]} for kind in kinds],
        "additionalProperties": False,
    }


def _inline_properties() -> dict[str, Schema]:
    records: dict[str, type[Record]] = {record.__struct_config__.tag: record for record in get_args(sources.AnyVolume)}
    # The two kinds that need no value are the last ones.
    records["empty_dir"] = records.pop("empty_dir")
    forms: dict[str, Schema] = {
        kind: {
            "description": inspect.cleandoc(f"{record.__doc__}").partition("\n")[0],
            "anyOf": [_without_tag(record), *([] if kind == "nfs" else [{"type": "string"}])],
        }
        for kind, record in records.items()
    }
    forms["empty_dir"]["anyOf"] += [{"type": "null"}, {"const": True}]
    return {**forms, "shm": {"description": _SHM, "anyOf": [{"const": True}, {"type": "null"}, {"type": "string"}]}}


def _without_tag(record: type[Record]) -> Schema:
    """Return the record as a map without its `type`, which the key implies."""
    schema = msgspec.json.schema(record)["$defs"][record.__name__]
    described = _described(record, schema["properties"])
    properties = {key: value for key, value in described.items() if key != "type"}
    required = [key for key in schema.get("required", []) if key != "type"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_PROBE: Schema = {"type": ["integer", "string"]}
_SPAN: Schema = {"type": "string", "pattern": r"^\d{1,6}[smh]$"}
_MOUNT_FORM: Schema = {"anyOf": [{"$ref": "#/$defs/Mount"}, {"$ref": "#/$defs/Inline"}, {"type": "string"}]}
_RESTART = ["always", "on-failure", "never", "Always", "OnFailure", "Never"]
_EXPOSED: Schema = {
    "anyOf": [{"enum": list(get_args(get_type_hints(ExposeSettings)["type"]))}, {"$ref": "#/$defs/ExposeSettings"}]
}
_SECRET: Schema = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/SecretFile"}]}


def _map_of(form: Schema) -> Schema:
    return {"type": "object", "additionalProperties": form}


# Schemas in place of those of the records.
_REPLACED: dict[str, Schema] = {
    "env": _map_of({"anyOf": [_SCALAR, {"$ref": "#/$defs/EnvSource"}]}),
    "binds": _SERVICES,
    "exposes": _SERVICES,
    "connects": _CONNECTS,
    "mounts": {"anyOf": [_MOUNT_FORM, {"type": "array", "items": _MOUNT_FORM}]},
    "restart": {"anyOf": [{"enum": _RESTART}, {"type": "null"}]},
    "configs": _map_of({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/ConfigFile"}]}),
    "expose": _map_of(_EXPOSED),
    "image_pull_secrets": _WORDS,
    "networks": _WORDS,
}
# Short forms beside the schemas of the records.
_SHORT: dict[str, tuple[Schema, ...]] = {
    "tolerations": ({"$ref": "#/$defs/Toleration"},),
    "ready": (_PROBE,),
    **dict.fromkeys(("initial_delay", "period", "deadline", "grace_period", "linger", "timeout"), (_SPAN,)),
    "tcp": (_PROBE,),
    "http": (_PROBE,),
    "exec": (_WORDS,),
    "assign_to": ({"enum": ["machine", "gpu", "resource", "node_pool"]},),
    "port_range": ({"type": "string", "pattern": r"^\s*\d{1,6}\s*-\s*\d{1,6}\s*$"},),
    "secrets": (*_SECRET["anyOf"], {"type": "array", "items": _SECRET}),
}
