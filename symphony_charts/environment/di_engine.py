"""DI-engine's `ditask` finds its rank and its peers in its environment, as the operator v1.1 gives them to pods.

Every pod that ends is a node: its rank counts over all of them, in order of declaration. Sources:
opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go; opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py, which
reads DI_RANK and DI_NODES. DI_SERVER_URL is left out: it names a server that is there with the operator alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.integrations.dijob.settings import ROLES, pods_in_order, settings_of, task_type
from symphony_charts.spec import variable_names as names
from symphony_charts.spec.model import Experiment

__all__ = [
    "ASKED_FOR",
    "SERVER",
    "SERVER_URL",
    "has_di_engine",
    "is_of_v0",
    "node_variables",
    "nodes_of",
    "older_variables",
]

SERVER = "di-server"
"""What the process and the service are called that stand for the server of operator v0 on one machine."""

SERVER_URL = "KUBERNETES_SERVER_URL"

ASKED_FOR = ("collector", "learner")
"""The roles of which operator v0 starts as many pods as the coordinator asks it for."""

# Where the first worker of a pod listens under operator v1.0, and roles under v0 that name no port of their own.
_PORT = 22270
_ROLE_PORTS = {"collector": 22270, "learner": 22271, "aggregator": 22272, "coordinator": 22273}


def has_di_engine(experiment: Experiment) -> bool:
    """Return True if processes find the DI_* variables: by `compat`, or from the operator."""
    workload = experiment.workload
    is_told = workload.kind == "dijob" and settings_of(workload).operator.startswith("v1.1")
    return experiment.compat == "di-engine" or is_told


def is_of_v0(experiment: Experiment) -> bool:
    """Return True if operator v0 runs it, whose server starts the roles that the coordinator asks for."""
    return experiment.workload.kind == "dijob" and settings_of(experiment.workload).operator == "v0"


def nodes_of(experiment: Experiment) -> list[str]:
    """The pods that are nodes, by name, in the order of their ranks."""
    return [pod.name for pod in pods_in_order(experiment) if pod.is_finite]


def node_variables(
    job: str, pod: str, index: int, hosts: Mapping[str, Sequence[str]], types: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of replica `index` of a node. `hosts` are those of all replicas of nodes, in order of rank.

    `job` is ``namespace/name``, `types` those that the spec sets for tasks (`task_type`). A task of type ``none``
    has the hosts of all tasks of that type.
    """
    pods = list(hosts)
    if pod not in pods:
        return {}
    kin = [name for name in pods if task_type(types, name) == "none"]
    return {
        names.DI_JOB_ID: job,
        names.DI_NODES: ",".join(host for replicas in hosts.values() for host in replicas),
        names.di_group_nodes(pod): ",".join(host for name in (kin if pod in kin else [pod]) for host in hosts[name]),
        names.DI_RANK: str(sum(len(hosts[name]) for name in pods[: pods.index(pod)]) + index),
    }


def older_variables(
    experiment: Experiment,
    pod: str,
    index: int,
    hosts: Mapping[str, Sequence[str]],
    ports: Mapping[str, int],
    name: str,
) -> dict[str, str]:
    """Return the variables that operators before v1.1 set for replica `index` of `pod`, whose own name is `name`.

    `hosts` are those of every pod's replicas, `ports` those of services by name. The operator's server is among both
    where there is one.
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
    """The flag that names the nodes to which one attaches, given the hosts of lower ranks."""
    if not before or topology == "alone":
        return ""
    if topology == "star":
        return f"--attach-to=tcp://{before[0]}:{_PORT}"
    return "--attach-to=" + ",".join(f"tcp://{host}:{_PORT + worker}" for host in before for worker in range(workers))
