"""DI-engine's `ditask` finds its rank and its peers in its environment, as the operator v1.1 gives them to pods.

Every pod that ends is a node: its rank counts over all of them, in order of declaration. Sources:
opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go; opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py, which
reads DI_RANK and DI_NODES. DI_SERVER_URL is left out: it names a server that is there with the operator alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.environment.variables import Fact
from symphony_charts.spec.checks.dijob import pods_in_order
from symphony_charts.spec.model import Experiment

__all__ = ["has_di_engine", "node_facts", "nodes_of"]


def has_di_engine(experiment: Experiment) -> bool:
    """Whether processes find the DI_* variables: `compat` says so, or the kind's own operator sets them."""
    workload = experiment.workload
    return experiment.compat == "di-engine" or (workload.kind == "dijob" and workload.dijob.operator.startswith("v1.1"))


def nodes_of(experiment: Experiment) -> list[str]:
    """The pods that are nodes, by name, in the order of their ranks."""
    return [pod.name for pod in pods_in_order(experiment) if pod.is_finite]


def node_facts(job: str, pod: str, index: int, hosts: Mapping[str, Sequence[str]]) -> dict[Fact, str]:
    """What replica `index` of the node `pod` is told; `hosts` are those of every node's replicas, in order of rank.

    `job` is ``namespace/name``.
    """
    pods = list(hosts)
    return {
        Fact.DI_JOB: job,
        Fact.DI_NODES: ",".join(host for replicas in hosts.values() for host in replicas),
        Fact.DI_GROUP_NODES: ",".join(hosts[pod]),
        Fact.DI_RANK: str(sum(len(hosts[name]) for name in pods[: pods.index(pod)]) + index),
    }
