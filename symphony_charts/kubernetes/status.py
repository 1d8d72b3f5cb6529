"""Compute the status of an experiment on Kubernetes from its labelled objects; pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from symphony_charts.backend.status import (
    Event,
    ExperimentStatus,
    InstanceStatus,
    ServiceStatus,
    gather,
    overall,
    unfinished,
)
from symphony_charts.errors import Conflict
from symphony_charts.formats.data import sub
from symphony_charts.formats.printable import with_gpus
from symphony_charts.kinds.base import WAITING, Object, process_of
from symphony_charts.kinds.registry import kind_for, may_start_again, parts_of, verdict_of
from symphony_charts.kubernetes.container_phase import (
    NO_QUEUE,
    Queue,
    container_statuses,
    moment_of,
    phase_of_container,
    phase_of_failure,
    phase_of_workload,
    reasons_of,
)

# Namespaces of the cluster itself: experiments do not belong here, and nothing is ever deleted.
_PROTECTED = frozenset({"kube-system", "kube-public", "kube-node-lease", "argocd", "flux-system"})
_MANAGERS = ("Argo CD", "Flux")
_TRACKED = "argocd.argoproj.io/tracking-id"
_FLUX = "helm.toolkit.fluxcd.io/name"
_HELM = "meta.helm.sh/release-name"
_BY_HAND = "symph.dev/held-by"


def managers_of(objects: Sequence[Object], releases: Sequence[Object]) -> tuple[str, ...]:
    """Return the managers: ``Argo CD application X``, ``Flux release X``, ``Helm release X, revision N``."""
    holders: dict[str, None] = {}
    for item in objects:
        labels, notes = item["metadata"].get("labels") or {}, item["metadata"].get("annotations") or {}
        if _TRACKED in notes:
            holders[f"Argo CD application {str(notes[_TRACKED]).partition(':')[0]}"] = None
        if _FLUX in labels:
            holders[f"Flux release {labels[_FLUX]}"] = None
        if notes.get(_BY_HAND) == "symph":
            holders["symph"] = None
    revisions = [int(item["metadata"]["labels"].get("version", 0)) for item in releases]
    if revisions:
        holders[f"Helm release {releases[0]['metadata']['labels']['name']}, revision {max(revisions)}"] = None
    elif not holders:
        # If helm's records are not readable, use its mark on the objects.
        marks = (item["metadata"].get("annotations") or {} for item in objects)
        holders |= {f"Helm release {notes[_HELM]}": None for notes in marks if _HELM in notes}
    return tuple(holders)


def refuse_protected(namespace: str) -> None:
    """Raise Conflict for a namespace of the cluster itself."""
    if namespace in _PROTECTED:
        raise Conflict(
            f"symph does not change experiments in {namespace}", next="choose another namespace: -n NAMESPACE"
        )


def refuse_managed(name: str, holders: tuple[str, ...], next_step: str) -> None:
    """Raise Conflict for an experiment that Git manages: it would come back at once, or the changes would conflict."""
    managed = [holder for holder in holders if holder.startswith(_MANAGERS)]
    if managed:
        raise Conflict(f'the {managed[0]} manages "{name}" from Git', next=next_step)


EXPERIMENT = "symph.dev/experiment"
INSTANCE = "app.kubernetes.io/instance"
_GROUP, _PROCESS, _RUN = "symph.dev/group", "symph.dev/process", "symph.dev/run"
_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
_CHART = "helm.sh/chart"
# The kubelet's messages about probes (kubernetes/kubernetes, pkg/kubelet/prober/prober.go).
_PROBED = re.compile(r"(?:Readiness|Startup) probe (?:failed|errored and resulted in \w+ state):\s*(.*)")
# Reasons that only mean "not started"; an event may give the cause.
_WITHOUT_REASON = ("", "ContainerCreating", "PodInitializing", "no pod yet")
_REPLACED = "not ready: its controller will replace it"
_MISSING = re.compile(r'secret "([^"]+)" not found')
_INDEXES = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "volcano.sh/task-index")


def name_of(item: Object) -> str:
    """Return the release name: the experiment's name unless another was chosen."""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get(INSTANCE) or labels[EXPERIMENT])


