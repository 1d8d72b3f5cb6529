"""Objects become a folder that kustomize builds to the same objects, and that overlays can stand on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump

__all__ = ["kustomize_files"]

_KUSTOMIZATION = "kustomization.yaml"
_API = "kustomize.config.k8s.io/v1beta1"
_NOT_OF_A_FILE = re.compile(r"[^a-z0-9.-]+")


def kustomize_files(objects: Iterable[Mapping[str, object]], *, namespace: str | None = None) -> dict[str, bytes]:
    """``kustomization.yaml`` and a file for each object, by path; `namespace` is written into all of them by kustomize.

    The objects keep their order, in which kustomize builds them. Raises SpecError for an object that it cannot carry:
    it writes U+FFFE and U+FFFF so that it cannot read them again.
    """
    files: dict[str, bytes] = {}
    for item in objects:
        path = _path(item, files)
        text = json.dumps(item, ensure_ascii=False)
        if "\ufffe" in text or "\uffff" in text:
            what = "kustomize cannot carry the characters U+FFFE and U+FFFF, and this object holds one"
            raise SpecError.one(what, path, "leave it out, or take `symph export manifests`")
        files[path] = dump(item).encode()
    head: dict[str, object] = {"apiVersion": _API, "kind": "Kustomization"}
    if namespace:
        head["namespace"] = namespace
    return {_KUSTOMIZATION: dump({**head, "resources": list(files)}).encode(), **files}


def _path(item: Mapping[str, object], taken: Mapping[str, bytes]) -> str:
    """``<kind>-<name>.yaml``; the group is added where two kinds go by one name."""
    metadata = item["metadata"]
    name = metadata["name"] if isinstance(metadata, Mapping) else ""
    group = str(item["apiVersion"]).rpartition("/")[0]
    words = f"{item['kind']}-{name}".lower()
    plain, full = (f"{_NOT_OF_A_FILE.sub('-', text)}.yaml" for text in (words, f"{words}-{group}"))
    return plain if plain not in taken else full
