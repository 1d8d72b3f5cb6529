"""Kind `appwrapper`: the Jobs of all finite groups, queued and started as one.

Only the Jobs are inside. The controller may create Services, but neither ConfigMaps nor NetworkPolicies, and it ends a
run when no pod runs any more, which never happens with a service. Nothing inside can change while the AppWrapper
exists, so objects inside have selector labels only.

Sources: project-codeflare/appwrapper v1.2.2, api/v1beta2, internal/controller, internal/webhook;
project-codeflare/multi-cluster-app-dispatcher (MCAD) v1.40.0, pkg/apis/controller/v1beta1, pkg/controller/queuejob.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.chart.build import pods as build_pods
from symphony_charts.chart.build.draft import Draft, Group, Kind
from symphony_charts.chart.build.pods import (
    job_spec,
    retries_helper,
    when_any,
    with_group,
    with_retries,
    workload_metadata,
    wrapped_metadata,
)
from symphony_charts.chart.tree import Helper, Include, Merged, Sum, Text, Tree, Value
from symphony_charts.errors import Problem
from symphony_charts.kinds.appwrapper import MAX_POD_SETS

_PREFIX = "workload.codeflare.dev.appwrapper/"
# The controller's defaults fail a run whose pods wait five minutes for nodes, or that replaces a pod later than
# that, and delete a failed run with its logs at once.
_PATIENCE = {
    f"{_PREFIX}admissionGracePeriodDuration": "24h",
    f"{_PREFIX}warmupGracePeriodDuration": "24h",
    f"{_PREFIX}deletionOnFailureGracePeriodDuration": "1h",
}
_RESOURCES = Helper(
    name="resources",
    comment="What one container requests. MCAD adds all up, and counts the limits of those that request nothing.",
    reads=(".",),
    py=lambda dot: {"requests": dot.get("requests") or {}} | ({"limits": dot["limits"]} if dot.get("limits") else {}),
    go="""
requests: {{- toYaml (default dict .requests) | nindent 2 }}
{{- with .limits }}
limits: {{- toYaml . | nindent 2 }}
{{- end }}
""",
)
# Helm prints larger numbers of a values file as 1e+06.
_MAX_PRIORITY = 99_999


class AppWrapper(Kind):
    """An AppWrapper around the Jobs of all finite groups."""

    name = "appwrapper"
    file = "appwrapper.yaml"

    @property
    def is_mcad(self) -> bool:
        return self.workload.appwrapper.version == "v1beta1"

    def runs(self, group: Group) -> bool:
        return group.is_finite and not group.is_ended

    def watched(self) -> tuple[str, str]:
        return "appwrappers.workload.codeflare.dev", ".status.state" if self.is_mcad else ".status.phase"

    def attempt(self, group: Group) -> str:
        """Return no field: the controller restarts all groups, and pods cannot see the count."""
        return ""

    def objects(self, draft: Draft) -> list[Tree]:
        metadata = workload_metadata(draft, Text("{$fullname}-{$run}"), self._annotations(draft), run="$run")
        wrapper = {
            "apiVersion": f"workload.codeflare.dev/{self.workload.appwrapper.version}",
            "kind": "AppWrapper",
            "metadata": metadata,
            "spec": self._mcad_spec(draft) if self.is_mcad else self._spec(draft),
        }
        whole = when_any(draft.members, wrapper)
        return [whole if self.is_mcad else with_retries(draft, whole)]

    def _annotations(self, draft: Draft) -> dict[str, Tree]:
        users = dict(self.workload.appwrapper.annotations)
        if self.is_mcad:
            return users
        is_replaced = any(group.is_replaced for group in draft.members)
        retries: Tree = Value("$retries", is_text=True) if is_replaced else "0"
        return {**_PATIENCE, f"{_PREFIX}retryLimit": retries, **users}

    def _spec(self, draft: Draft) -> Tree:
        pods = {"path": "template.spec.template", "replicas": Value("$group.replicas")}
        components = [
            with_group(group, {"podSets": [pods], "template": self._job(draft, group)}) for group in draft.members
        ]
        return {"components": Merged(components, is_sure=True)}

    def _mcad_spec(self, draft: Draft) -> Tree:
        items = [with_group(group, self._generic_item(draft, group)) for group in draft.members]
        spec: dict[str, Tree] = {"priority": Value(".Values.workload.priority")}
        if any(group.pod.settings.min_replicas is not None for group in draft.members):
            # MCAD requeues a run with fewer pods forever, even a failed one: v1.40 never increments the counter that it
            # compares with maxNumRequeuings. So write this only if the experiment asks for it.
            spec["schedulingSpec"] = {"minAvailable": Sum(tuple(build_pods.least(group) for group in draft.members))}
        return {**spec, "resources": {"GenericItems": Merged(items, is_sure=True)}}

    def _generic_item(self, draft: Draft, group: Group) -> Tree:
        count = {"replicas": Value("$group.replicas")}
        paths = [f"$group.containers.{name}.resources" for name in _running(group)]
        return {
            "replicas": 1,
            "completionstatus": "Complete,Failed",
            "custompodresources": [Merged(count, Include("resources", path)) for path in paths],
            "generictemplate": self._job(draft, group),
        }

    def _job(self, draft: Draft, group: Group) -> Tree:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": Text(draft.workload(group)), **wrapped_metadata(draft, group)},
            "spec": self.fixed(draft, group),
        }

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return the spec of a Job inside.

        The controller of v1beta2 tolerates no failed pod, and a Job keeps the pods that it replaced. So the Job does
        not retry there; the whole AppWrapper restarts.
        """
        return job_spec(draft, group, replaces_pods=self.is_mcad)

    def values(self, draft: Draft) -> dict[str, Any]:
        return {"priority": self.workload.priority or 0} if self.is_mcad and draft.members else {}

    def reads_minimum(self) -> bool:
        return self.is_mcad

    def shared_retries(self, most: int) -> str:
        return "" if self.is_mcad else "an AppWrapper starts all its groups again when a pod has failed"

    def helpers(self, draft: Draft) -> Iterable[Helper]:
        return [_RESOURCES] if self.is_mcad else retries_helper(draft)

    def faults(self, draft: Draft) -> Iterable[Problem]:
        if not self.is_mcad:
            if len(draft.members) > MAX_POD_SETS:
                what = f"an AppWrapper holds at most {MAX_POD_SETS} groups that end, not {len(draft.members)}"
                yield Problem(what=what, path="workload.kind", next="put processes into fewer groups, or use `jobset`")
            return
        if self.workload.gang == "kueue":
            what = "Kueue admits AppWrappers of version v1beta2; MCAD (v1beta1) has queues of its own"
            yield Problem(what=what, path="workload.gang", next="set `appwrapper.version: v1beta2`, or drop the gang")
        if abs(self.workload.priority or 0) > _MAX_PRIORITY:
            what = f"the priority is not between -{_MAX_PRIORITY} and {_MAX_PRIORITY}"
            yield Problem(what=what, path="workload.priority", next="choose a smaller one")


def _running(group: Group) -> list[str]:
    """Return the containers that run at the same time, in the order of the pod."""
    return sorted(group.pod.processes, key=lambda name: not group.is_sidecar(name))
