"""The JSON Schema describes `.symph.yaml` and a user's own settings to editors, short forms included."""

from __future__ import annotations

from typing import Any, TypeAlias

from symphony_charts.settings.project import AllowedLeak, Defaults, Environment, Keys, Repository
from symphony_charts.spec.json_schema import described_schema

__all__ = ["settings_schema"]

Schema: TypeAlias = "dict[str, Any]"

_RECORDS = {record.__name__: record for record in (Keys, Repository, Environment, AllowedLeak, Defaults)}


# What a key takes besides its own form.
_SHORT: dict[str, Schema] = {
    "repository": {"type": "string"},
    "environments": {"type": "array", "items": {"type": "string"}},
    "pools": {"type": "string"},
}


def settings_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of what `read_settings` reads."""
    root, components = described_schema(Keys, _RECORDS, _shorten)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        # A name and no address: nothing is fetched from anywhere.
        "$id": "urn:symphony-charts:settings:v1",
        "title": "symphony-charts settings",
        **root,
        "$defs": dict(sorted(components.items())),
    }


def _shorten(name: str, schema: Schema) -> None:
    properties = schema["properties"]
    for key, form in _SHORT.items() if name == "Keys" else ():
        properties[key] = {"anyOf": [*properties[key].get("anyOf", [properties[key]]), form]}
    if name == "Keys":
        # An environment of which nothing is said has a name and a colon.
        each = properties["environments"]["anyOf"][0]
        each["additionalProperties"] = {"anyOf": [each["additionalProperties"], {"type": "null"}]}
