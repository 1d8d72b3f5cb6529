"""Kind `volcano`: groups that end are tasks of one Volcano Job and start together; the twin of ``volcano.yaml``.

A replica is the pod ``<job>-<task>-<index>``; the plugin `svc` gives it that host name, in the headless Service of its
group where it has one. The PodGroup is the controller's.

Source: volcano-sh/volcano v1.15.1, pkg/controllers/job (states, plugins), pkg/webhooks/admission/jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.formats.data import sub
from symphony_charts.kinds.group import Member, Unit

__all__ = ["objects"]

# The NetworkPolicy of `svc` would shut services, tests and load balancers out.
_PLUGINS: dict[str, object] = {"env": [], "svc": ["--publish-not-ready-addresses", "--disable-network-policy"]}


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """The Job: it ends with its tasks, or with the one that `unit.done` names, and with the first that fails."""
    if not unit.members:
        return
    spec: dict[str, object] = {
        "schedulerName": "volcano",
        "minAvailable": sum(member.group.least for member in unit.members),
        # So many failures end the job: one more than are made good.
        "maxRetry": 1 + max(member.replacements for member in unit.members),
        "plugins": {**_PLUGINS, **sub(sub(unit.settings, "volcano"), "plugins")},
        "tasks": [_task(member, ends_all=unit.done == (member,)) for member in unit.members],
    }
    classes = {sub(member.template, "spec").get("priorityClassName") for member in unit.members}
    optional = {"queue": unit.settings.get("queue"), "priorityClassName": classes.pop() if len(classes) == 1 else None}
    spec |= {key: value for key, value in optional.items() if value}
    metadata = {"name": unit.name, "labels": unit.labels}
    yield {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def _task(member: Member, *, ends_all: bool) -> dict[str, object]:
    """The task of a member.

    Volcano counts failed pods, and restarts in place by an event of their own, which comes at `maxRetry` of the task.
    """
    task: dict[str, object] = {
        "name": member.group.member,
        "replicas": member.group.replicas,
        "minAvailable": member.group.least,
        "template": _template(member),
    }
    policies: list[dict[str, object]] = []
    if member.is_restarted_in_place:
        policies.append({"events": ["PodFailed", "TaskFailed"], "action": "TerminateJob"})
        task["maxRetry"] = 1 + member.retries
    elif member.retries:
        policies.append({"event": "PodFailed", "action": "RestartPod"})
    else:
        policies.append({"event": "PodFailed", "action": "TerminateJob"})
    if ends_all:
        policies.append({"event": "TaskCompleted", "action": "CompleteJob"})
    return {**task, "policies": policies}


def _template(member: Member) -> Mapping[str, object]:
    """The pod template; a task has no deadline, but its pods can have one each."""
    deadline = member.fields.get("activeDeadlineSeconds")
    if deadline is None:
        return member.template
    return {**member.template, "spec": {"activeDeadlineSeconds": deadline, **sub(member.template, "spec")}}
