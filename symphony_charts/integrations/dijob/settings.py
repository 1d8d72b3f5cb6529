"""The settings of a DIJob, its pods, the variables of its operators, and its limits.

Source: opendilab/DI-orchestrator at v0.2.2, v1.0.0, v1.1.0 and v1.1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.names import DNS_LABEL, sanitize
from symphony_charts.spec import variable_names
from symphony_charts.spec.checks.names import name_hint
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod, ProcessRef, pods_of, processes_of
from symphony_charts.spec.sources import Record
from symphony_charts.spec.workload import Workload

Operator: TypeAlias = Literal["v0", "v1.0", "v1.1.0", "v1.1"]

OPERATORS: tuple[Operator, ...] = ("v0", "v1.0", "v1.1.0", "v1.1")
TASK_TYPES = ("learner", "collector", "evaluator", "none")
# The roles of operator v0; the aggregator is not part of the DIJob but a separate object.
ROLES = ("coordinator", "collector", "learner", "aggregator")
# The container whose port and resources operator v0 reads; all of the project's own jobs use this name.
CONTAINER = "di-container"
# Task names are never cut, since the operator names a variable of each pod after the task. A pod's name has at most 63
# characters for full name, run, task and index.
MAX_TASK = 30
_LABEL_LENGTH = 63


class DijobSettings(Record, frozen=True, kw_only=True):
    """Settings of a DIJob.

    Attributes:
        operator: The version of DI-orchestrator, since three incompatible formats share one apiVersion:
            `v0` (v0.1 to v0.2: coordinator, collector, learner), `v1.0` (one template), `v1.1.0` (tasks), `v1.1`
            (v1.1.1 and later: tasks and volumes).
        clean_pod_policy: The pods to remove after its end.
        tasks: The types of groups whose name is not a type.
        containers: The container name of a process: `di-container` if it is alone in its pod, whose
            resources and ports operator v0 reads, else the process's name.
        group: The group of jobs; all operators but v1.1.
        priority: Its priority; no released operator uses it.
        preemptible: Allow preemption; no released operator runs such a job.
        topology: The topology of its workers; v1.0.
        parallel_workers: Number of workers in a pod; v1.0.
        max_replicas: Maximum number of workers; v1.0.
    """

    operator: Operator = "v1.1"
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    tasks: dict[str, Literal["learner", "collector", "evaluator", "none"]] = {}
    containers: dict[str, str] = {}
    group: str | None = None
    priority: Literal["normal", "high"] = "normal"
    preemptible: bool = False
    topology: Literal["star", "alone", "mesh"] = "star"
    parallel_workers: int = 1
    max_replicas: int | None = None


def settings_of(workload: Workload) -> DijobSettings:
    return workload.settings("dijob", DijobSettings)


def with_clean_names(settings: DijobSettings) -> DijobSettings:
    return msgspec.structs.replace(
        settings,
        tasks={sanitize(group): kind for group, kind in settings.tasks.items()},
        containers={sanitize(ref): name for ref, name in settings.containers.items()},
    )


def reference_faults(experiment: Experiment) -> Iterator[Problem]:
    """Yield a fault for each unknown group or process in the settings."""
    settings = settings_of(experiment.workload)
    pods = {*experiment.groups, *experiment.processes}
    for pod in settings.tasks:
        if pod not in pods:
            what = f'unknown group or lone process "{pod}"'
            yield Problem(what=what, path=f"workload.dijob.tasks.{pod}", next=name_hint(pod, pods))
    refs = [str(ref) for ref, _ in processes_of(experiment)]
    for ref in settings.containers:
        if ref not in refs:
            what = f'unknown process "{ref}"'
            yield Problem(what=what, path=f"workload.dijob.containers.{ref}", next=name_hint(ref, refs))


def pods_in_order(experiment: Experiment) -> list[Pod]:
    """Return the pods in order of declaration, which gives tasks their ranks."""
    pods = pods_of(experiment)
    return [pods[name] for name in dict.fromkeys(ref.pod for ref, _ in processes_of(experiment))]


def tasks_of(experiment: Experiment) -> list[Pod]:
    """Return the pods that a DIJob runs: the finite ones, and under operator v0 those named after a role."""
    is_role = settings_of(experiment.workload).operator == "v0"
    return [pod for pod in pods_in_order(experiment) if (pod.name in ROLES if is_role else pod.is_finite)]


def task_type(said: Mapping[str, str], pod: str) -> str:
    """Return the type of the task that runs `pod`: as set, else its own name if that is a type."""
    return said.get(pod) or (pod if pod in TASK_TYPES else "none")


def container_name(settings: DijobSettings, pod: Pod, process: str) -> str:
    """Return the name of a process's container: as set, else `di-container` if it is alone in its pod."""
    containers = {
        *pod.processes,
        *(item.get("name") for item in maps(sub(pod.settings.pod_overlay, "spec"), "containers")),
    }
    usual = CONTAINER if containers == {pod.name} else process
    return settings.containers.get(str(ProcessRef(pod.name, process))) or usual