def status_of(
    name: str,
    workloads: Sequence[Object],
    pods: Sequence[Object],
    services: Sequence[Object] = (),
    releases: Sequence[Object] = (),
    *,
    queue: Queue = NO_QUEUE,
    now: float,
) -> ExperimentStatus:
    """Return the state of the experiment `name` from its objects.

    `releases` are helm's Secrets of that name; `queue` holds Kueue's records, also those of other experiments.
    """
    everything = [*workloads, *pods, *services]
    labels = everything[0]["metadata"]["labels"] if everything else {}
    instances = _instances(workloads, pods, reasons_of(workloads, queue), now)
    phase = verdict_of(workloads) or overall(instances)
    if phase == "failed" and may_start_again(workloads):
        phase = "running"
    if everything and all(item["metadata"].get("deletionTimestamp") for item in (*workloads, *pods) or everything):
        phase = "stopping"
    started = min((moment_of(item["metadata"]["creationTimestamp"]) for item in everything), default=now)
    ends = [instance.ended for instance in instances if instance.ended]
    return ExperimentStatus(
        name=name,
        experiment=str(labels.get(EXPERIMENT, name)),
        backend="kube",
        phase=phase,
        started=started,
        ended=max(ends) if ends and phase in ("succeeded", "failed") else None,
        run=next(filter(None, (_label(item, _RUN) for item in (*pods, *workloads))), ""),
        chart=next(filter(None, (_label(item, _CHART) for item in workloads)), ""),
        namespace=str(everything[0]["metadata"]["namespace"]) if everything else "",
        held_by=managers_of(everything, releases),
        instances=instances,
        services=tuple(map(_service, sorted(services, key=_name))),
        still_running=_still_running(instances, pods) if phase in ("succeeded", "failed") else (),
        ended_with_run=tuple(_ended_with_run(instances, workloads)),
        labels=labels,
    )


def _still_running(instances: Sequence[InstanceStatus], pods: Sequence[Object]) -> tuple[str, ...]:
    by_name = {_name(pod): pod["spec"] for pod in pods}
    return unfinished(instances, lambda one: _gpus(by_name[one.pod], one.process) if one.pod in by_name else 0)


def _ended_with_run(instances: Sequence[InstanceStatus], workloads: Sequence[Object]) -> Iterator[str]:
    """Yield the processes that the end of the run has ended, with their GPUs."""
    wanted = _wanted(workloads)
    for process in gather(instances):
        if all(one.phase == "stopped" and not one.pod for one in process.instances):
            makers = [wanted.get((one.group or one.process, one.index)) for one in process.instances]
            pods = [maker["spec"]["template"]["spec"] for maker in makers if maker]
            yield with_gpus(process.path, sum(_gpus(pod, process.name) for pod in pods))


def _gpus(pod: Object, process: str) -> int:
    containers = (container for container, _ in _containers(pod))
    limits = [sub(container, "resources", "limits") for container in containers if process_of(container) == process]
    return sum(int(str(count)) for each in limits for name, count in each.items() if name.endswith("/gpu"))


def event_of(item: Object) -> Event:
    series, about = item.get("series") or {}, item["involvedObject"]
    when = series.get("lastObservedTime") or item.get("lastTimestamp") or item.get("eventTime")
    return Event(
        time=moment_of(when or item["metadata"]["creationTimestamp"]),
        kind=str(item.get("type") or "Normal"),
        about=f"{about.get('kind', '')}/{about.get('name', '')}",
        reason=str(item.get("reason") or ""),
        message=str(item.get("message") or "").strip(),
        count=int(series.get("count") or item.get("count") or 1),
    )


def is_about(objects: Sequence[Object]) -> Callable[[Object], bool]:
    """Return a test for events about `objects` or their deleted pods, by the names of workloads."""
    names = {item["metadata"]["name"] for item in objects}
    makers = [(_name(item), item["kind"].lower()) for item in objects if item["kind"] not in ("Pod", "Service")]
    # The name of Kueue's record of a workload also starts with its kind.
    prefixes = tuple(f"{start}{name}-" for name, kind in makers for start in ("", f"{kind}-"))

    def is_about_them(event: Object) -> bool:
        name = str(event["involvedObject"].get("name") or "")
        return name in names or name.startswith(prefixes)

    return is_about_them


def lacks_reason(status: ExperimentStatus) -> bool:
    """Return True if an instance has not started or is not ready, and its objects do not give the reason."""
    return any(
        (instance.phase == "pending" and instance.reason in _WITHOUT_REASON) or _is_unready(instance)
        for instance in status.instances
    )


def _is_unready(instance: InstanceStatus) -> bool:
    return instance.phase == "running" and not instance.ready and not instance.is_step


