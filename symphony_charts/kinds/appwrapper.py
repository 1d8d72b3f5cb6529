"""Kind `appwrapper`: the Jobs of all finite groups, queued and started as one, or a whole release in one object.

Sources: project-codeflare/appwrapper v1.2.2, api/v1beta2, internal/controller, internal/webhook, config/rbac;
project-codeflare/multi-cluster-app-dispatcher v1.40.0, pkg/apis/controller/v1beta1, pkg/controller/queuejob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, described_job, is_conductor, is_service
from symphony_charts.kinds.job import JobSet
from symphony_charts.spec.model import Experiment

GROUP = "workload.codeflare.dev"
MAX_POD_SETS = 8
"""The webhook's limit of pod sets, which is Kueue's limit."""

_RETRY_LIMIT = "workload.codeflare.dev.appwrapper/retryLimit"


class AppWrapper(Kind):
    """An AppWrapper around the Jobs of all finite groups."""

    name = "appwrapper"
    runs_as = "Job in an AppWrapper"
    controller = "the AppWrapper controller, or MCAD"
    gvks = ((f"{GROUP}/v1beta2", "AppWrapper"), (f"{GROUP}/v1beta1", "AppWrapper"))
    ends_either_way = True
    # For v1beta2; MCAD (v1beta1) allows every change, and acts on these.
    mutable = ("spec.suspend", "spec.priority", "spec.schedulingSpec")
    kueue_paths = (".spec.components[].podSetInfos",)
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True: services are Jobs beside the AppWrapper, which a conductor ends."""
        return True

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        spec = sub(item, "spec")
        yield from (sub(part, "template") for part in maps(spec, "components"))
        yield from (sub(part, "generictemplate") for part in maps(sub(spec, "resources"), "GenericItems"))

    def parts(self, item: Fields) -> Iterator[Fields]:
        spec = item.block("spec")
        yield from [part.block("template") for part in spec.blocks("components")]
        yield from [part.block("generictemplate") for part in spec.block("resources").blocks("GenericItems")]

    def jobs(self, item: Object) -> list[Object]:
        """Return the Jobs inside, including those of a JobSet inside."""
        return [job for inside in self.children(item) for job in self._jobs_inside(item, inside)]

    def _jobs_inside(self, wrapper: Object, item: Object) -> list[Object]:
        if item.get("kind") == "Job":
            return [described_job(wrapper, self.outcome(wrapper), str(item["metadata"]["name"]), item)]
        whole = {**item, "metadata": wrapper["metadata"], "status": wrapper.get("status") or {}}
        return JobSet().jobs(whole) if item.get("kind") == "JobSet" else []

    def outcome(self, item: Object) -> End | None:
        """Return the outcome. MCAD reports Completed even if pods have failed.

        MCAD also counts failed pods that were replaced.
        """
        end = super().outcome(item)
        return "failed" if end and item["status"].get("failed") and not self._has_retries(item) else end

    def _has_retries(self, item: Object) -> bool:
        specs = [sub(child, "spec") for child in self.children(item)]
        return any(spec.get("backoffLimit") or spec.get("backoffLimitPerIndex") for spec in specs)

    def restarts(self, item: Object) -> bool:
        """Return True if it has an attempt left or begins one. MCAD retries only if a minimum of pods is set."""
        spec = item["spec"]
        if "components" not in spec:
            return bool((spec.get("schedulingSpec") or {}).get("minAvailable"))
        limit = str((item["metadata"].get("annotations") or {}).get(_RETRY_LIMIT, ""))
        status = item.get("status") or {}
        # The controller counts an attempt before it deletes the Jobs of the previous one.
        is_at_it = status.get("phase") in ("Resetting", "Resuming")
        # Without our annotation the controller uses its own limit.
        return is_at_it or not limit.isdecimal() or int(status.get("retries") or 0) < int(limit)


# Objects in our charts that the controller may create. Source: appwrapper, config/rbac/role.yaml.
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
    """Return `objects` of an appwrapper release, moving those that the controller may create into the AppWrapper.

    `everything` moves all objects, for a controller with more rights. Services that end with the run, and the conductor
    that ends them, stay beside it.

    Raises:
        SpecError: There is no AppWrapper, or it would hold too many kinds of pods.
    """
    items = [dict(item) for item in objects]
    wrappers = [item for item in items if item["kind"] == "AppWrapper"]
    if not wrappers:
        what = "an AppWrapper needs a finite process, and all processes of this experiment are services"
        raise SpecError.one(what, "processes")
    others = [item for item in items if item["kind"] != "AppWrapper"]
    # Services would keep the AppWrapper from its end, for which their conductor waits.
    beside = [item for item in others if is_conductor(item) or is_service(item)]
    others = [item for item in others if item not in beside]
    inside = [item for item in others if everything or (item["apiVersion"], item["kind"]) in _MAY_CREATE]
    outside = [item for item in others if item not in inside]
    spec = _with(sub(wrappers[0], "spec"), inside)
    sets = sum(len(maps(component, "podSets")) for component in maps(spec, "components"))
    if sets > MAX_POD_SETS:
        what = f"an AppWrapper ({GROUP}/v1beta2) can have at most {MAX_POD_SETS} kinds of pods, not {sets}"
        raise SpecError.one(what, "groups", "put processes into fewer groups, or leave the services to the chart")
    services = tuple(_title(item) for item in inside if _pods_of(item))
    whole = (*outside, *beside, {**wrappers[0], "spec": spec})
    return Whole(objects=whole, outside=tuple(map(_title, outside)), services=services)


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
    """Yield the requests of each running container. MCAD sums them, and counts limits if there are no requests."""
    pod = sub(item, "spec", "template", "spec")
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


def _title(item: Object) -> str:
    return f"{item['kind']}/{sub(item, 'metadata').get('name')}"