def dijob_faults(experiment: Experiment) -> Iterator[Problem]:
    yield from _job_faults(experiment)
    settings, tasks = settings_of(experiment.workload), tasks_of(experiment)
    if not tasks:
        what = "a DIJob needs a finite process, and all processes of this experiment are services"
        yield Problem(what=what, path="processes", next="use another `workload.kind`")
    yield from _role_faults(experiment, [pod for pod in tasks if pod.settings.replicas > 0])
    types: dict[str, str] = {}
    for pod in tasks:
        yield from _container_faults(experiment, pod)
        yield from _pod_faults(pod, is_role=settings.operator == "v0")
        kind = task_type(settings.tasks, pod.name) if pod.settings.replicas > 0 else "none"
        if kind != "none" and types.setdefault(kind, pod.name) != pod.name:
            what = f'an operator allows one task of type {kind}, and both "{types[kind]}" and "{pod.name}" have it'
            next_step = f"set `workload.dijob.tasks: {{{pod.name}: none}}`"
            yield Problem(what=what, path=f"workload.dijob.tasks.{pod.name}", next=next_step)


def _job_faults(experiment: Experiment) -> Iterator[Problem]:
    workload, placement = experiment.workload, experiment.placement
    settings = settings_of(workload)
    if workload.gang != "none" or workload.queue:
        what = "a DIJob supports no queue and no gang: its operator cannot suspend it"
        yield Problem(
            what=what, path="workload.gang", next="use `kind: jobset` with `compat: di-engine`, or remove them"
        )
    if settings.preemptible:
        what = "a preemptible DIJob never runs: the operator's allocator is a stub"
        yield Problem(what=what, path="workload.dijob.preemptible", next="remove it")
    if settings.parallel_workers < 1:
        yield Problem(what="parallel_workers is below 1", path="workload.dijob.parallel_workers", next="use at least 1")
    if experiment.compat and settings.operator in ("v0", "v1.0"):
        what = f"operator {settings.operator} does not set DI_RANK, and a chart cannot set it either"
        yield Problem(what=what, path="compat", next="remove it, or use another operator or `workload.kind`")
    if experiment.security.network_policy and settings.operator == "v1.1.0":
        what = "operator v1.1.0 does not label pods by task, so a policy cannot select them"
        yield Problem(what=what, path="security.network_policy", next="remove it, or use a newer operator")
    if experiment.networks:
        what = "networks are annotations of pods, which DI-orchestrator drops"
        yield Problem(what=what, path="networks", next="use another `workload.kind`")
    for field in ("topology", "exclusive"):
        if getattr(placement, field):
            what = "it needs annotations or labels of pods, which DI-orchestrator drops"
            yield Problem(what=what, path=f"placement.{field}", next="use another `workload.kind`")


def _role_faults(experiment: Experiment, tasks: list[Pod]) -> Iterator[Problem]:
    """Yield roles that the operator does not have; pods without replicas are not tasks, as in the DIJob."""
    operator = settings_of(experiment.workload).operator
    if operator == "v1.0" and len(tasks) > 1:
        names = ", ".join(pod.name for pod in tasks)
        what = f"operator v1.0 runs one kind of pod, and the experiment has {len(tasks)}: {names}"
        yield Problem(what=what, path="workload.dijob.operator", next="use a newer operator")
    if operator != "v0":
        return
    for pod in pods_of(experiment).values():
        if pod.is_finite and pod.settings.replicas > 0 and pod.name not in ROLES:
            what = f'operator v0 has the roles {", ".join(ROLES)}, not "{pod.name}"'
            yield Problem(what=what, path=pod.path, next="rename it, or use a newer operator")
    coordinator = next((pod for pod in tasks if pod.name == "coordinator"), None)
    if coordinator is None:
        what = "operator v0 needs a process named coordinator, which ends the job"
        yield Problem(what=what, path="processes", next="add it, or use a newer operator")
    elif coordinator.settings.replicas > 1:
        what = f"operator v0 starts one coordinator, not {coordinator.settings.replicas}"
        yield Problem(what=what, path=f"{coordinator.path}.replicas", next="set it to 1, or use a newer operator")


def _container_faults(experiment: Experiment, pod: Pod) -> Iterator[Problem]:
    settings = settings_of(experiment.workload)
    names: dict[str, str] = {}
    for process in pod.processes:
        name = container_name(settings, pod, process)
        path = f"workload.dijob.containers.{ProcessRef(pod.name, process)}"
        if not DNS_LABEL.fullmatch(name) or len(name) > _LABEL_LENGTH:
            yield Problem(
                what=f'"{name}" is not a valid name of a container', path=path, next="use a-z, 0-9 and dashes"
            )
        if names.setdefault(name, process) != process:
            what = f'the containers of {names[name]} and {process} would have the same name, "{name}"'
            yield Problem(what=what, path=path, next="rename one of them")


def _pod_faults(pod: Pod, *, is_role: bool) -> Iterator[Problem]:
    lives = {process.lifecycle for process in pod.processes.values()}
    if len(lives) > 1 or (is_role and pod.name == "coordinator" and "service" in lives):
        services = [name for name, process in pod.processes.items() if process.lifecycle == "service"]
        what = f"a DIJob waits for the end of every container, and {', '.join(services)} would never end"
        yield Problem(
            what=what, path=pod.path, next="move the service to its own group, which is not part of the DIJob"
        )


