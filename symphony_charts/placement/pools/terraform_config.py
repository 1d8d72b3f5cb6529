"""Terraform configuration, JSON (`.tf.json`, Cloudwise's among them) or HCL (`.tf`), is turned into pools.

Nothing is executed: variables take their defaults or the values given, locals and literal `count`/`for_each` are
followed, anything else that a pool needs is a fault that asks for the plan's JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from symphony_charts.errors import ToolMissing
from symphony_charts.formats.field_reader import Faults, Fields, as_text
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.pools.terraform import CLUSTER, NODE_POOL, pools_of_cluster, read_pool

__all__ = ["Scope", "hcl_line_of", "instances", "parse_hcl", "read_config"]


def parse_hcl(text: str, file: str = "") -> dict[str, object]:
    """HCL text in the shape of Terraform's JSON syntax.

    Raises ToolMissing without python-hcl2, SpecError for text that is no HCL.
    """
    try:
        import hcl2  # only `.tf` files need it
    except ImportError as error:
        raise ToolMissing("reading .tf files needs python-hcl2", file, extra="hcl") from error
    from lark.exceptions import UnexpectedInput

    options = hcl2.SerializationOptions(with_comments=False, strip_string_quotes=True)
    try:
        data = hcl2.loads(text if text.endswith("\n") else text + "\n", serialization_options=options)
    except UnexpectedInput as error:
        faults = Faults(file=file)
        faults.add("no valid HCL", "", "check it with `terraform validate`", line=getattr(error, "line", None))
        faults.check()
    return {str(key): value for key, value in data.items()}


def hcl_line_of(text: str, path: str) -> int | None:
    """The line, from 1, where `path` (``resource.TYPE.NAME.node_config.machine_type``) stands in HCL text.

    What is not written there itself (it came out of a local) counts where the last step that is stands.
    """
    kind, name, *steps = [re.sub(r"\[[^]]*\]", "", step) for step in path.removeprefix("resource.").split(".")]
    head = re.compile(rf'^\s*resource\s+"?{re.escape(kind)}"?\s+"?{re.escape(name)}"?', re.MULTILINE)
    match = head.search(text)
    if match is None:
        return None
    position = match.start() + len(match[0]) - len(match[0].lstrip())
    for step in steps:
        inner = re.compile(rf'^\s*"?{re.escape(step)}"?\s*[={{"]', re.MULTILINE).search(text, position)
        if inner is None:
            break
        position = inner.end()
    return text.count("\n", 0, position) + 1


def read_config(
    data: dict[str, object], faults: Faults, catalog: Catalog, variables: Mapping[str, object]
) -> list[Pool]:
    """The pools of a configuration; `variables` override the defaults of its variables."""
    scope = _scope(data, variables)
    zone = _provider_zone(data, scope)
    pools: list[Pool | None] = []
    for path, body in _resources(data, NODE_POOL):
        for index, attributes in instances(body, scope):
            if zone and not attributes.get("node_locations") and not isinstance(attributes.get("location"), str):
                attributes["location"] = zone
            fields = Fields.of(attributes, path + index, faults)
            if "for_each" in attributes:
                fields.fault("cannot evaluate for_each", "", "give the output of `terraform show -json PLAN` instead")
                continue
            pools.append(read_pool(fields, catalog))
    for path, body in _resources(data, CLUSTER):
        for index, attributes in instances(body, scope):
            if _flag(attributes.get("remove_default_node_pool")):
                attributes.pop("node_config", None)
            pools += pools_of_cluster(Fields.of(attributes, path + index, faults), catalog)
    return [pool for pool in pools if pool is not None]


def _flag(value: object) -> bool:
    return value is True or value == "true"


def _maps(value: object) -> Iterator[dict[str, object]]:
    """The objects of a block that may be one object or a list of them."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield {str(key): inner for key, inner in item.items()}


def _resources(data: dict[str, object], kind: str) -> Iterator[tuple[str, dict[str, object]]]:
    for resources in _maps(data.get("resource")):
        for named in _maps(resources.get(kind)):
            for name, bodies in named.items():
                for body in _maps(bodies):
                    yield f"resource.{kind}.{name}", body


