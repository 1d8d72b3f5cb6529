"""Write `symphony_charts/spec/builder/keywords.py`: the builders' keywords, for type checkers and editors.

The source is the JSON Schema, which comes from the records and knows their short forms. With `--check`, only exit with
status 1 if the file is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from symphony_charts.spec.builder.common import ALIASES
from symphony_charts.spec.json_schema import json_schema
from symphony_charts.spec.model import PodSettings

FILE = Path(__file__).resolve().parents[1] / "symphony_charts" / "spec" / "builder" / "keywords.py"
_SCALARS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
_HEAD = '''"""The keywords of the builders, for type checkers and editors: they mean nothing when a program runs.

`scripts/builder_keywords.py` writes this file from the JSON Schema; what is wrong in a value only `finish` knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

import msgspec

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = [
    "AssignmentFields",
    "ConfigFields",
    "ExperimentFields",
    "ExperimentKeywords",
    "GroupKeywords",
    "PodFields",
    "ProcessFields",
    "ProcessKeywords",
    "Unpack",
]

# A record, or its data as in a file.
Data = Mapping[str, object] | msgspec.Struct
# Not any sequence: a text is one, too.
Items = list[Any] | tuple[Any, ...]
'''


def main(argv: list[str]) -> int:
    """Write the file, or with `--check` compare it."""
    text = keywords_text()
    if "--check" in argv:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


def keywords_text() -> str:
    schemas: dict[str, Any] = json_schema()["$defs"]
    process, experiment = (schemas[name]["properties"] for name in ("Process", "Experiment"))
    pod = {name: process[name] for name in PodSettings.__struct_fields__}
    own = {name: process[name] for name in process if name not in pod}
    typed_own = _typed(own)
    # The parameter after the name.
    cmds = {"cmds": typed_own.pop("cmds")}
    kept = {name: experiment[name] for name in experiment if name not in ("name", "groups", "processes", "order")}
    assignment = {
        name: typed for name, typed in _typed(schemas["Assignment"]["properties"]).items() if name != "assign_to"
    }
    config = {name: typed for name, typed in _typed(schemas["ConfigFile"]["properties"]).items() if name != "text"}
    lines = {"preamble_cmds": "str | Iterable[str] | None", "start_dir": "str | None"}
    return "".join(
        [
            _HEAD,
            _class("PodFields", "TypedDict, total=False", "Keywords of lone processes and groups.", _typed(pod)),
            _class("GroupKeywords", "PodFields, total=False", "Keywords of groups.", lines),
            _class(
                "ProcessKeywords",
                "PodFields, total=False",
                "Keywords of processes, without shell lines.",
                typed_own,
            ),
            _class("ProcessFields", "ProcessKeywords, total=False", "Keywords of processes.", cmds),
            _class("ExperimentFields", "TypedDict, total=False", "Settings of experiments.", _typed(kept)),
            _class("AssignmentFields", "TypedDict, total=False", "Further keywords of assignments.", assignment),
            _class(
                "ConfigFields", "TypedDict, total=False", "Sources of configuration files other than a text.", config
            ),
            _class("ExperimentKeywords", "ExperimentFields, total=False", "Keywords of experiments.", lines),
        ]
    )


def _class(name: str, bases: str, doc: str, fields: Mapping[str, str]) -> str:
    body = "".join(f"    {field}: {annotation}\n" for field, annotation in fields.items())
    return f'\n\nclass {name}({bases}):\n    """{doc}"""\n\n{body}'


def _typed(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the annotation of each field, and of Symphony's names for it; None always means "not given"."""
    typed = {}
    for field, schema in properties.items():
        names = [field, *(alias for alias, meant in ALIASES.items() if meant == field)]
        extra = ["range"] if field == "port_range" else []
        options = dict.fromkeys([*_options(schema), *extra])
        options.pop("None", None)
        typed |= dict.fromkeys(names, " | ".join([*options, "None"]))
    return typed


def _options(schema: Mapping[str, Any]) -> Iterable[str]:
    """Return the Python types that a schema accepts, short forms included."""
    if "anyOf" in schema:
        for option in schema["anyOf"]:
            yield from _options(option)
    elif "enum" in schema:
        yield f"Literal[{', '.join(repr(value).replace(chr(39), chr(34)) for value in schema['enum'])}]"
    elif "$ref" in schema:
        yield "Data"
    else:
        kinds = schema["type"]
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            yield {"array": "Items", "object": "Mapping[str, object]"}.get(kind) or _SCALARS[kind]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
