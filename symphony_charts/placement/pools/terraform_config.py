"""Read the pools of Terraform configuration in JSON (`.tf.json`), such as Cloudwise's.

Nothing is executed: variables take their defaults or the given values; references to locals and resources are resolved.
`count`, `for_each`, dynamic blocks, and other expressions that a pool needs are faults that ask for the plan's JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from symphony_charts.formats.field_reader import Faults, Fields, as_text
from symphony_charts.placement.catalog import Catalog
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.terraform import CLUSTER, NODE_POOL, RESERVATION, pools_of_resources


def read_config(data: dict[str, object], faults: Faults, catalog: Catalog, variables: Mapping[str, object]) -> Pools:
    """Return the pools of a configuration; `variables` override the defaults of its variables."""
    scope = _scope(data, variables)
    zone = _provider_zone(data, scope)
    resources = []
    for kind in (RESERVATION, CLUSTER, NODE_POOL):
        for path, name, body in _resources(data, kind):
            # What a reservation leaves open only makes its pools less certain.
            fields = Fields.of(scope.resolve(body), path, Faults() if kind == RESERVATION else faults)
            if not _is_single(fields):
                continue
            if kind == NODE_POOL:
                _complete(fields.data, name, zone)
            resources.append((kind, name, fields))
    for path, _, body in _blocks(data, "module"):
        source = str(body.get("source", ""))
        if "kubernetes-engine" in source or not {"node_pools", "node_config"}.isdisjoint(body):
            faults.add(f"symph cannot read the node pools of module {source}", path, _PLAN)
    return pools_of_resources(resources, catalog, faults)


def _complete(attributes: dict[str, object], name: str, zone: str) -> None:
    """Set the provider's zone, and a name for a pool whose name the provider generates."""
    if zone and not attributes.get("node_locations") and not isinstance(attributes.get("location"), str):
        attributes["location"] = zone
    if not attributes.get("name") and not attributes.get("name_prefix"):
        attributes["name"] = name


def _is_single(fields: Fields) -> bool:
    """Return True if the resource and its blocks are not repeated; else note a fault."""
    keys = *(key for key in ("for_each", "count") if key in fields.data), *(("dynamic",) * _has_dynamic(fields.data))
    if keys:
        fields.fault(f"{keys[0]} repeats a part of this resource, and only Terraform can resolve it", "", _PLAN)
    return not keys


def _has_dynamic(data: object) -> bool:
    if isinstance(data, dict):
        return "dynamic" in data or any(map(_has_dynamic, data.values()))
    return isinstance(data, list) and any(map(_has_dynamic, data))


def _maps(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects of a block that may be one object or a list of them."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield {str(key): inner for key, inner in item.items()}


def _blocks(data: dict[str, object], kind: str) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield path, name and body of the named blocks of one kind, such as ``module.gke``."""
    for named in _maps(data.get(kind)):
        for name, bodies in named.items():
            for body in _maps(bodies):
                yield f"{kind}.{name}", name, body


def _resources(data: dict[str, object], kind: str) -> Iterator[tuple[str, str, dict[str, object]]]:
    for resources in _maps(data.get("resource")):
        yield from ((f"resource.{path}", name, body) for path, name, body in _blocks(resources, kind))


def _scope(data: dict[str, object], given: Mapping[str, object]) -> Scope:
    variables = {name: body["default"] for _, name, body in _blocks(data, "variable") if "default" in body}
    for name, value in given.items():
        variables[name] = value
        if isinstance(value, str) and value[:1] in ("[", "{"):
            with suppress(msgspec.DecodeError):
                variables[name] = msgspec.json.decode(value)
    local: dict[str, object] = {}
    for block in _maps(data.get("locals")):
        local.update({key: value for key, value in block.items() if not key.startswith("__")})
    resources = {
        kind: {name: body for _, name, body in _resources(data, kind)}
        for block in _maps(data.get("resource"))
        for kind in block
    }
    return Scope({"var": variables, "local": local, **resources})


def _provider_zone(data: dict[str, object], scope: Scope) -> str:
    for _, name, body in _blocks(data, "provider"):
        value = scope.resolve(body.get("zone") or body.get("region"))
        if name == "google" and isinstance(value, str) and "${" not in value:
            return value
    return ""


_PLAN = "give the output of `terraform show -json PLAN` instead"
_REFERENCE = re.compile(r"\$\{\s*([\w.-]+)\s*\}")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of names: ``var``, ``local`` and resources."""

    names: Mapping[str, object]

    def value(self, reference: str) -> object:
        """Return the value of a reference such as ``var.zone``, or `_MISSING`."""
        here: object = self.names
        for step in reference.split("."):
            if isinstance(here, list) and len(here) == 1:
                here = here[0]  # a block, which may be a list of one
            if not isinstance(here, Mapping) or step not in here:
                return _MISSING
            here = here[step]
        return self.resolve(here)

    def resolve(self, data: object) -> object:
        """Return `data` with every reference that can be followed replaced by its value."""
        if isinstance(data, str):
            return self._text(data)
        if isinstance(data, list):
            return [self.resolve(item) for item in data]
        if isinstance(data, dict):
            return {as_text(self._text(str(key))) or str(key): self.resolve(item) for key, item in data.items()}
        return data

    def _text(self, text: str) -> object:
        whole = _REFERENCE.fullmatch(text)
        if whole is not None:
            value = self.value(whole[1])
            return text if value is _MISSING else value

        def replace(match: re.Match[str]) -> str:
            value = self.value(match[1])
            shown = None if value is _MISSING else as_text(value)
            return match[0] if shown is None else shown

        return _REFERENCE.sub(replace, text)
