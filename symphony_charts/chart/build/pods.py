"""Pod templates as trees, and the shared parts of kinds: specs of Indexed Jobs and StatefulSets, gangs.

Kueue reads labels of a workload; the other gang schedulers read a PodGroup.

Sources: kubernetes-sigs/scheduler-plugins, pkg/coscheduling (PodGroup v1alpha1, label ``.../pod-group``);
volcano-sh/volcano, pkg/scheduler (PodGroup v1beta1, annotation ``scheduling.k8s.io/group-name``); kubernetes/api,
scheduling/v1alpha2 and v1beta1 (PodGroup, ``spec.schedulingGroup`` of pods).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.chart.build.containers import POD_VALUES, containers, laid_on
from symphony_charts.chart.build.data import annotated, files_volume, has_only_files, metadata, volumes_of
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.tree import (
    Block,
    Call,
    Either,
    Helper,
    Include,
    Let,
    Merged,
    NonZero,
    Sum,
    Text,
    Tree,
    Value,
    When,
    go_path,
    optional,
)
from symphony_charts.formats.data import sub
from symphony_charts.kinds.base import UNTIL
from symphony_charts.spec.sources import SecuritySettings, topology_of
from symphony_charts.spec.workload import GANGS_OF_PODS


def queue_values(draft: Draft) -> dict[str, str]:
    workload = draft.experiment.workload
    values = {"queue": workload.queue or "", "priority": workload.queue_priority or ""}
    read = {"kueue": ("queue", "priority"), "volcano": ("queue",)}.get(workload.gang, ())
    return {key: values[key] for key in read}


def queue_labels(draft: Draft) -> dict[str, Tree]:
    """Return the labels with which Kueue queues an object."""
    if draft.experiment.workload.gang != "kueue":
        return {}
    return {
        f"kueue.x-k8s.io/{label}": optional(f".Values.workload.{key}")
        for label, key in (("queue-name", "queue"), ("priority-class", "priority"))
    }


def _gang_parts(draft: Draft, group: Group) -> tuple[dict[str, Tree], dict[str, Tree], dict[str, Tree]]:
    """Return the labels, the annotations and the fields of the spec that add a pod to its gang."""
    if not _is_in_gang(draft, group):
        return {}, {}, {}
    name = _gang_name(draft, group)
    match draft.experiment.workload.gang:
        case "coscheduling":
            return {"scheduling.x-k8s.io/pod-group": name}, {}, {}
        case "native":
            return {}, {}, {"schedulingGroup": {"podGroupName": name}}
        case _:
            return {}, {"scheduling.k8s.io/group-name": name}, {"schedulerName": "volcano"}


def named_pod_groups(draft: Draft) -> list[tuple[Text, list[Group], dict[str, Tree]]]:
    """Return name, groups and object (without metadata) of each PodGroup of a run."""
    members = [group for group in draft.groups.values() if _is_in_gang(draft, group)]
    is_each = draft.experiment.workload.gang_scope == "group"
    gangs = [[group] for group in members] if is_each else [members]
    return [
        (_gang_name(draft, gang[0]), gang, _pod_group(draft, Sum(tuple(map(least, gang))))) for gang in gangs if gang
    ]


def _is_in_gang(draft: Draft, group: Group) -> bool:
    return not group.is_kept and draft.kind.has_pod_groups and draft.experiment.workload.gang in GANGS_OF_PODS


def _gang_name(draft: Draft, group: Group) -> Text:
    part = group.part if draft.experiment.workload.gang_scope == "group" else "gang"
    return Text(f"{{$fullname}}-{part}-{{$run}}")


def least(group: Group, path: str = "") -> tuple[str | int, ...]:
    """Return the terms of which the gang's minimum is the smallest. `path` is the path of the group.

    A StatefulSet replaces its pods one by one, so a new run that waited for all of them would wait forever.
    """
    path = path or group.path
    replicas = f"{path}.replicas"
    if group.pod.settings.min_replicas is not None:
        return (f"{path}.minReplicas", replicas)
    return (replicas,) if group.is_finite else (1, replicas)


def _pod_group(draft: Draft, minimum: Sum) -> dict[str, Tree]:
    workload, topology = draft.experiment.workload, draft.experiment.placement.topology
    if workload.gang == "native":
        spec: dict[str, Tree] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        if topology:
            spec["schedulingConstraints"] = {"topology": [{"key": topology_of(topology)[1]}]}
        version = f"scheduling.k8s.io/{workload.gang_version}"
    elif workload.gang == "coscheduling":
        version, spec = "scheduling.x-k8s.io/v1alpha1", {"minMember": minimum}
    else:
        version, spec = "scheduling.volcano.sh/v1beta1", {"minMember": minimum}
        spec["queue"] = optional(".Values.workload.queue")
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {}, "spec": spec}


# Labels that only the templates may set.
_OUR_LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "symph.dev/experiment",
    "symph.dev/group",
    "symph.dev/process",
    "symph.dev/run",
)


def pod_helpers(draft: Draft) -> list[Helper]:
    """Return the helpers with the common parts of all pods."""
    usual = [group for group in draft.groups.values() if not any(_own_metadata(draft, group))]
    metadata = _metadata(draft, Include("selector", "."), ({}, {}, {}), ".root")
    made = [Helper(name="podMetadata", tree=metadata)] if usual else []
    made.append(Helper(name="podDefaults", tree=_defaults(draft, "."), is_constant=True))
    tree = Merged(Include("podDefaults", ".root"), _of_values(draft, ".root", ".group", ".fullname"))
    return [*made, Helper(name="podSpec", tree=tree)]


# The labels that select a group's pods.
SELECTOR = Helper(name="selector", tree=Merged(Include("selectorLabels", ".root"), Include("ownLabels", ".")))


def of_group(group: Group, *, with_run: bool | None = None) -> dict[str, Any]:
    """Return the arguments of helpers for a group; they include its run unless its pods outlive runs."""
    is_of_run = not group.is_kept if with_run is None else with_run
    return {"root": ".", "group": f'"{group.name}"'} | ({"run": "$run"} if is_of_run else {})


def selector(draft: Draft, group: Group, *, with_run: bool | None = None) -> Tree:
    """Return the labels that select the pods of `group`, limited to its run unless it outlives runs."""
    own = draft.kind.selector(group) if draft.kind.runs(group) else None
    if own is not None:
        return own
    return Include("selector", of_group(group, with_run=with_run))


def pod_template(draft: Draft, group: Group) -> dict[str, Tree]:
    own = _own_metadata(draft, group)
    processes = list(group.pod.processes)
    arguments = of_group(group) | ({"process": f'"{processes[0]}"'} if len(processes) == 1 else {})
    metadata = (
        _metadata(draft, Include("selector", arguments), own, ".") if any(own) else Include("podMetadata", arguments)
    )
    overlay = sub(group.pod.settings.pod_overlay, "spec")
    rest = {key: item for key, item in overlay.items() if key not in POD_VALUES}
    return {"metadata": metadata, "spec": _spec(draft, group, rest)}


def _metadata(
    draft: Draft, selector: Tree, own: tuple[dict[str, Tree], dict[str, Tree], dict[str, Any]], root: str
) -> Tree:
    labels, annotations, rest = own
    values = f"{root.removesuffix('.')}.Values"
    constants = {"app.kubernetes.io/component": "experiment", "symph.dev/experiment": draft.experiment.name}
    users = Block(f"{values}.podAnnotations", via="strings")
    return {
        "labels": Merged(selector, constants | labels, Block(f"{values}.podLabels", via="strings")),
        "annotations": Merged(annotations, users) if annotations else users,
        **rest,
    }


def _own_metadata(draft: Draft, group: Group) -> tuple[dict[str, Tree], dict[str, Tree], dict[str, Any]]:
    over = sub(group.pod.settings.pod_overlay, "metadata")
    users = {**draft.experiment.labels, **group.pod.settings.labels, **sub(over, "labels")}
    gang_labels, gang_annotations, _ = _gang_parts(draft, group)
    labels: dict[str, Tree] = {key: item for key, item in users.items() if key not in _OUR_LABELS} | gang_labels
    annotations: dict[str, Tree] = {}
    if len(group.pod.processes) > 1 or group.is_ended:
        main = (name for name in group.pod.processes if not group.is_sidecar(name))
        annotations["kubectl.kubernetes.io/default-container"] = next(main, next(iter(group.pod.processes)))
    if draft.experiment.networks:
        annotations["k8s.v1.cni.cncf.io/networks"] = ",".join(draft.experiment.networks)
    annotations |= {**draft.experiment.annotations, **group.pod.settings.annotations, **sub(over, "annotations")}
    annotations |= gang_annotations
    return labels, annotations, {key: item for key, item in over.items() if key not in ("labels", "annotations")}


def _spec(draft: Draft, group: Group, over: dict[str, Any]) -> Tree:
    """Return the pod spec. If an overlay changes a part that all pods share, write that part out here."""
    settings = group.pod.settings
    if over.get("hostNetwork") is True:
        # The default policy would resolve names with the node's DNS instead of the cluster's.
        over.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    is_member = draft.kind.runs(group)
    own = _gang_parts(draft, group)[2] | (draft.kind.pod_fields(draft, group) if is_member else {})
    if draft.experiment.workload.scheduler_name:
        own["schedulerName"] = draft.experiment.workload.scheduler_name
    if draft.needs_host_names(group) and group.is_finite:
        own["subdomain"] = Text(draft.kind.domain(group) if is_member else group.pods_service)
    if is_member or group.is_ended:
        own["restartPolicy"] = draft.kind.restart_policy(group) if is_member else "Never"
    if settings.grace_period is not None:
        own["terminationGracePeriodSeconds"] = settings.grace_period
    init, main = containers(draft, group, over)
    own |= {"initContainers": init} if init else {}
    own["containers"] = main
    volumes = [] if has_only_files(draft) else volumes_of(draft, group)
    own |= {"volumes": volumes} if volumes else {}
    if settings.service_account:
        over = {"serviceAccountName": settings.service_account, **over}
    shared = _defaults(draft, ".") | _of_values(draft, ".", "$group", "$fullname")
    if not over.keys() & shared.keys():
        arguments = {"root": ".", "group": "$group"} | ({"fullname": "$fullname"} if has_only_files(draft) else {})
        return Merged(Include("podSpec", arguments), laid_on(own, over, {}))
    defaults = {
        "securityContext": pod_security(draft.experiment.security),
        "imagePullSecrets": [{"name": name} for name in draft.experiment.image_pull_secrets],
    }
    return laid_on({**shared, **own}, over, defaults)


def pod_security(security: SecuritySettings) -> dict[str, Any]:
    numbers = {"runAsUser": security.run_as_user, "runAsGroup": security.run_as_group, "fsGroup": security.fs_group}
    return {
        "seccompProfile": {"type": "RuntimeDefault"},
        **({"runAsNonRoot": True} if security.level == "restricted" else {}),
        **{key: value for key, value in numbers.items() if value is not None},
    }


def _defaults(draft: Draft, root: str) -> dict[str, Tree]:
    """Return the fields that are the same in all pods."""
    values = f"{root.removesuffix('.')}.Values"
    account: dict[str, Tree] = {}
    if draft.experiment.service_account:
        names = Either((f"{values}.serviceAccount.create", f"{values}.serviceAccount.name"))
        account = {"serviceAccountName": When(names, Call("serviceAccountName", root))}
    return {
        "automountServiceAccountToken": draft.experiment.security.service_account_token,
        "enableServiceLinks": False,
        **account,
        "imagePullSecrets": Block(f"{values}.imagePullSecrets"),
        "securityContext": Block(f"{values}.podSecurityContext"),
    }


def _of_values(draft: Draft, root: str, group: str, fullname: str) -> dict[str, Tree]:
    """Return the fields with the values of the group at the path `group`."""
    priority, common = f"{group}.priorityClassName", f"{root.removesuffix('.')}.Values.priorityClassName"
    return {
        "nodeSelector": Block(f"{group}.nodeSelector", via="strings"),
        "affinity": Block(f"{group}.affinity"),
        "tolerations": Block(f"{group}.tolerations"),
        "topologySpreadConstraints": Block(f"{group}.topologySpreadConstraints"),
        "priorityClassName": When(Either((priority, common)), Value(priority, is_text=True, fallback=common)),
        **({"volumes": [files_volume(draft, fullname)]} if has_only_files(draft) else {}),
    }


def runs(group: Group) -> NonZero:
    """Return the condition that `group` has replicas."""
    return NonZero(f"{group.path}.replicas")


def when_any(groups: Iterable[Group], tree: Tree) -> When:
    """Return `tree`, or nothing if none of `groups` has replicas."""
    return When(Either(tuple(map(runs, groups))), tree)


# Do not count evictions as failures: draining, preemption and taints set this condition.
_IGNORE_DISRUPTIONS = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


# The largest limit of failures that a Job can have.
UNLIMITED = 2**31 - 1


def with_group(group: Group, tree: Tree) -> Tree:
    """Return `tree` with the variable ``$group``, or nothing if the group has no replicas."""
    return Let("$group", group.path, When(NonZero("$group.replicas"), tree))


def workload_metadata(draft: Draft, name: Text, own: Mapping[str, Tree], **arguments: str) -> Tree:
    """Return the metadata of an object that Kueue may queue. `own` are its annotations."""
    queue = queue_labels(draft)
    if not own and not queue:
        return metadata(name, **arguments)
    common = Block(".Values.commonAnnotations", via="strings")
    made = annotated(name, own, **arguments)
    return {**made, "labels": Merged(made["labels"], queue), "annotations": made["annotations"] if own else common}


def job_spec(draft: Draft, group: Group, *, replaces_pods: bool = True) -> dict[str, Tree]:
    """Return the spec of an Indexed Job. Its first failed index fails it.

    Containers that restart in place have no limit per index: their restarts count against the Job's limit. Unless
    `replaces_pods`, the first failed pod fails the Job.
    """
    spec: dict[str, Tree] = {
        "completionMode": "Indexed",
        "completions": Value("$group.replicas"),
        "parallelism": Value("$group.replicas"),
    }
    if group.is_ended:
        # By index: the delays after evictions of one replica do not add to those of another.
        spec |= {"backoffLimitPerIndex": UNLIMITED, "podFailurePolicy": _IGNORE_DISRUPTIONS}
    elif group.is_restarted_in_place:
        # Kubernetes ends a Job when it has begun this many restarts, and kills the last one.
        spec["backoffLimit"] = Sum((("$group.retries",), (1,)))
    elif not replaces_pods:
        spec |= {"backoffLimit": 0, "podFailurePolicy": _IGNORE_DISRUPTIONS}
    else:
        spec |= {
            "backoffLimitPerIndex": Value("$group.retries"),
            "maxFailedIndexes": 0,
            "podFailurePolicy": _IGNORE_DISRUPTIONS,
        }
    if group.pod.settings.deadline is not None:
        spec["activeDeadlineSeconds"] = group.pod.settings.deadline
    spec["template"] = draft.pods[group.name]
    return spec


# The fields of a Job that can change while it runs, except `suspend`.
_MUTABLE = ("parallelism", "backoffLimit", "activeDeadlineSeconds")


def job(draft: Draft, group: Group) -> Tree:
    """Return the Job of a group. Kueue queues the object of a kind, not the Jobs beside it."""
    name, own, arguments = Text(draft.workload(group)), marks(draft, group), {"group": f'"{group.name}"', "run": "$run"}
    is_queued = draft.kind.runs(group)
    made = workload_metadata(draft, name, own, **arguments) if is_queued else annotated(name, own, **arguments)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": made, "spec": job_spec(draft, group)}


def fixed_of_job(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the parts of a Job that cannot change while it runs."""
    return {key: item for key, item in job_spec(draft, group).items() if key not in _MUTABLE}