def explained(
    status: ExperimentStatus, workloads: Sequence[Object], warnings: Iterable[Object], sealed: Sequence[Object]
) -> ExperimentStatus:
    """Return the status with the reasons that Warning events and SealedSecrets give, of any experiment.

    For an instance that has not started, it is the last warning about its pod or workload; for a running one that is
    not ready, the last message about its probe.
    """
    last = sorted(warnings, key=lambda item: event_of(item).time)
    makers = {_group(workload): _name(workload) for workload in workloads}

    def with_reason(instance: InstanceStatus) -> InstanceStatus:
        if _is_unready(instance):
            return _probed(instance, last)
        if instance.phase != "pending" or instance.reason not in _WITHOUT_REASON:
            return instance
        maker = makers.get(instance.group or instance.process, "")
        about = [event for event in last if _is_about(event, instance.pod, maker)]
        if not about:
            return instance
        reason = event_of(about[-1]).message.partition("\n")[0]
        return replace(instance, state=f"pending: {reason}", reason=reason)

    instances = tuple(_with_seal(with_reason(instance), sealed) for instance in status.instances)
    return replace(status, instances=instances)


def _probed(instance: InstanceStatus, last: Sequence[Object]) -> InstanceStatus:
    place = f"{{{instance.container or instance.process}}}"
    for event in reversed(last):
        about = event["involvedObject"]
        match = _PROBED.match(str(event.get("message") or ""))
        if match and about.get("name") == instance.pod and str(about.get("fieldPath") or place).endswith(place):
            return replace(instance, reason=f"not ready: {match[1].strip() or 'its probe failed'}")
    return instance


def _with_seal(instance: InstanceStatus, sealed: Sequence[Object]) -> InstanceStatus:
    missing = _MISSING.search(instance.reason) if instance.phase == "pending" else None
    for item in sealed if missing else ():
        conditions = (item.get("status") or {}).get("conditions") or []
        failed = next((each for each in conditions if (each["type"], each["status"]) == ("Synced", "False")), None)
        if missing and failed and _name(item) == missing[1]:
            reason = f"SealedSecret {missing[1]}: {failed.get('message') or 'it could not be decrypted'}"
            return replace(instance, state=f"pending: {reason}", reason=reason)
    return instance


def _is_about(event: Object, pod: str, maker: str) -> bool:
    """Return True if an event is about the pod; without a pod, about the workload that makes it or a part of that."""
    name = str(event["involvedObject"].get("name") or "")
    if pod:
        return name == pod
    return bool(maker) and (name == maker or name.startswith(f"{maker}-")) and event["involvedObject"]["kind"] != "Pod"


def _instances(
    workloads: Sequence[Object], pods: Sequence[Object], queue: Mapping[str, str], now: float
) -> tuple[InstanceStatus, ...]:
    """Return the containers of the newest pod of each replica; for replicas without a pod, their workload's state."""
    wanted = _wanted(workloads)
    newest: dict[tuple[str, int], Object] = {}
    restarted: dict[tuple[str, int], int] = {}
    for pod in sorted(pods, key=lambda item: (str(item["metadata"]["creationTimestamp"]), _name(item))):
        replica = replica_of(pod)
        maker = wanted.get(replica)
        if maker and _is_finite(maker) and _is_former(maker, pod):
            continue
        if replica in newest and not pod["metadata"].get("deletionTimestamp"):
            # A Job replaces a failed pod by a new one: that counts as a restart of its processes.
            is_same_run = _label(newest[replica], _RUN) == _label(pod, _RUN)
            restarted[replica] = restarted.get(replica, 0) + is_same_run
        elif replica in newest:
            continue
        newest[replica] = pod
    replicas = sorted({*newest, *(replica for replica in wanted if replica not in newest)})
    instances: list[InstanceStatus] = []
    for replica in replicas:
        count = sum(group == replica[0] for group, _ in {*wanted, *newest})
        if replica in newest:
            instances += _of_pod(newest[replica], replica, count, wanted.get(replica), restarted.get(replica, 0), now)
        else:
            instances += _of_workload(wanted[replica], replica, count, queue)
    return tuple(instances)


def _wanted(workloads: Sequence[Object]) -> dict[tuple[str, int], Object]:
    gone = [item for item in workloads if item["metadata"].get("deletionTimestamp")]
    alive = [item for item in workloads if not item["metadata"].get("deletionTimestamp")]
    # An existing Job takes precedence over its description, and live objects over those being deleted.
    makers = (*gone, *(part for item in alive for part in parts_of(item)), *alive)
    kinds = ((item, kind_for(item)) for item in makers)
    return {(_group(item), index): item for item, kind in kinds if kind for index in range(kind.replicas(item))}


