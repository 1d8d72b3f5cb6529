"""Kind `appwrapper`: the Jobs of all groups that end, queued and started as one; the twin of ``appwrapper.yaml``.

Only the Jobs are inside. The controller may create Services, but neither ConfigMaps nor NetworkPolicies; it calls a run
done when no pod runs any more, which a service never lets happen; and helm removes what it made itself.

Sources: project-codeflare/appwrapper v1.2.2, api/v1beta2, internal/controller, internal/webhook, config/rbac;
project-codeflare/multi-cluster-app-dispatcher v1.40.0, pkg/apis/controller/v1beta1, pkg/controller/queuejob.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, described_job
from symphony_charts.kinds.group import Member, Unit
from symphony_charts.kinds.jobset import JobSet
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of as pods_in
from symphony_charts.spec.workload import AppwrapperSettings, Workload

__all__ = ["GROUP", "MAX_POD_SETS", "AppWrapper", "component", "generic_item", "pods_of"]

GROUP = "workload.codeflare.dev"
# What the webhook takes, so that Kueue does.
MAX_POD_SETS = 8

_PREFIX = "workload.codeflare.dev.appwrapper/"
_RETRY_LIMIT = f"{_PREFIX}retryLimit"
# The controller's own defaults fail a run whose pods wait for nodes for five minutes, or whose pod was replaced after
# the first, and delete a failed run with its logs at once.
_PATIENCE = {
    f"{_PREFIX}admissionGracePeriodDuration": "24h",
    f"{_PREFIX}warmupGracePeriodDuration": "24h",
    f"{_PREFIX}deletionOnFailureGracePeriodDuration": "1h",
}


# The fields by which a Job retries its replicas.
_OF_RETRIES = ("backoffLimitPerIndex", "maxFailedIndexes")


class AppWrapper(Kind):
    """An AppWrapper around the Jobs of all groups that end."""

    name = "appwrapper"
    runs_as = "Job in an AppWrapper"
    controller = "the AppWrapper controller, or MCAD"
    gvks = ((f"{GROUP}/v1beta2", "AppWrapper"), (f"{GROUP}/v1beta1", "AppWrapper"))
    ends_either_way = True
    # Of v1beta2; MCAD (v1beta1) lets everything change, and acts on these.
    mutable = ("spec.suspend", "spec.priority", "spec.schedulingSpec")
    kueue_paths = (".spec.components[].podSetInfos",)
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")

    def settings(self, workload: Workload) -> dict[str, object]:
        """Version and annotations, where they are not the usual ones."""
        own = workload.appwrapper
        return {} if own == AppwrapperSettings() else {"version": own.version, "annotations": dict(own.annotations)}

    def spec_faults(self, experiment: Experiment) -> Iterator[Problem]:
        """More groups than its webhook takes."""
        groups = [pod for pod in pods_in(experiment).values() if pod.is_finite]
        if experiment.workload.appwrapper.version == "v1beta2" and len(groups) > MAX_POD_SETS:
            what = f"an AppWrapper holds at most {MAX_POD_SETS} groups that end, not {len(groups)}"
            yield Problem(what=what, path="workload.kind", next="put processes into fewer groups, or use `jobset`")

    def reads_priority(self, workload: Mapping[str, object]) -> bool:
        """MCAD does."""
        return sub(workload, "appwrapper").get("version") == "v1beta1"

    def reads_minimum(self, workload: Mapping[str, object]) -> bool:
        """MCAD does."""
        return self.reads_priority(workload)

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
        """The AppWrapper around a Job for each member."""
        if not unit.members:
            return
        own = sub(unit.settings, "appwrapper")
        version = own.get("version") or "v1beta2"
        annotations = {key: str(value) for key, value in sub(own, "annotations").items()}
        if version == "v1beta1":
            spec = _mcad_spec(unit.members, unit.settings)
        else:
            spec = {"components": [component(_unforgiven(member)) for member in unit.members]}
            # The whole starts again as often as any of its groups whose pods are not restarted in place would have.
            retries = max(member.group.replacements for member in unit.members)
            annotations = {**_PATIENCE, _RETRY_LIMIT: str(retries), **annotations}
        metadata = {"name": unit.name, "labels": unit.labels, **({"annotations": annotations} if annotations else {})}
        yield {"apiVersion": f"{GROUP}/{version}", "kind": "AppWrapper", "metadata": metadata, "spec": spec}

    def children(self, item: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """The objects inside."""
        spec = sub(item, "spec")
        yield from (sub(part, "template") for part in maps(spec, "components"))
        yield from (sub(part, "generictemplate") for part in maps(sub(spec, "resources"), "GenericItems"))

    def parts(self, item: Fields) -> Iterator[Fields]:
        """The objects inside."""
        spec = item.block("spec")
        yield from [part.block("template") for part in spec.blocks("components")]
        yield from [part.block("generictemplate") for part in spec.block("resources").blocks("GenericItems")]

    def jobs(self, item: Object) -> list[Object]:
        """The Jobs inside, and those of a JobSet inside."""
        return [job for inside in _wrapped_items(item["spec"]) for job in self._jobs_inside(item, inside)]

    def _jobs_inside(self, wrapper: Object, item: Object) -> list[Object]:
        if item.get("kind") == "Job":
            return [described_job(wrapper, self.outcome(wrapper), str(item["metadata"]["name"]), item)]
        whole = {**item, "metadata": wrapper["metadata"], "status": wrapper.get("status") or {}}
        return JobSet().jobs(whole) if item.get("kind") == "JobSet" else []

    def outcome(self, item: Object) -> End | None:
        """How it ended: MCAD says Completed of a run whose pods have ended, whichever way.

        MCAD counts also failures that were made good.
        """
        end = super().outcome(item)
        return "failed" if end and item["status"].get("failed") and not _has_retries(item) else end

    def restarts(self, item: Object) -> bool:
        """Whether it has a try left or begins one; MCAD does only where it is told how many pods there have to be."""
        spec = item["spec"]
        if "components" not in spec:
            return bool((spec.get("schedulingSpec") or {}).get("minAvailable"))
        limit = str((item["metadata"].get("annotations") or {}).get(_RETRY_LIMIT, ""))
        status = item.get("status") or {}
        # A try is counted before the Jobs of the one before are gone.
        is_at_it = status.get("phase") in ("Resetting", "Resuming")
        # Without a number of ours the controller has its own.
        return is_at_it or not limit.isdecimal() or int(status.get("retries") or 0) < int(limit)


def component(item: Mapping[str, object]) -> dict[str, object]:
    """The part of an AppWrapper v1beta2 that makes `item`."""
    if not pods_of(item):
        return {"template": item}
    return {"podSets": [{"path": "template.spec.template", "replicas": pods_of(item)}], "template": item}


def generic_item(item: Mapping[str, object], completion: str = "") -> dict[str, object]:
    """The part of an AppWrapper v1beta1 that makes `item`, which has ended with a condition of `completion`."""
    entry: dict[str, object] = {"replicas": 1, "generictemplate": item}
    if pods_of(item):
        entry["custompodresources"] = list(_pod_resources(item))
    if completion:
        entry["completionstatus"] = completion
    return entry


def pods_of(item: Mapping[str, object]) -> int:
    """How many pods an object has at a time."""
    spec = sub(item, "spec")
    if not sub(spec, "template"):
        return 0
    count = spec.get("parallelism" if item["kind"] == "Job" else "replicas", 1)
    return count if isinstance(count, int) else 1


def _job(member: Member, fields: Mapping[str, object]) -> dict[str, object]:
    metadata = {"name": member.name, **member.metadata}
    spec = {"template": member.template, **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _unforgiven(member: Member) -> dict[str, object]:
    """The Job of a member of v1beta2.

    The controller forgives no failed pod, and a Job keeps those that it replaced: what would be retries of a pod are
    retries of the whole.
    """
    if not member.group.replacements:
        return _job(member, member.fields)
    fields = {key: value for key, value in member.fields.items() if key not in _OF_RETRIES}
    return _job(member, {**fields, "backoffLimit": 0})


def _mcad_spec(members: Sequence[Member], settings: Mapping[str, object]) -> dict[str, object]:
    items = [generic_item(_job(member, member.fields), "Complete,Failed") for member in members]
    spec: dict[str, object] = {"resources": {"GenericItems": items}}
    if settings.get("priority") is not None:
        spec["priority"] = settings["priority"]
    if any(member.group.min_replicas is not None for member in members):
        # Only where it is asked for: MCAD queues again what has too few pods, also a run that has failed, and without
        # end (v1.40 never counts up what its maxNumRequeuings is compared with).
        spec["schedulingSpec"] = {"minAvailable": sum(member.group.least for member in members)}
    return spec


def _pod_resources(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """What each container that runs asks for; MCAD adds them up, and asks for limits where there is no request."""
    pod = sub(sub(sub(item, "spec"), "template"), "spec")
    sidecars = [one for one in maps(pod, "initContainers") if one.get("restartPolicy") == "Always"]
    for container in (*sidecars, *maps(pod, "containers")):
        resources = sub(container, "resources")
        entry: dict[str, object] = {"replicas": pods_of(item), "requests": sub(resources, "requests")}
        if sub(resources, "limits"):
            entry["limits"] = sub(resources, "limits")
        yield entry


def _wrapped_items(spec: Object) -> list[Object]:
    """The objects in a live AppWrapper, of v1beta2 and of v1beta1."""
    items = [one.get("template") for one in spec.get("components") or []]
    items += [one.get("generictemplate") for one in (spec.get("resources") or {}).get("GenericItems") or []]
    return [item for item in items if item]


def _has_retries(wrapper: Object) -> bool:
    specs = [item.get("spec") or {} for item in _wrapped_items(wrapper.get("spec") or {})]
    return any(spec.get("backoffLimit") or spec.get("backoffLimitPerIndex") for spec in specs)