def _scope(data: dict[str, object], given: Mapping[str, object]) -> Scope:
    variables: dict[str, object] = {}
    for block in _maps(data.get("variable")):
        for name, bodies in block.items():
            for body in _maps(bodies):
                if "default" in body:
                    variables[name] = body["default"]
    variables.update(given)
    local: dict[str, object] = {}
    for block in _maps(data.get("locals")):
        local.update({key: value for key, value in block.items() if not key.startswith("__")})
    return Scope({"var": variables, "local": local})


def _provider_zone(data: dict[str, object], scope: Scope) -> str:
    """The zone of `provider.google`, where Cloudwise puts it."""
    for block in _maps(data.get("provider")):
        for body in _maps(block.get("google")):
            value = scope.resolve(body.get("zone") or body.get("region"))
            if isinstance(value, str) and "${" not in value:
                return value
    return ""


_EXPRESSION = re.compile(r"\$\{\s*([^{}]*?)\s*\}")
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[\s*\"?([^\]\"]+)\"?\s*\]")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean: ``var``, ``local``, ``each`` and ``count``."""

    names: Mapping[str, object] = field(default_factory=dict)

    def value(self, expression: str) -> object:
        """The value of a reference or literal, or `_MISSING`."""
        text = expression.strip().removeprefix("(").removesuffix(")").strip()
        if text in ("true", "false"):
            return text == "true"
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        if (call := re.fullmatch(r"(?:toset|tolist|tomap|tostring|tonumber)\((.*)\)", text)) is not None:
            return self.value(call[1])
        position, here = 0, _MISSING
        while position < len(text):
            step = _STEP.match(text, position)
            if step is None:
                return _MISSING
            here = _follow(self.names if position == 0 else here, step[1] or step[2])
            if here is _MISSING:
                return _MISSING
            position = step.end()
        return self.resolve(here)

    def resolve(self, data: object) -> object:
        """`data` with every expression that can be known replaced by its value."""
        if isinstance(data, str):
            return self._text(data)
        if isinstance(data, list):
            return [self.resolve(item) for item in data]
        if isinstance(data, dict):
            return {self._key(key): self.resolve(item) for key, item in data.items()}
        return data

    def _key(self, key: object) -> str:
        return as_text(self._text(str(key))) or str(key)

    def _text(self, text: str) -> object:
        whole = _EXPRESSION.fullmatch(text)
        if whole is not None:
            value = self.value(whole[1])
            return text if value is _MISSING else value

        def replace(match: re.Match[str]) -> str:
            value = self.value(match[1])
            shown = None if value is _MISSING else as_text(value)
            return match[0] if shown is None else shown

        return _EXPRESSION.sub(replace, text)


def _follow(here: object, step: str) -> object:
    if isinstance(here, Mapping):
        return here.get(step, _MISSING)
    if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
        return here[int(step)]
    return _MISSING


def instances(body: dict[str, object], scope: Scope) -> Iterator[tuple[str, dict[str, object]]]:
    """The resources that one block makes by `count` or `for_each`: (index such as ``[0]`` or ``["a"]``, attributes)."""
    count, each = scope.resolve(body.get("count")), scope.resolve(body.get("for_each"))
    plain = {key: value for key, value in body.items() if key not in ("count", "for_each")}
    if isinstance(count, int) and not isinstance(count, bool):
        for index in range(count):
            yield f"[{index}]", _resolved(plain, scope, {"count": {"index": index}})
    elif isinstance(each, dict):
        for key, value in each.items():
            yield f'["{key}"]', _resolved(plain, scope, {"each": {"key": key, "value": value}})
    elif isinstance(each, list):
        for key in each:
            yield f'["{key}"]', _resolved(plain, scope, {"each": {"key": key, "value": key}})
    else:
        yield "", _resolved(plain | ({"for_each": each} if each is not None else {}), scope, {})


def _resolved(body: dict[str, object], scope: Scope, more: Mapping[str, object]) -> dict[str, object]:
    result = Scope({**scope.names, **more}).resolve(body)
    return result if isinstance(result, dict) else {}
