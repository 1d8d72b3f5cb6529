"""A whole release inside one AppWrapper: what can be handed over as a single object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.kinds.appwrapper import GROUP, MAX_POD_SETS, component, generic_item, pods_of

__all__ = ["Whole", "absorb"]

Object: TypeAlias = Mapping[str, object]

# What the role of the AppWrapper controller lets it create, of what our charts make; its config/rbac/role.yaml.
_MAY_CREATE = frozenset(
    {("v1", "Service"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("scheduling.x-k8s.io/v1alpha1", "PodGroup")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The AppWrapper last, after the objects that stand outside of it; `services` never let it end."""

    objects: tuple[dict[str, object], ...]
    outside: tuple[str, ...]
    services: tuple[str, ...]


def absorb(objects: Iterable[Mapping[str, object]], *, everything: bool = False) -> Whole:
    """`objects` of a release of kind appwrapper with all those in its AppWrapper that its controller may create.

    `everything`: all objects, for a controller that was given more rights. Raises SpecError where there is no
    AppWrapper, or where it would hold too many kinds of pods.
    """
    items = [dict(item) for item in objects]
    wrappers = [item for item in items if item["kind"] == "AppWrapper"]
    if not wrappers:
        raise SpecError.one("an AppWrapper runs what ends by itself, and nothing here does", "processes")
    others = [item for item in items if item["kind"] != "AppWrapper"]
    inside = [item for item in others if everything or (item["apiVersion"], item["kind"]) in _MAY_CREATE]
    outside = [item for item in others if item not in inside]
    wrapper = {**wrappers[0], "spec": _with(sub(wrappers[0], "spec"), inside)}
    _check(wrapper)
    services = tuple(_title(item) for item in inside if pods_of(item))
    return Whole(objects=(*outside, wrapper), outside=tuple(map(_title, outside)), services=services)


def _with(spec: Object, inside: list[dict[str, object]]) -> dict[str, object]:
    """The spec of the AppWrapper with `inside` before its Jobs."""
    if "components" in spec:
        return {**spec, "components": [*map(component, inside), *_list(spec, "components")]}
    items = [*map(generic_item, inside), *_list(sub(spec, "resources"), "GenericItems")]
    made: dict[str, object] = {**spec, "resources": {"GenericItems": items}}
    if "schedulingSpec" in spec:
        scheduling = sub(spec, "schedulingSpec")
        least = scheduling.get("minAvailable")
        more = sum(map(pods_of, inside))
        made["schedulingSpec"] = {**scheduling, "minAvailable": (least if isinstance(least, int) else 0) + more}
    return made


def _check(wrapper: Object) -> None:
    sets = sum(len(_list(one, "podSets")) for one in _list(sub(wrapper, "spec"), "components"))
    if sets > MAX_POD_SETS:
        what = f"an AppWrapper ({GROUP}/v1beta2) holds at most {MAX_POD_SETS} kinds of pods, not {sets}"
        raise SpecError.one(what, "groups", "put processes into fewer groups, or leave the services to the chart")


def _title(item: Object) -> str:
    return f"{item['kind']}/{sub(item, 'metadata').get('name')}"


def _list(item: Object, key: str) -> list[Object]:
    value = item.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
