"""A whole release inside one AppWrapper, which can be applied as a single object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.appwrapper import GROUP, MAX_POD_SETS
from symphony_charts.kinds.base import Object

__all__ = ["Whole", "absorb"]

# The kinds of objects in our charts that the controller may create. Source: appwrapper, config/rbac/role.yaml.
_MAY_CREATE = frozenset(
    {("v1", "Service"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("scheduling.x-k8s.io/v1alpha1", "PodGroup")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The objects of a release, the AppWrapper last.

    `outside` names the objects that are not in it, `services` those inside that never end.
    """

    objects: tuple[dict[str, object], ...]
    outside: tuple[str, ...]
    services: tuple[str, ...]


def absorb(objects: Iterable[Mapping[str, object]], *, everything: bool = False) -> Whole:
    """Return `objects` of a release of kind appwrapper, with those in its AppWrapper that the controller may create.

    With `everything` all objects are in it, for a controller that has more rights.

    Raises:
        SpecError: There is no AppWrapper, or it would hold too many kinds of pods.
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
    services = tuple(_title(item) for item in inside if _pods_of(item))
    return Whole(objects=(*outside, wrapper), outside=tuple(map(_title, outside)), services=services)


def _with(spec: Object, inside: list[dict[str, object]]) -> dict[str, object]:
    if "components" in spec:
        return {**spec, "components": [*map(_component, inside), *maps(spec, "components")]}
    items = [*map(_generic_item, inside), *maps(sub(spec, "resources"), "GenericItems")]
    made: dict[str, object] = {**spec, "resources": {"GenericItems": items}}
    if "schedulingSpec" in spec:
        scheduling = sub(spec, "schedulingSpec")
        least = scheduling.get("minAvailable")
        more = sum(map(_pods_of, inside))
        made["schedulingSpec"] = {**scheduling, "minAvailable": (least if isinstance(least, int) else 0) + more}
    return made


def _component(item: Object) -> dict[str, object]:
    if not _pods_of(item):
        return {"template": item}
    return {"podSets": [{"path": "template.spec.template", "replicas": _pods_of(item)}], "template": item}


def _generic_item(item: Object) -> dict[str, object]:
    resources = list(_pod_resources(item)) if _pods_of(item) else []
    return {"replicas": 1, "generictemplate": item, **({"custompodresources": resources} if resources else {})}


def _pod_resources(item: Object) -> Iterator[dict[str, object]]:
    """Yield what each running container requests. MCAD adds all up, and counts limits if nothing is requested."""
    pod = sub(sub(sub(item, "spec"), "template"), "spec")
    sidecars = [one for one in maps(pod, "initContainers") if one.get("restartPolicy") == "Always"]
    for container in (*sidecars, *maps(pod, "containers")):
        resources = sub(container, "resources")
        limits = {"limits": sub(resources, "limits")} if sub(resources, "limits") else {}
        yield {"replicas": _pods_of(item), "requests": sub(resources, "requests"), **limits}


def _pods_of(item: Object) -> int:
    spec = sub(item, "spec")
    if not sub(spec, "template"):
        return 0
    count = spec.get("parallelism" if item["kind"] == "Job" else "replicas", 1)
    return count if isinstance(count, int) else 1


def _check(wrapper: Object) -> None:
    sets = sum(len(maps(one, "podSets")) for one in maps(sub(wrapper, "spec"), "components"))
    if sets > MAX_POD_SETS:
        what = f"an AppWrapper ({GROUP}/v1beta2) holds at most {MAX_POD_SETS} kinds of pods, not {sets}"
        raise SpecError.one(what, "groups", "put processes into fewer groups, or leave the services to the chart")


def _title(item: Object) -> str:
    return f"{item['kind']}/{sub(item, 'metadata').get('name')}"
