"""Write DIJobs into charts, and the ranks and peers of DI-engine's processes under any kind.

Three shapes of the API share its versions, so the spec names the operator. Each operator takes the spec of a pod
template and drops its metadata, so pods have only the operator's labels. The minimal definition of the kind has no
defaults, so the chart writes every field.

Source: opendilab/DI-orchestrator at v0.2.2 (controllers, utils), v1.0.0, v1.1.0 and v1.1.3 (pkg/context/pod.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from symphony_charts.chart.build.data import annotated, metadata
from symphony_charts.chart.build.draft import Draft, Group, Kind, Peers
from symphony_charts.chart.build.pods import when_any, with_group
from symphony_charts.chart.tree import (
    Helper,
    Join,
    Let,
    Merged,
    Sum,
    Text,
    Tree,
    Value,
    function_of,
    go_path,
)
from symphony_charts.errors import Problem
from symphony_charts.formats.data import sub
from symphony_charts.integrations.dijob.settings import (
    MAX_TASK,
    ROLES,
    DijobSettings,
    container_name,
    pods_in_order,
    settings_of,
    task_type,
)
from symphony_charts.spec import variable_names
from symphony_charts.spec.environment import entry_point
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.pods import retries_of
from symphony_charts.spec.workload import Workload

_API = "diengine.opendilab.org"
_JOB = "{$fullname}-{$run}"
# Every coordinator of the cluster reads it before it starts anything: neither Helm nor Argo CD may delete it.
_KEPT = {"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "Prune=false,Delete=false"}
# DI-orchestrator adds these to every container since v1.0.
_OWNED = {variable_names.DI_JOB_ID, variable_names.DI_NODES, variable_names.DI_RANK, "DI_SERVER_URL"}
# The operators that read a setting.
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "group": ("v0", "v1.0", "v1.1.0"),
    "topology": ("v1.0",),
    "parallel_workers": ("v1.0",),
    "max_replicas": ("v1.0",),
}


class DIJob(Kind):
    """A DIJob of all finite groups; under operator v0, of groups named after a role."""

    name = "dijob"
    file = "dijob.yaml"
    max_part = MAX_TASK
    has_ranks = True
    # The job counts the failures of all tasks together.
    has_group_retries = False
    fails_when_evicted = True

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.settings = settings_of(workload)
        self.operator = self.settings.operator
        self.has_tasks = self.operator.startswith("v1.1")
        self.is_scaled_live = self.has_tasks
        rank = "rank" if self.operator == "v1.0" else "task-rank"
        self.index = "" if self.operator == "v0" else f"metadata.annotations['diengine/{rank}']"

    def runs(self, group: Group) -> bool:
        return group.name in ROLES if self.operator == "v0" else group.is_finite and not group.is_ended

    def watched(self) -> tuple[str, str]:
        return f"dijobs.{_API}", ".status.phase"

    def job_name(self, group: Group) -> str:
        return _JOB

    def pod_name(self, group: Group) -> str:
        """Return the name that the operator gives a pod; empty for v0, which generates random names."""
        if self.operator == "v0":
            return ""
        # Operator v1.0 counts generations of pods.
        return f"{_JOB}-0-{{$i}}" if self.operator == "v1.0" else f"{_JOB}-{group.name}-{{$i}}"

    def domain(self, group: Group) -> str:
        """Return the name of the pods' headless Service, which all operators except v1.1.0 create."""
        return f"di-{_JOB}" if self.operator == "v1.1" else _JOB

    def selector(self, group: Group) -> Tree:
        """Return the operator's labels. v1.1.0 has no label for the task, so they select a task's first pod."""
        job = Text(_JOB)
        match self.operator:
            case "v0":
                return {"dijob-name": job, "replica-type": group.name}
            case "v1.0":
                return {"diengine/job": job}
            case "v1.1.0":
                return {"diengine/job": job, "diengine/pod": Text(f"{_JOB}-{group.name}-0")}
        return {"diengine/job": job, "diengine/task-name": group.name}

    def is_single(self, group: Group) -> bool:
        """Return True for the coordinator. Operator v0 does not number the pods of other roles."""
        return self.operator == "v0" and group.name == "coordinator"

    def attempt(self, group: Group) -> str:
        """Return nothing: no operator passes a pod the number of its attempt."""
        return ""

    def restart_policy(self, group: Group) -> str:
        """Return the restart policy. Operator v0 uses the template's policy; the others always set Never."""
        if self.operator == "v0":
            return super().restart_policy(group) if group.is_finite else "Always"
        return "Never"

    def container_name(self, group: Group, process: str) -> str:
        """Return the name by which the operator looks for a container."""
        return container_name(self.settings, group.pod, process)

    def port_name(self, group: Group, service: str) -> str:
        """Return the name of the port that operator v0 looks for: the port of the role's own service."""
        return "di-port" if self.operator == "v0" and service == group.name else ""

    def values(self, draft: Draft) -> dict[str, Any]:
        """Return the number of retries, which the job counts for all of its tasks."""
        retries = [retries_of(draft.experiment, group.pod) for group in draft.groups.values() if self.runs(group)]
        return {"retries": max(retries)} if self.has_tasks and retries else {}

    def objects(self, draft: Draft) -> list[Tree]:
        """Return the DIJob, and the objects that its operator needs beside it."""
        groups = [draft.groups[pod.name] for pod in pods_in_order(draft.experiment)]
        members = [group for group in groups if self.runs(group) and not self._is_apart(group)]
        made: list[Tree] = []
        if members:
            objects = [self._job(draft, members), *([_pod_service()] if self.operator == "v1.1.0" else [])]
            made.append(when_any(members, objects))
        made += [with_group(group, self._aggregator(draft, group)) for group in groups if self._is_apart(group)]
        return made

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return the pod template: the operator never changes a running pod."""
        return self._template(draft, group)

    def fixed_settings(self, draft: Draft) -> list[Tree]:
        """Return the other fields of the DIJob, and the order of its tasks."""
        order = [pod.name for pod in pods_in_order(draft.experiment)]
        # `to_builtins` distinguishes a default that the spec sets from one that it does not.
        settings = {key: item for key, item in msgspec.structs.asdict(self.settings).items() if item is not None}
        return [settings, order]

    def faults(self, draft: Draft) -> Iterator[Problem]:
        """Yield faults that no values can fix; `spec` accepts them in groups without replicas."""
        members = [group for group in draft.groups.values() if self.runs(group)]
        if self.operator == "v1.0" and len(members) > 1:
            what = f"operator v1.0 runs one kind of pod, and the experiment has {len(members)}"
            yield Problem(what=what, path="workload.dijob.operator", next="use a newer operator")
        for group in draft.groups.values():
            if self.operator == "v0" and group.is_finite and not self.runs(group):
                what = f'operator v0 has the roles {", ".join(ROLES)}, not "{group.name}"'
                yield Problem(what=what, path=group.pod.path, next="rename it, or use a newer operator")
            if self.has_tasks and group in members and len(group.name) > self.max_part:
                what = f"names of its pods would have more than 63 characters: a task has at most {self.max_part}"
                yield Problem(what=what, path=group.pod.path, next="shorten the name")

    def findings(
        self, draft: Draft, groups: Sequence[Group], values: Mapping[str, Any]
    ) -> Iterator[tuple[Literal["warning", "info"], str, Problem]]:
        """Yield settings that DI-orchestrator ignores or treats differently.

        Source: opendilab/DI-orchestrator v1.1.3, pkg/controllers/dijob.go and pkg/context/pod.go; v1.0.0; v0.2.2.
        """
        members = [group for group in groups if self.runs(group)]
        yield from (("warning", rule, problem) for rule, problem in self._retry_doubts(draft, members, values))
        dropped = [(f"groups.{group.name}.labels", group.pod.settings.labels) for group in members]
        dropped += [(f"groups.{group.name}.annotations", group.pod.settings.annotations) for group in members]
        dropped += [(path, values[path]) for path in ("podLabels", "podAnnotations")]
        dropped.append(("annotations", draft.experiment.annotations))
        for path, content in dropped:
            if content:
                what = f"DI-orchestrator drops {'labels' if path.lower().endswith('labels') else 'annotations'} of pods"
                step = "use another workload.kind if a program reads them"
                yield "warning", "dijob-labels", Problem(what=what, path=path, next=step)
        for group in members:
            path = f"groups.{group.name}"
            for name in group.pod.processes:
                for variable in sorted(_OWNED & values["groups"][group.name]["containers"][name]["env"].keys()):
                    place = f"{path}.containers.{name}.env.{variable}"
                    what = f"DI-orchestrator overwrites {variable}"
                    yield "warning", "dijob-env", Problem(what=what, path=place, next="remove it")
            if len(group.pod.processes) > 1:
                what = "a job with several containers in a pod never leaves Starting: the operator counts them as pods"
                step = "put each process into its own pod"
                yield "warning", "dijob-containers", Problem(what=what, path=path, next=step)

    def unread(self) -> Iterator[Problem]:
        usual = DijobSettings()
        for field, operators in _OPERATORS.items():
            if getattr(self.settings, field) != getattr(usual, field) and self.operator not in operators:
                what = f"operator {self.operator} does not support it"
                step = f"remove it, or use {' or '.join(operators)}"
                yield Problem(what=what, path=f"workload.dijob.{field}", next=step)

    def _retry_doubts(
        self, draft: Draft, members: Sequence[Group], values: Mapping[str, Any]
    ) -> Iterator[tuple[str, Problem]]:
        # Operator v0 leaves restarts to the kubelet.
        in_place = [group for group in members if self.operator == "v0" and group.is_restarted_in_place]
        for group in members:
            path, step = f"groups.{group.name}.restart", "use retries, or another workload.kind"
            if group in in_place:
                what = "operator v0 restarts a container in place without a limit"
                yield "dijob-restart", Problem(what=what, path=path, next=step)
            elif self.operator != "v0" and group.pod.settings.restart == "on-failure":
                what = "DI-orchestrator never restarts a container in place"
                yield "dijob-restart", Problem(what=what, path=path, next=step)
        retried = [group for group in members if group not in in_place and retries_of(draft.experiment, group.pod)]
        paths = [f"groups.{group.name}.retries" for group in retried]
        what = f"operator {self.operator} does not restart a failed pod"
        step = "use a newer operator, or another kind"
        if self.has_tasks:
            # All tasks of a job share one limit.
            said = ["workload.retries"] if draft.experiment.workload.retries else paths[:1]
            paths = (said or ["workload.retries"]) if int(values.get("workload", {}).get("retries", 0)) else []
            what = "a restarted pod gets a new rank, after the last, which is missing in the DI_NODES of the other pods"
            step = "use jobset with compat: di-engine"
        yield from (("dijob-retries", Problem(what=what, path=path, next=step)) for path in paths)

    def _is_apart(self, group: Group) -> bool:
        """Return True if `group` is the aggregator, which v0 keeps in a cluster-wide object."""
        return self.operator == "v0" and group.name == "aggregator"

    def _job(self, draft: Draft, members: list[Group]) -> Tree:
        settings = self.settings
        spec: dict[str, Tree] = {"cleanPodPolicy": settings.clean_pod_policy}
        if settings.group and self.operator != "v1.1":
            spec["group"] = settings.group
        version = "v1alpha1" if self.operator == "v0" else "v2alpha1"
        job = {"apiVersion": f"{_API}/{version}", "kind": "DIJob", "metadata": metadata(Text(_JOB), run="$run")}
        if self.operator == "v0":
            roles = [with_group(group, {group.name: self._template(draft, group)}) for group in members]
            return {**job, "spec": Merged(spec, *roles)}
        spec |= {"priority": settings.priority, "preemptible": False}
        if self.operator == "v1.0":
            return Let("$group", members[0].path, {**job, "spec": {**spec, **self._workers(draft, members[0])}})
        # A failed pod comes back with another rank.
        spec["backoffLimit"] = Value(".Values.workload.retries")
        spec["tasks"] = Merged([with_group(group, self._task(draft, group)) for group in members], is_sure=True)
        return {**job, "spec": spec}

    def _workers(self, draft: Draft, group: Group) -> dict[str, Tree]:
        settings, replicas = self.settings, Value("$group.replicas")
        return {
            "minReplicas": replicas,
            "maxReplicas": replicas if settings.max_replicas is None else settings.max_replicas,
            "engineFields": {"topology": settings.topology, "parallelWorkers": settings.parallel_workers},
            **self._template(draft, group),
        }

    def _task(self, draft: Draft, group: Group) -> dict[str, Tree]:
        return {
            "name": group.name,
            "type": task_type(self.settings.tasks, group.name),
            "replicas": Value("$group.replicas"),
            **self._template(draft, group),
        }

    def _template(self, draft: Draft, group: Group) -> dict[str, Tree]:
        """Return the pod template of a group, with its deadline in each pod."""
        spec = draft.pods[group.name]["spec"]
        deadline = group.pod.settings.deadline
        if deadline is not None and "activeDeadlineSeconds" not in sub(group.pod.settings.pod_overlay, "spec"):
            spec = Merged({"activeDeadlineSeconds": deadline}, spec)
        return {"template": {"spec": spec}}

    def _aggregator(self, draft: Draft, group: Group) -> Tree:
        meta = annotated(Text("aggregator-config"), _KEPT, run="$run")
        return {
            "apiVersion": f"{_API}/v1alpha1",
            "kind": "AggregatorConfig",
            "metadata": {"name": meta.pop("name"), "namespace": "di-system", **meta},
            "spec": {"aggregator": self._template(draft, group)},
        }


def _pod_service() -> Tree:
    """Return the Service of the pods' domain, which operator v1.1.0 names in each pod but does not create."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"diengine/job": Text(_JOB)}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(Text(_JOB), run="$run"), "spec": spec}


