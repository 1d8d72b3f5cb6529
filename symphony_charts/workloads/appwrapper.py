"""Kind `appwrapper`: the Jobs of all groups that end, queued and started as one; the twin of ``appwrapper.yaml``.

Only the Jobs are inside. The controller may create Services, but neither ConfigMaps nor NetworkPolicies; it calls a run
done when no pod runs any more, which a service never lets happen; and helm removes what it made itself.

Sources: project-codeflare/appwrapper v1.2.2, api/v1beta2, internal/controller, internal/webhook, config/rbac;
project-codeflare/multi-cluster-app-dispatcher v1.40.0, pkg/apis/controller/v1beta1, pkg/controller/queuejob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from symphony_charts.workloads.group import Member, Unit

__all__ = ["MAX_POD_SETS", "objects", "retries_of", "wrapped_job", "wrapper"]

# What the webhook takes, so that Kueue does.
MAX_POD_SETS = 8

_PREFIX = "workload.codeflare.dev.appwrapper/"
# The controller's own defaults fail a run whose pods wait for nodes for five minutes, or whose pod was replaced after
# the first, and delete a failed run with its logs at once.
_PATIENCE = {
    f"{_PREFIX}admissionGracePeriodDuration": "24h",
    f"{_PREFIX}warmupGracePeriodDuration": "24h",
    f"{_PREFIX}deletionOnFailureGracePeriodDuration": "1h",
}
# As TorchX has them.
_REQUEUING = {"timeInSeconds": 300, "maxTimeInSeconds": 0, "growthType": "exponential"}


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """The AppWrapper around a Job for each member."""
    if unit.members:
        jobs = [wrapped_job(member) for member in unit.members]
        yield wrapper(unit.name, unit.labels, jobs, unit.settings, retries_of(unit.members))


def wrapped_job(member: Member) -> dict[str, object]:
    """The Job of a member, inside.

    Neither controller forgives a failed pod, and a Job keeps those that it replaced: what a pod's `retries` would be are
    those of the whole.
    """
    fields = dict(member.fields)
    if _is_replaced(member):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            fields.pop(key, None)
        fields["backoffLimit"] = 0
    metadata = {"name": member.name, **member.metadata}
    spec = {"template": member.template, **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def retries_of(members: Iterable[Member]) -> int:
    """How often the whole starts again: as often as any of its groups whose pods are not restarted in place."""
    counts = [member.fields.get("backoffLimitPerIndex", member.fields.get("backoffLimit")) for member in members if _is_replaced(member)]
    return max((count for count in counts if isinstance(count, int)), default=0)


def wrapper(
    name: str,
    labels: Mapping[str, str],
    inside: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    retries: int,
) -> dict[str, object]:
    """The AppWrapper around the objects `inside`; `settings` are the values of ``workload``."""
    own = _sub(settings, "appwrapper")
    annotations = {key: str(value) for key, value in _sub(own, "annotations").items()}
    metadata: dict[str, object] = {"name": name, "labels": labels}
    if own.get("version") == "v1beta1":
        spec = _mcad_spec(inside, settings, retries)
    else:
        spec = {"components": [_component(item) for item in inside]}
        annotations = {**_PATIENCE, f"{_PREFIX}retryLimit": str(retries), **annotations}
    if annotations:
        metadata["annotations"] = annotations
    version = f"workload.codeflare.dev/{own.get('version') or 'v1beta2'}"
    return {"apiVersion": version, "kind": "AppWrapper", "metadata": metadata, "spec": spec}


def _is_replaced(member: Member) -> bool:
    """Whether a failed pod is replaced by a new one rather than restarted in place."""
    return _sub(member.template, "spec").get("restartPolicy") != "OnFailure"


def _component(item: Mapping[str, object]) -> dict[str, object]:
    if not _sub(_sub(item, "spec"), "template"):
        return {"template": item}
    return {"podSets": [{"path": "template.spec.template", "replicas": _pods(item)}], "template": item}


def _pods(item: Mapping[str, object]) -> int:
    """How many pods an object has at a time."""
    spec = _sub(item, "spec")
    if not _sub(spec, "template"):
        return 0
    count = spec.get("parallelism" if item["kind"] == "Job" else "replicas", 1)
    return count if isinstance(count, int) else 1


# --- MCAD -----------------------------------------------------------------------------------------------------------


def _mcad_spec(inside: Sequence[Mapping[str, object]], settings: Mapping[str, object], retries: int) -> dict[str, object]:
    spec: dict[str, object] = {"resources": {"GenericItems": [_item(item, retries) for item in inside]}}
    if isinstance(settings.get("priority"), int):
        spec["priority"] = settings["priority"]
    if retries:
        # It queues a run again that has too few pods: also one that has failed, which must not go on for ever.
        requeuing = {**_REQUEUING, "maxNumRequeuings": retries}
        spec["schedulingSpec"] = {"minAvailable": sum(map(_pods, inside)), "requeuing": requeuing}
    return spec


def _item(item: Mapping[str, object], retries: int) -> dict[str, object]:
    entry: dict[str, object] = {"replicas": 1, "generictemplate": item}
    if not _pods(item):
        return entry
    entry["custompodresources"] = list(_pod_resources(item))
    if item["kind"] == "Job":
        entry["completionstatus"] = "Complete" if retries else "Complete,Failed"
    return entry


def _pod_resources(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """What each container that runs asks for; MCAD adds them up, and asks for limits where there is no request."""
    pod = _sub(_sub(_sub(item, "spec"), "template"), "spec")
    sidecars = [one for one in _maps(pod, "initContainers") if one.get("restartPolicy") == "Always"]
    for container in (*sidecars, *_maps(pod, "containers")):
        resources = _sub(container, "resources")
        entry: dict[str, object] = {"replicas": _pods(item), "requests": _sub(resources, "requests")}
        if _sub(resources, "limits"):
            entry["limits"] = _sub(resources, "limits")
        yield entry


def _sub(item: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = item.get(key)
    return value if isinstance(value, Mapping) else {}


def _maps(item: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    value = item.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
