"""Trees that several kinds share: specs of Indexed Jobs, StatefulSets of services, and the immutable part of a run."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.build import pods
from symphony_charts.chart.build.data import annotated, metadata
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.pods import pod_template, selector
from symphony_charts.chart.tree import Block, Helper, Let, Merged, NonZero, Sum, Text, Tree, Value, When, go_path
from symphony_charts.spec.pods import find_process

# An eviction is not a failure: draining, preemption and taints mark the pod with this condition.
_IGNORE_DISRUPTIONS = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


def with_group(group: Group, tree: Tree) -> Tree:
    """Return `tree` with the variable ``$group``, and nothing if the group has no replicas."""
    return Let("$group", group.path, When(NonZero("$group.replicas"), tree))


def workload_metadata(draft: Draft, name: Text, own: Mapping[str, Tree], **arguments: str) -> Tree:
    """Return the metadata of an object that Kueue may queue. `own` are its annotations."""
    queue = pods.queue_labels(draft)
    if not own and not queue:
        return metadata(name, **arguments)
    common = Block(".Values.commonAnnotations", via="strings")
    made = annotated(name, own, **arguments)
    return {**made, "labels": Merged(made["labels"], queue), "annotations": made["annotations"] if own else common}


def job_spec(draft: Draft, group: Group, *, replaces_pods: bool = True) -> dict[str, Tree]:
    """Return the spec of an Indexed Job. Its first failed index fails it.

    Pods that are restarted in place do not count per index: their restarts count against the Job's own limit. Unless
    `replaces_pods`, the first failed pod fails the Job.
    """
    spec: dict[str, Tree] = {
        "completionMode": "Indexed",
        "completions": Value("$group.replicas"),
        "parallelism": Value("$group.replicas"),
    }
    if group.is_restarted_in_place:
        # Kubernetes ends a Job once this many restarts have begun, and kills the last one.
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
    spec["template"] = pod_template(draft, group)
    return spec


def wrapped_metadata(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the metadata of a Job inside of another object. It has no label that an upgrade may change."""
    annotations = {"annotations": {"symph.dev/done-when": "true"}} if group in done_groups(draft) else {}
    return {"labels": Merged(selector(draft, group), {"symph.dev/experiment": draft.experiment.name}), **annotations}


def with_retries(draft: Draft, tree: Tree) -> Tree:
    """Return `tree` with the variable ``$retries``: the most retries of a group whose failed pods are replaced."""
    replaced = [group for group in draft.finite if group.is_replaced]
    if not replaced:
        return tree
    return Let("$retries", "mostRetries" if len(replaced) > 1 else f"{replaced[0].path}.retries", tree)


def retries_helper(draft: Draft) -> list[Helper]:
    """Return the helper that `with_retries` needs, if there are several such groups."""
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
    """Return the StatefulSet of a group of services. All its pods start at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(Text(draft.workload(group)), group=f'"{group.name}"'),
        "spec": {
            "serviceName": Text(draft.pods_service(group)),
            "podManagementPolicy": "Parallel",
            "replicas": Value("$group.replicas"),
            "selector": {"matchLabels": selector(draft, group, with_run=False)},
            "template": pod_template(draft, group),
        },
    }


def pod_groups(draft: Draft) -> list[Tree]:
    """Return the PodGroups by which the pods of a run start together."""
    made: list[Tree] = []
    for name, condition, group in pods.pod_groups(draft):
        meta = metadata(name, run="$run")
        made.append(
            When(
                condition,
                {"apiVersion": group["apiVersion"], "kind": group["kind"], "metadata": meta, "spec": group["spec"]},
            )
        )
    return made


def done_groups(draft: Draft) -> list[Group]:
    """Return the finite groups with whose success the experiment ends."""
    names = {find_process(draft.experiment, name).pod for name in draft.experiment.done_when}
    return [group for name, group in draft.groups.items() if name in names and group.is_finite]


def immutable_trees(draft: Draft) -> Tree:
    """Return what Kubernetes does not let change in the objects of a run, and what each new run replaces."""
    trees: list[Tree] = [draft.kind.name]
    for group in draft.groups.values():
        if group.is_kept:
            continue
        is_job = draft.kind.runs(group)
        fixed = draft.kind.fixed(draft, group) if is_job else {"template": pod_template(draft, group)}
        trees.append(with_group(group, {group.name: fixed}))
    trees += draft.kind.fixed_settings(draft)
    trees += [[made] for _, condition, made in pods.pod_groups(draft)]
    return [*trees, Value(".Values.runKey", is_text=True)]