# Every finite group is a node; ranks count over all replicas, in order of declaration. Source: opendilab/DI-engine,
# ding/entry/cli_parsers/k8s_parser.py, which reads DI_RANK and DI_NODES.

_RANK = 'DI_RANK=`expr "$DI_FIRST_RANK" + "$SYMPH_INDEX"`; export DI_RANK; exec "$@"'


class DIEngine(Peers):
    """The nodes of DI-engine: the finite groups in order of declaration, unless the controller sets ranks."""

    def nodes_of(self, draft: Draft) -> list[Group]:
        """Return the groups that are nodes, by rank."""
        if draft.kind.has_ranks:
            return []
        return [draft.groups[pod.name] for pod in pods_in_order(draft.experiment) if pod.is_finite]

    def rank_words(self, draft: Draft, group: Group, program: Process | Step) -> list[str]:
        """Return words that set DI_RANK in front of the program of a group after the first.

        Kubernetes cannot add numbers, so a shell does.
        """
        if isinstance(program, Step) or not self._needs_rank(draft, group):
            return []
        return ["/bin/sh", "-c", _RANK, "symph-rank", *variable_names.beside_shells(program.env)]

    def variables(self, draft: Draft, group: Group, index: Tree) -> dict[str, Tree]:
        nodes = self.nodes_of(draft)
        if group not in nodes:
            return {}
        before = nodes[: nodes.index(group)]
        first = Sum(tuple((f"{other.path}.replicas",) for other in before), is_text=True)
        rank: dict[str, Tree] = {variable_names.DI_FIRST_RANK: first} if before else {variable_names.DI_RANK: index}
        return {
            variable_names.DI_JOB_ID: Text("{.Release.Namespace}/{$fullname}-{$run}"),
            variable_names.DI_NODES: Text("{nodes}"),
            variable_names.di_group_nodes(group.name): self._own_hosts(draft, group),
            **rank,
        }

    def faults(self, draft: Draft) -> Iterator[Problem]:
        """Yield the processes that cannot get their rank because the command is in the image and unknown here."""
        for group in draft.groups.values():
            for name, process in group.pod.processes.items():
                if self._needs_rank(draft, group) and not entry_point(process)[0]:
                    what = f"container {name} needs a command, so that a script can set the rank of each replica"
                    path = f"{group.pod.path}.processes.{name}" if group.pod.is_group else group.pod.path
                    yield Problem(what=what, path=f"{path}.command", next="set `command` or `cmds`")

    def helpers(self, draft: Draft, fullname: Helper, run: Helper) -> list[Helper]:
        """Return the helpers with the host names of all nodes, and of the nodes of type `none`."""
        nodes = self.nodes_of(draft)
        if not nodes:
            return []
        kin = [node for node in nodes if len(self._kin(draft, node)) > 1]
        lists = {"nodes": nodes} | ({"nodes.kin": kin} if kin else {})
        return [_hosts(draft, name, groups, fullname, run) for name, groups in lists.items()]

    def _needs_rank(self, draft: Draft, group: Group) -> bool:
        """Return True if the rank of a replica differs from its index."""
        return group in self.nodes_of(draft)[1:]

    def _own_hosts(self, draft: Draft, group: Group) -> Tree:
        if len(self._kin(draft, group)) > 1:
            return Text("{nodes.kin}")
        return Join(f"{group.path}.replicas", Text(draft.host(group)))

    def _kin(self, draft: Draft, group: Group) -> list[Group]:
        """Return the groups that `group` lists as its own nodes: all tasks of type `none`, or itself."""
        types = settings_of(draft.experiment.workload).tasks
        kin = [node for node in self.nodes_of(draft) if task_type(types, node.name) == "none"]
        return kin if group in kin else [group]


