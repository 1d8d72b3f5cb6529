"""Write the merge keys of Kubernetes' strategic merge for lists in a pod, from the schemas of `symph validate`.

The schemas keep the marks of the API's OpenAPI documents (``x-kubernetes-patch-strategy``,
``x-kubernetes-patch-merge-key``). Lists of the same name must merge in the same way everywhere in a pod, in every
version; otherwise this fails.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "symphony_charts" / "chart" / "lint" / "schemas"
MODULE = "symphony_charts/formats/merge_keys.py"
_TEMPLATE_OF_PODS = "io.k8s.api.core.v1.PodTemplateSpec"
_PYTHON = '''"""scripts/merge_keys.py writes by which key Kubernetes' strategic merge joins the lists of a pod.

A list with an empty key holds plain values and is a set. A list that is not here is replaced as a whole.
Source: {source}.
"""

from __future__ import annotations

MERGE_KEYS = {{
{rows}}}
'''


def merge_keys() -> dict[str, str]:
    """Return field -> merge key for all merged lists in a pod template, over all versions."""
    marks: dict[str, set[str | None]] = {}
    for file in sorted(SCHEMAS.glob("v1.*.json.gz")):
        definitions = json.loads(gzip.decompress(file.read_bytes()))["definitions"]
        for field, key in _lists(definitions, _TEMPLATE_OF_PODS, set()):
            marks.setdefault(field, set()).add(key)
    torn = sorted(field for field, keys in marks.items() if len(keys) > 1)
    if torn:
        raise SystemExit(f"merged in two ways, so the name of the field does not say how: {', '.join(torn)}")
    keys = {field: key for field, (key,) in marks.items()}
    return {field: key for field, key in sorted(keys.items()) if key is not None}


def _lists(definitions: dict[str, object], name: str, seen: set[str]) -> Iterator[tuple[str, str | None]]:
    """Yield every list below the definition `name` with its merge key; None for a replaced one."""
    seen.add(name)
    definition = definitions[name]
    properties = definition.get("properties", {}) if isinstance(definition, dict) else {}
    for field, schema in properties.items():
        if schema.get("type") == "array":
            merges = "merge" in schema.get("x-kubernetes-patch-strategy", "").split(",")
            yield field, schema.get("x-kubernetes-patch-merge-key", "") if merges else None
        for part in (schema, schema.get("items", {}), schema.get("additionalProperties", {})):
            reference = part.get("$ref", "").rpartition("/")[2] if isinstance(part, dict) else ""
            if reference and reference not in seen:
                yield from _lists(definitions, reference, seen)


def generated_files() -> dict[str, str]:
    """Return the files by their path in the repository."""
    table = merge_keys()
    source = "x-kubernetes-patch-merge-key in Kubernetes' OpenAPI documents, 1.29 to 1.37"
    rows = "".join(f"    {json.dumps(field)}: {json.dumps(key)},\n" for field, key in table.items())
    return {MODULE: _PYTHON.format(source=source, rows=rows)}


if __name__ == "__main__":
    for path, text in generated_files().items():
        (ROOT / path).write_text(text)