# Every finite pod is a node: its rank counts over all of them, in order of declaration. Sources:
# opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go; opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py, which
# reads DI_RANK and DI_NODES. DI_SERVER_URL is not set: its server exists only with the operator.

SERVER = "di-server"
"""The name of the process and service that replace the server of operator v0 on one machine."""

SERVER_URL = "KUBERNETES_SERVER_URL"

ASKED_FOR = ("collector", "learner")
"""The roles of which operator v0 starts as many pods as the coordinator requests."""

# The port of the first worker of a pod under operator v1.0, and of roles without a port under v0.
_PORT = 22270
_ROLE_PORTS = {"collector": 22270, "learner": 22271, "aggregator": 22272, "coordinator": 22273}


def has_di_engine(experiment: Experiment) -> bool:
    """Return True if processes get the DI_* variables: by `compat`, or from the operator."""
    workload = experiment.workload
    is_told = workload.kind == "dijob" and settings_of(workload).operator.startswith("v1.1")
    return experiment.compat == "di-engine" or is_told


def is_of_v0(experiment: Experiment) -> bool:
    """Return True for operator v0, whose server starts the roles that the coordinator requests."""
    return experiment.workload.kind == "dijob" and settings_of(experiment.workload).operator == "v0"


def nodes_of(experiment: Experiment) -> list[str]:
    """Return the names of the pods that are nodes, in the order of their ranks."""
    return [pod.name for pod in pods_in_order(experiment) if pod.is_finite]


def node_variables(
    job: str, pod: str, index: int, hosts: Mapping[str, Sequence[str]], types: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of replica `index` of a node. `hosts` has all replicas of all nodes, in order of rank.

    `job` is `namespace/name`, `types` are the task types set in the spec (`task_type`). A task of type `none` has the
    hosts of all tasks of that type.
    """
    pods = list(hosts)
    if pod not in pods:
        return {}
    kin = [name for name in pods if task_type(types, name) == "none"]
    return {
        variable_names.DI_JOB_ID: job,
        variable_names.DI_NODES: ",".join(host for replicas in hosts.values() for host in replicas),
        variable_names.di_group_nodes(pod): ",".join(
            host for name in (kin if pod in kin else [pod]) for host in hosts[name]
        ),
        variable_names.DI_RANK: str(sum(len(hosts[name]) for name in pods[: pods.index(pod)]) + index),
    }


def older_variables(
    experiment: Experiment,
    pod: str,
    index: int,
    hosts: Mapping[str, Sequence[str]],
    ports: Mapping[str, int],
    name: str,
) -> dict[str, str]:
    """Return the variables that operators before v1.1 set for replica `index` of `pod`, whose pod name is `name`.

    `hosts` has the replicas of every pod, `ports` the ports of services by name. Both include the operator's server if
    there is one.

    Source: opendilab/DI-orchestrator v1.0.0, pkg/context/job.go; v0.2.2, utils/replicas_util.go.
    """
    settings = settings_of(experiment.workload)
    job = f"{experiment.namespace or 'default'}/{experiment.name}"
    if experiment.workload.kind != "dijob":
        return {}
    if settings.operator == "v1.0" and pod in nodes_of(experiment):
        workers = range(settings.parallel_workers)
        return {
            "DI_JOB_ID": job,
            "DI_JOB_GENERATION": "0",
            "DI_PARALLEL_WORKERS_ARG": f"--parallel-workers={len(workers)}",
            "DI_PORTS_ARG": "--ports=" + ",".join(str(_PORT + worker) for worker in workers),
            "DI_NODE_IDS_ARG": "--node-ids=" + ",".join(str(worker + len(workers) * index) for worker in workers),
            "DI_ATTACHED_NODES_ARG": _attached(settings.topology, hosts[pod][:index], len(workers)),
        }
    if settings.operator == "v0" and pod in ROLES:
        told = {
            "KUBERNETES_POD_NAMESPACE": experiment.namespace or "default",
            "KUBERNETES_POD_NAME": name,
            f"{pod.upper()}_PORT": str(ports.get(pod, _ROLE_PORTS[pod])),
        }
        if SERVER in hosts:
            told[SERVER_URL] = f"{hosts[SERVER][0]}:{ports[SERVER]}"
        if pod == "coordinator":
            told["KUBERNETES_COORDINATOR_URL"] = f"{hosts[pod][index]}:{told['COORDINATOR_PORT']}"
        return told
    return {}


def _attached(topology: str, before: Sequence[str], workers: int) -> str:
    """Return the `--attach-to` flag for the hosts of lower ranks; empty if there is nothing to attach to."""
    if not before or topology == "alone":
        return ""
    if topology == "star":
        return f"--attach-to=tcp://{before[0]}:{_PORT}"
    return "--attach-to=" + ",".join(f"tcp://{host}:{_PORT + worker}" for host in before for worker in range(workers))
