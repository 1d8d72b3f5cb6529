"""Kind `volcano`: finite groups are tasks of one Volcano Job and start together.

A replica is the pod ``<job>-<task>-<index>``. The plugin `svc` gives it that host name, in the headless Service of its
group if it has one. The controller creates the PodGroup. Source: volcano-sh/volcano v1.15.1, pkg/controllers/job
(states, plugins), pkg/webhooks/admission/jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.chart.build import pods
from symphony_charts.chart.build.draft import Draft, Group, Kind
from symphony_charts.chart.build.pods import (
    UNLIMITED,
    retries_helper,
    when_any,
    with_group,
    with_retries,
    workload_metadata,
)
from symphony_charts.chart.tree import Helper, Let, Merged, NonZero, Not, Sum, Text, Tree, Value, When, optional
from symphony_charts.errors import Problem

# The NetworkPolicy of `svc` would block services, tests and load balancers.
_PLUGINS: dict[str, Tree] = {"env": [], "svc": ["--publish-not-ready-addresses", "--disable-network-policy"]}


class Volcano(Kind):
    name = "volcano"
    file = "volcano.yaml"
    has_pod_groups = False
    reads_queue = True
    fails_when_evicted = True
    # Available since v1.9.
    index = "metadata.labels['volcano.sh/task-index']"

    def job_name(self, group: Group) -> str:
        return f"{{$fullname}}-{{$run}}-{group.part}"

    def attempt(self, group: Group) -> str:
        """Return no field: Volcano counts the failures of all pods together."""
        return ""

    def pod_fields(self, draft: Draft, group: Group) -> dict[str, Tree]:
        """Return the deadline, which Volcano tasks lack but pods support."""
        deadline = group.pod.settings.deadline
        return {} if deadline is None else {"activeDeadlineSeconds": deadline}

    def objects(self, draft: Draft) -> list[Tree]:
        """Return the Job. It ends with its tasks, with the only group of `done_when`, or with the first failure."""
        tasks = [with_group(group, self._task(draft, group)) for group in draft.finite]
        spec = {
            "schedulerName": "volcano",
            "queue": optional(".Values.workload.queue"),
            "priorityClassName": optional("$class"),
            "minAvailable": Sum(tuple(pods.least(group) for group in draft.finite)),
            **self._success(draft),
            "maxRetry": _failures(draft),
            "plugins": self._plugins(),
            "tasks": Merged(tasks, is_sure=True),
        }
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": workload_metadata(draft, Text("{$fullname}-{$run}"), {}, run="$run"),
            "spec": spec,
        }
        whole = when_any(draft.finite, job)
        return [Let("$class", "commonPriorityClass", with_retries(draft, whole))]

    def _success(self, draft: Draft) -> dict[str, Tree]:
        """Return the pods that end the Job by their success, if it ends with several groups and services."""
        ending = [group for group in draft.finite if not group.is_ended]
        if not draft.ended or list(draft.done.values()) != ending or len(ending) == 1:
            return {}
        count = Sum(tuple((f"{group.path}.replicas",) for group in ending))
        return {"minSuccess": when_any(ending, count)}

    def _plugins(self) -> dict[str, Tree]:
        return {**_PLUGINS, **{name: list(words) for name, words in self.workload.volcano.plugins.items()}}

    def _task(self, draft: Draft, group: Group) -> dict[str, Tree]:
        minimum = pods.least(group, "$group")
        least = Sum((minimum,)) if len(minimum) > 1 else Value("$group.replicas")
        fixed = self.fixed(draft, group)
        return {"name": group.part, "replicas": fixed["replicas"], "minAvailable": least, **fixed}

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return a task without its minimum. Volcano could scale it, but its pods contain the number of replicas."""
        task: dict[str, Tree] = {"replicas": Value("$group.replicas")}
        if group.is_ended:
            # The kubelet restarts services without limit. Volcano replaces a deleted pod without a policy.
            return {**task, "maxRetry": UNLIMITED, "template": draft.pods[group.name]}
        if group.is_restarted_in_place:
            # Volcano counts the restarts of all pods of the task; the last allowed one fails the task.
            task["maxRetry"] = Sum((("$group.retries",), (1,)))
            policies: list[Tree] = [{"events": ["PodFailed", "TaskFailed"], "action": "TerminateJob"}]
        else:
            retries = NonZero("$group.retries")
            policies = [
                When(retries, {"event": "PodFailed", "action": "RestartPod"}),
                When(Not(retries), {"event": "PodFailed", "action": "TerminateJob"}),
            ]
        if list(draft.done) == [group.name]:
            policies.append({"event": "TaskCompleted", "action": "CompleteJob"})
        return {**task, "policies": Merged(policies, is_sure=True), "template": draft.pods[group.name]}

    def fixed_settings(self, draft: Draft) -> list[Tree]:
        return [Value(".Values.workload.queue", is_text=True), with_retries(draft, _failures(draft)), self._plugins()]

    def values(self, draft: Draft) -> dict[str, Any]:
        return {"queue": self.workload.queue or ""}

    def reads_minimum(self) -> bool:
        return True

    def faults(self, draft: Draft) -> Iterable[Problem]:
        if self.workload.gang not in ("none", "volcano"):
            what = f"kind volcano makes its own gang, which {self.workload.gang} would hold back"
            yield Problem(what=what, path="workload.gang", next="use volcano or none")

    def shared_retries(self, most: int) -> str:
        return f"Volcano counts the failures of all pods together: the job has {most} retries"

    def helpers(self, draft: Draft) -> Iterable[Helper]:
        return [*retries_helper(draft), _class_helper(draft)]


def _failures(draft: Draft) -> Tree:
    """Return the number of failed pods that ends the Job: one more than the highest `retries` of a group."""
    return Sum((("$retries",), (1,))) if any(group.is_replaced for group in draft.finite) else 1


def _class_helper(draft: Draft) -> Helper:
    names = [group.name for group in draft.finite]
    groups = " ".join(f'"{name}"' for name in names)

    def common(root: Mapping[str, Any]) -> str:
        values = root["Values"]
        groups = (values["groups"][name] for name in names)
        classes = {
            group["priorityClassName"] or values["priorityClassName"] for group in groups if int(group["replicas"])
        }
        return str(classes.pop()) if len(classes) == 1 else ""

    return Helper(
        name="commonPriorityClass",
        comment="The priority class of the Job: that of all its pods, if they have only one.",
        reads=(".Values.priorityClassName", *(f"{group.path}.priorityClassName" for group in draft.finite)),
        py=common,
        go=f"""
{{{{- $classes := list -}}}}
{{{{- range $name := list {groups} -}}}}
{{{{- $group := index $.Values.groups $name -}}}}
{{{{- if int $group.replicas -}}}}
{{{{- $classes = append $classes ($group.priorityClassName | default $.Values.priorityClassName) | uniq -}}}}
{{{{- end -}}}}
{{{{- end -}}}}
{{{{- if eq (len $classes) 1 }}}}{{{{ first $classes }}}}{{{{ end -}}}}
""",
    )