def wrapped_metadata(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the metadata of a Job inside another object, without labels that an upgrade may change."""
    own = marks(draft, group)
    labels = Merged(selector(draft, group), {"symph.dev/experiment": draft.experiment.name})
    return {"labels": labels, "annotations": own} if own else {"labels": labels}


def marks(draft: Draft, group: Group) -> dict[str, str]:
    """Return the annotations of a Job from which readers know its part in the end of the run."""
    if group.is_ended:
        return {UNTIL: "run"}
    return {"symph.dev/done-when": "true"} if group.name in draft.done else {}


def with_retries(draft: Draft, tree: Tree) -> Tree:
    """Return `tree` with the variable ``$retries``: the most retries of a group with pod replacement."""
    replaced = [group for group in draft.finite if group.is_replaced]
    if not replaced:
        return tree
    return Let("$retries", "mostRetries" if len(replaced) > 1 else f"{replaced[0].path}.retries", tree)


def retries_helper(draft: Draft) -> list[Helper]:
    """Return the helper that `with_retries` needs if several groups have retries."""
    paths = [f"{group.path}.retries" for group in draft.finite if group.is_replaced]
    names = [group.name for group in draft.finite if group.is_replaced]
    words = " ".join(f"(int {go_path(path)})" for path in paths)
    helper = Helper(
        name="mostRetries",
        comment="The most retries of a group.",
        reads=tuple(paths),
        py=lambda root: max(int(root["Values"]["groups"][name]["retries"]) for name in names),
        go=f"{{{{- max {words} -}}}}",
        is_plain=True,
    )
    return [helper] if len(paths) > 1 else []


def stateful_set(draft: Draft, group: Group) -> Tree:
    """Return the StatefulSet of a group of services. Its pods start in parallel."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(Text(draft.workload(group)), group=f'"{group.name}"'),
        "spec": {
            "serviceName": Text(group.pods_service),
            "podManagementPolicy": "Parallel",
            "replicas": Value("$group.replicas"),
            "selector": {"matchLabels": selector(draft, group, with_run=False)},
            "template": draft.pods[group.name],
        },
    }


def pod_groups(draft: Draft) -> list[Tree]:
    return [
        when_any(gang, {**made, "metadata": metadata(name, run="$run")}) for name, gang, made in named_pod_groups(draft)
    ]


def immutable_trees(draft: Draft) -> list[Tree]:
    """Return the immutable parts of a run's objects and the parts that each new run replaces."""
    trees: list[Tree] = [draft.kind.name]
    for group in draft.groups.values():
        if group.is_kept:
            continue
        fixed: Mapping[str, Tree] = {"template": draft.pods[group.name]}
        if draft.kind.runs(group):
            fixed = draft.kind.fixed(draft, group)
        elif group.is_ended:
            fixed = fixed_of_job(draft, group)
        trees.append(with_group(group, {group.name: fixed}))
    trees += draft.kind.fixed_settings(draft)
    trees += [[made] for _, _, made in named_pod_groups(draft)]
    return [*trees, Value(".Values.runKey", is_text=True)]
