"""Write the strict schemas of other projects' kinds for `symph validate`, from custom resource definitions.

    python -m scripts.crd_schemas

Per kind and version one compressed file, named ``<group>_<version>_<Kind>.json.gz``: without prose, status and
defaults; unknown fields are refused where the API server would drop them; repeated parts are stored once. CEL rules are
omitted. The file contains the source of the definition.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from scripts.kubernetes_schemas import compressed
from tests.e2e.tools import modules

OUT = Path(__file__).resolve().parent.parent / "symphony_charts" / "chart" / "lint" / "schemas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The place of a definition: the file `path` of the Go module `origin`, ``module@version``."""

    origin: str
    path: str
    versions: tuple[str, ...]


_ARGO_FOLDER = "manifests/base/crds/full"

SOURCES = (
    Source(
        origin=modules.JOBSET,
        path="config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
        versions=("v1alpha2",),
    ),
    Source(
        origin="sigs.k8s.io/gateway-api@v1.4.0",
        path="config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
        versions=("v1",),
    ),
    *(
        Source(
            origin=modules.ARGO_WORKFLOWS,
            path=f"manifests/base/crds/full/argoproj.io_{kind}.yaml",
            versions=("v1alpha1",),
        )
        for kind in ("workflows", "workflowtemplates", "cronworkflows")
    ),
    Source(
        origin=modules.APPWRAPPER,
        path="config/crd/bases/workload.codeflare.dev_appwrappers.yaml",
        versions=("v1beta2",),
    ),
    Source(
        origin=modules.MCAD,
        path="config/crd/bases/workload.codeflare.dev_appwrappers.yaml",
        versions=("v1beta1",),
    ),
    *(
        Source(origin=modules.VOLCANO, path=f"config/crd/volcano/bases/{kind}.yaml", versions=(version,))
        for kind, version in (("batch.volcano.sh_jobs", "v1alpha1"), ("scheduling.volcano.sh_podgroups", "v1beta1"))
    ),
    Source(
        origin="sigs.k8s.io/scheduler-plugins@v0.33.5",
        path="config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        versions=("v1alpha1",),
    ),
    Source(
        origin=modules.SEALED_SECRETS,
        path="helm/sealed-secrets/crds/bitnami.com_sealedsecrets.yaml",
        versions=("v1alpha1",),
    ),
    Source(
        origin="github.com/external-secrets/external-secrets@v1.3.2",
        path="config/crds/bases/external-secrets.io_externalsecrets.yaml",
        versions=("v1",),
    ),
)

_DROPPED = ("description", "default", "example", "externalDocs", "format", "title")
# Keywords that constrain a value but define no fields: no place to refuse unknown ones.
_VALIDATIONS = ("anyOf", "allOf", "oneOf", "not")
_LEAST_SHARED_BYTES = 120


