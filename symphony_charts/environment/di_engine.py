"""What DI-engine's `ditask` finds in its environment, as the operator v1.1 gives it to the pods of a DIJob.

Every pod that ends is a node: its rank counts over all of them, in order of declaration. Sources:
opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go; opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py, which
reads DI_RANK and DI_NODES. DI_SERVER_URL is left out: it names a server that is there with the operator alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.spec.checks.dijob import pods_in_order
from symphony_charts.spec.model import Experiment

__all__ = ["di_environment", "has_di_engine", "nodes_of", "own_nodes_variable"]


def has_di_engine(experiment: Experiment) -> bool:
    """Whether processes find the DI_* variables: `compat` says so, or the kind's own operator sets them."""
    workload = experiment.workload
    return experiment.compat == "di-engine" or (workload.kind == "dijob" and workload.dijob.operator.startswith("v1.1"))


def nodes_of(experiment: Experiment) -> list[str]:
    """The pods that are nodes, by name, in the order of their ranks."""
    return [pod.name for pod in pods_in_order(experiment) if pod.is_finite]


def own_nodes_variable(pod: str) -> str:
    """The variable that lists the nodes of a pod's own replicas: ``DI_COLLECTOR_NODES``."""
    return f"DI_{pod.upper().replace('-', '_')}_NODES"


def di_environment(job: str, pod: str, index: int, hosts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The variables of replica `index` of `pod`; `hosts` are those of every node's replicas, in order of rank.

    Empty for a pod that is no node. `job` is ``namespace/name``.
    """
    if pod not in hosts:
        return {}
    before = list(hosts)[: list(hosts).index(pod)]
    return {
        "DI_JOB_ID": job,
        "DI_NODES": ",".join(host for each in hosts.values() for host in each),
        own_nodes_variable(pod): ",".join(hosts[pod]),
        "DI_RANK": str(sum(len(hosts[name]) for name in before) + index),
    }