def _of_pod(
    pod: Object, place: tuple[str, int], count: int, workload: Object | None, restarted: int, now: float
) -> list[InstanceStatus]:
    group, index = place
    spec = pod["spec"]
    states = {seen["name"]: seen for seen in container_statuses(pod)}
    is_endless = not all(map(_is_finite, pod["metadata"].get("ownerReferences") or []))
    # A JobSet restarts all groups together, and counts it.
    restarted += int((pod["metadata"].get("labels") or {}).get(_ATTEMPT) or 0)
    instances = []
    for container, kind in _containers(spec):
        seen, process = states.get(container["name"], {}), process_of(container)
        phase, state, reason = phase_of_container(pod, seen, now)
        if phase == "failed":
            phase, state = phase_of_failure(pod, kind, workload, state)
        ended = (seen.get("state") or {}).get("terminated") or {}
        running = (seen.get("state") or {}).get("running") or {}
        last = (seen.get("lastState") or {}).get("terminated") or {}
        begun = ended.get("startedAt") or running.get("startedAt")
        is_former = phase == "running" and workload is not None and _is_former(workload, pod)
        instances.append(
            InstanceStatus(
                name=_numbered(process, index, count),
                process=process,
                container="" if process == container["name"] else container["name"],
                group="" if _is_alone(pod, process) else group,
                index=index,
                phase=phase,
                state=state,
                ready=bool(seen.get("ready")) and phase == "running" and not is_former,
                restarts=int(seen.get("restartCount") or 0) + restarted,
                status=ended.get("exitCode", last.get("exitCode")),
                reason=_REPLACED if is_former else reason,
                place=str(spec.get("nodeName") or ""),
                pod=_name(pod),
                started=moment_of(begun) if begun else None,
                ended=moment_of(ended["finishedAt"]) if ended.get("finishedAt") else None,
                is_step=kind == "step",
                is_service=kind == "sidecar" or is_endless,
            )
        )
    return instances


def _of_workload(
    workload: Object, replica: tuple[str, int], count: int, queue: Mapping[str, str]
) -> list[InstanceStatus]:
    group, index = replica
    template = workload["spec"].get("template") or {"metadata": {}, "spec": {"containers": []}}
    phase, state = phase_of_workload(workload, queue, index)
    return [
        InstanceStatus(
            name=_numbered(process_of(container), index, count),
            process=process_of(container),
            group="" if _is_alone(template, process_of(container)) else group,
            index=index,
            phase=phase,
            state=state,
            reason="" if phase == "succeeded" else state.partition(": ")[2] or state,
            is_step=kind == "step",
            is_service=kind == "sidecar" or not _is_finite(workload),
        )
        for container, kind in _containers(template["spec"])
    ]


def _containers(spec: Object) -> list[tuple[Object, str]]:
    first = [
        (container, "sidecar" if container.get("restartPolicy") == "Always" else "step")
        for container in spec.get("initContainers") or []
    ]
    rest = [container for container in spec.get("containers") or [] if container["name"] != WAITING]
    return [*first, *((container, "process") for container in rest)]


def _is_alone(pod: Object, process: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return bool(labels.get(_GROUP) == process and labels.get(_PROCESS) in (None, process))


def _is_finite(item: Object) -> bool:
    kind = kind_for(item)
    return kind is None or kind.is_finite


def _is_former(workload: Object, pod: Object) -> bool:
    kind = kind_for(workload)
    return kind is not None and kind.is_former(workload, pod)


def _numbered(name: str, index: int, count: int) -> str:
    return f"{name}-{index}" if count > 1 else name


def replica_of(pod: Object) -> tuple[str, int]:
    """Return the group of a pod and its replica index."""
    meta = pod["metadata"]
    marks = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    index = next((marks[key] for key in _INDEXES if key in marks), "0")
    return _group(pod), int(index)


def _group(item: Object) -> str:
    return _label(item, _GROUP) or _name(item)


def _label(item: Object, key: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(key, ""))


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _service(item: Object) -> ServiceStatus:
    spec, labels = item["spec"], item["metadata"].get("labels") or {}
    port = (spec.get("ports") or [{"port": 0}])[0]["port"]
    # Clouds provide either an address or a name.
    entries = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    outside = f"{entries[0].get('ip') or entries[0].get('hostname')}:{port}" if entries else ""
    name = str(labels.get("symph.dev/service") or _name(item))
    return ServiceStatus(name=name, address=f"{_name(item)}:{port}", outside=outside)