def schema_of(definition: Mapping[str, object], version: str, metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the draft-7 schema of one version of a CustomResourceDefinition; `metadata` is ObjectMeta's schema."""
    spec = _map(definition["spec"])
    versions = {item["name"]: item for item in _list(spec["versions"])}
    root = strict(_map(_map(versions[version]["schema"])["openAPIV3Schema"]))
    properties = _map(root["properties"])
    properties.pop("status", None)
    properties |= {
        "apiVersion": {"const": f"{spec['group']}/{version}"},
        "kind": {"const": _map(spec["names"])["kind"]},
        "metadata": metadata,
    }
    root["required"] = sorted({"apiVersion", "kind", "metadata", *_texts(root.get("required"))} - {"status"})
    return shared(root)


def strict(node: dict[str, object], *, is_whole: bool = True) -> dict[str, object]:
    """Return a structural OpenAPI schema in draft 7; unknown fields are refused where the server drops them."""
    made: dict[str, object] = {}
    for key, value in node.items():
        if key in _DROPPED or key.startswith("x-") or key == "nullable":
            continue
        if key in ("properties", "definitions"):
            made[key] = {name: strict(_map(item), is_whole=is_whole) for name, item in _map(value).items()}
        elif key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            made[key] = strict(value, is_whole=is_whole and key not in _VALIDATIONS)
        elif key in _VALIDATIONS and isinstance(value, list):
            made[key] = [strict(item, is_whole=False) for item in value]
        else:
            made[key] = value
    for limit in ("Minimum", "Maximum"):
        if made.get(f"exclusive{limit}") is True:
            made[f"exclusive{limit}"] = made.pop(limit.lower())
        elif made.get(f"exclusive{limit}") is False:
            del made[f"exclusive{limit}"]
    if node.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
        made.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    kept = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
    is_open = "additionalProperties" in made or any(node.get(key) for key in kept)
    if is_whole and made.get("type") == "object" and not is_open:
        made["additionalProperties"] = False
    if node.get("nullable") and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def _map(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SystemExit(f"no map where a definition has one: {value!r:.200}")
    return value


def _list(value: object) -> list[dict[str, object]]:
    return [_map(item) for item in value] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _text(node: object) -> str:
    return json.dumps(node, separators=(",", ":"), sort_keys=True)


def shared(root: dict[str, object]) -> dict[str, object]:
    """Return `root` with each repeated schema as one definition."""
    seen = Counter(_text(node) for node in _schemas(root))
    names: dict[str, str] = {}
    definitions: dict[str, object] = {}

    def put(node: dict[str, object], *, is_top: bool = False) -> dict[str, object]:
        text = _text(node)
        is_shared = not is_top and seen[text] > 1 and len(text) >= _LEAST_SHARED_BYTES
        if is_shared and text in names:
            return {"$ref": f"#/definitions/{names[text]}"}
        made = {key: _through(key, value, put) for key, value in node.items()}
        if not is_shared:
            return made
        names[text] = f"d{len(names)}"
        definitions[names[text]] = made
        return {"$ref": f"#/definitions/{names[text]}"}

    return {**put(root, is_top=True), "definitions": definitions}


def _through(key: str, value: object, put: Callable[[dict[str, object]], dict[str, object]]) -> object:
    if key == "properties" and isinstance(value, dict):
        return {name: put(item) for name, item in value.items()}
    if key in ("items", "additionalProperties", "not") and isinstance(value, dict):
        return put(value)
    return value


def _schemas(node: dict[str, object]) -> Iterator[dict[str, object]]:
    yield node
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):
            for item in value.values():
                yield from _schemas(item)
        elif key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            yield from _schemas(value)


def metadata_schema() -> dict[str, object]:
    """Return the API's own schema of ObjectMeta, with a required name."""
    bundled = json.loads(gzip.decompress((OUT / "v1.34.json.gz").read_bytes()))["definitions"]
    prefix = "io.k8s.apimachinery.pkg.apis.meta.v1."
    known = {name: schema for name, schema in bundled.items() if name.startswith(prefix)}

    def inline(node: object) -> object:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            return inline(known[node["$ref"].rpartition("/")[2]])
        return {key: inline(value) for key, value in node.items() if key != "format"}

    made = _map(inline(known[f"{prefix}ObjectMeta"]))
    return {**made, "anyOf": [{"required": ["name"]}, {"required": ["generateName"]}]}


def _read(source: Source) -> Iterator[Mapping[str, object]]:
    text = (modules.module_folder(source.origin) / source.path).read_text(encoding="utf-8")
    for document in yaml.load_all(text, yaml.CSafeLoader):
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            yield document


def main() -> None:
    metadata = metadata_schema()
    for source in SOURCES:
        for definition in _read(source):
            spec = _map(definition["spec"])
            for version in source.versions:
                name = f"{spec['group']}_{version}_{_map(spec['names'])['kind']}"
                said = f"{source.origin} {source.path} (Apache-2.0)"
                data = compressed({"source": said, "schema": schema_of(definition, version, metadata)})
                (OUT / f"{name}.json.gz").write_bytes(data)
                print(f"{len(data):7d} {name}")


if __name__ == "__main__":
    main()