def _hosts(draft: Draft, name: str, groups: list[Group], fullname: Helper, run: Helper) -> Helper:
    lines = [
        "{{- $hosts := list -}}",
        '{{- $fullname := include "CHART.fullname" . -}}',
        '{{- $run := include "CHART.run" . -}}',
    ]
    for group in groups:
        words = draft.host(group).replace("{$fullname}", "%[1]s").replace("{$run}", "%[2]s").replace("{$i}", "%[3]d")
        lines += [
            f"{{{{- range $i := until (int {go_path(f'{group.path}.replicas')}) -}}}}",
            f'{{{{- $hosts = append $hosts (printf "{words}" $fullname $run $i) -}}}}',
            "{{- end -}}",
        ]
    paths = tuple(f"{group.path}.replicas" for group in groups)

    def hosts(root: Mapping[str, Any]) -> str:
        given = {"$fullname": function_of(fullname)(root), "$run": function_of(run)(root)}
        made = []
        for group in groups:
            for index in range(int(root["Values"]["groups"][group.name]["replicas"])):
                host = draft.host(group).replace("{$i}", str(index))
                for variable, text in given.items():
                    host = host.replace(f"{{{variable}}}", text)
                made.append(host)
        return ",".join(made)

    return Helper(name=name, go="\n".join([*lines, '{{- join "," $hosts -}}']), py=hosts, reads=paths)
