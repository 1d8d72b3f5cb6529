"""Kind `volcano`: groups that end are tasks of one Volcano Job and start together; the twin of ``volcano.yaml``.

A replica is the pod ``<job>-<task>-<index>``; the plugin `svc` gives it that host name, in the headless Service of its
group where it has one. The PodGroup is the controller's.

Source: volcano-sh/volcano v1.15.1, pkg/controllers/job (states, plugins), pkg/webhooks/admission/jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, PodSet, count_of, described_job
from symphony_charts.kinds.group import Member, Unit
from symphony_charts.spec.workload import Workload

__all__ = ["VolcanoJob"]

# The NetworkPolicy of `svc` would shut services, tests and load balancers out.
_PLUGINS: dict[str, object] = {"env": [], "svc": ["--publish-not-ready-addresses", "--disable-network-policy"]}


class VolcanoJob(Kind):
    """A Volcano Job of all groups that end."""

    name = "volcano"
    runs_as = "task of a Volcano Job"
    controller = "Volcano"
    mutable = ("spec.minAvailable", "spec.priorityClassName", "spec.tasks.*.minAvailable", "spec.tasks.*.replicas")
    gvks = (("batch.volcano.sh/v1alpha1", "Job"),)
    argo_conditions = ("status.state.phase == Completed", "status.state.phase in (Failed,Aborted,Terminated)")

    def settings(self, workload: Workload) -> dict[str, object]:
        """The plugins."""
        plugins = {name: list(arguments) for name, arguments in workload.volcano.plugins.items()}
        return {"plugins": plugins} if plugins else {}

    def reads_minimum(self, workload: Mapping[str, object]) -> bool:
        """Each task does."""
        return True

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
        """The Job: it ends with its tasks, or with the one that `unit.done` names, and with the first that fails."""
        if not unit.members:
            return
        spec: dict[str, object] = {
            "schedulerName": "volcano",
            "minAvailable": sum(member.group.least for member in unit.members),
            # So many failures end the job: one more than are made good.
            "maxRetry": 1 + max(member.group.replacements for member in unit.members),
            "plugins": {**_PLUGINS, **sub(sub(unit.settings, "volcano"), "plugins")},
            "tasks": [_task(member, ends_all=unit.done == (member,)) for member in unit.members],
        }
        classes = {sub(member.template, "spec").get("priorityClassName") for member in unit.members}
        optional = {
            "queue": unit.settings.get("queue"),
            "priorityClassName": classes.pop() if len(classes) == 1 else None,
        }
        spec |= {key: value for key, value in optional.items() if value}
        metadata = {"name": unit.name, "labels": unit.labels}
        yield {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}

    def stops_the_rest(self, values: Mapping[str, object], done: int) -> bool:
        """It can wait for one group alone."""
        return done == 1

    def fails_together(self, workload: Workload) -> bool:
        """Always: every task ends the job when it fails."""
        return True

    def children(self, item: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """A Job for each task."""
        name = sub(item, "metadata").get("name")
        for task in maps(sub(item, "spec"), "tasks"):
            metadata = {"name": f"{name}-{task.get('name')}"}
            spec = {"template": sub(task, "template"), "backoffLimit": 0, "completions": task.get("replicas", 1)}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """As the Job counts the pods of all its tasks."""
        status = item.get("status") or {}
        return int(status.get("running") or 0) + int(status.get("succeeded") or 0) >= self.pods_at_a_time(item)

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The pods of each task."""
        for task in item.block("spec").blocks("tasks"):
            yield PodSet(name=task.text("name"), template=task.block("template"), count=count_of(task, "replicas"))

    def jobs(self, item: Object) -> list[Object]:
        """A Job for each task."""
        end = self.outcome(item)
        return [_described(item, end, task) for task in item["spec"].get("tasks") or []]


def _described(item: Object, end: End | None, task: Object) -> Object:
    template = task.get("template") or {"spec": {"containers": []}}
    replicas = task.get("replicas", 1)
    shape = {"completions": replicas, "parallelism": replicas, "template": template}
    name = f"{item['metadata']['name']}-{task.get('name', '')}"
    return described_job(item, end, name, {"metadata": template.get("metadata") or {}, "spec": shape})


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
    if member.group.is_restarted_in_place:
        policies.append({"events": ["PodFailed", "TaskFailed"], "action": "TerminateJob"})
        task["maxRetry"] = member.group.last_restart(member.template)
    elif member.group.retries:
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
