"""Where a pod may run, and how far it is locked down there."""

from __future__ import annotations

from typing import Literal

from symphony_charts.spec.record import Record

__all__ = ["Assignment", "Placement", "SecuritySettings", "Toleration", "topology_of"]

_LEVELS = {
    "block": "cloud.google.com/gce-topology-block",
    "subblock": "cloud.google.com/gce-topology-subblock",
    "host": "cloud.google.com/gce-topology-host",
    "node": "kubernetes.io/hostname",
}


def topology_of(wanted: str) -> tuple[str, str]:
    """Return strength and node label of a topology: ``block``, ``preferred:block``, ``required:<label>``.

    Source: GKE's labels of nodes.
    """
    strength, _, level = wanted.rpartition(":")
    return strength or "required", _LEVELS.get(level, level)


class Toleration(Record, frozen=True, kw_only=True):
    """A Kubernetes toleration; absent fields are absent there too.

    Attributes:
        key: The taint that is tolerated; without one every taint.
        operator: `Exists`: whatever its value; `Equal` (default): with this `value`.
        value: The value of the taint.
        effect: The effect that is tolerated; without one all.
        seconds: How long a pod stays on a node that got the taint `NoExecute`.
    """

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    seconds: int | None = None


class Assignment(Record, frozen=True, kw_only=True):
    """What the dispatcher is asked to do with a process; the keys are those of Symphony's `assign_to`.

    Attributes:
        assign_to: `machine`: shares of a node of a pool; `gpu`: GPUs of a pool; `resource`: amounts, wherever they fit;
            `node_pool`: any node of a pool.
        node_pool_name: The pool, by its name in the pools file.
        process_per_machine: So many of these processes fill one node.
        exclusive: Whether nothing else of the experiment runs on its nodes.
        cpu: Cores, with a fraction if need be.
        memory_m: Memory in MiB.
        gpu_type: The type of GPU, as the pool names it.
        gpu_count: How many GPUs.
    """

    assign_to: Literal["machine", "gpu", "resource", "node_pool"]
    node_pool_name: str | None = None
    process_per_machine: int | None = None
    exclusive: bool | None = None
    cpu: float | None = None
    memory_m: float | None = None
    gpu_type: str | None = None
    gpu_count: int | None = None


class Placement(Record, frozen=True, kw_only=True):
    """Scheduling of the whole experiment: the node pools it is planned on, and launch features of its pods.

    Attributes:
        pools: The file that says which node pools there are, beside the spec.
        formula: `allocatable`: what Kubernetes leaves of a machine; `symphony`: Symphony's own share of it.
        spot: Run on machines that may be taken away.
        flex_start: Wait for machines by flex-start.
        reservation: The reservation whose machines are used.
        compact: Nodes that stand close together.
        topology: The topology that one group of pods stays within.
        exclusive: The topology that one group of pods has for itself.
        tpu_topology: Chips of a TPU slice, such as `2x4`.
    """

    pools: str | None = None
    formula: Literal["allocatable", "symphony"] = "allocatable"
    spot: bool = False
    flex_start: bool = False
    reservation: str | None = None
    compact: bool = False
    topology: str | None = None
    exclusive: str | None = None
    tpu_topology: str | None = None


class SecuritySettings(Record, frozen=True, kw_only=True):
    """How far the pods are locked down.

    Attributes:
        level: The Pod Security level; `restricted` admits the least, `privileged` gives capabilities and privileges
            back.
        run_as_user: The number of the user.
        run_as_group: The number of the group.
        fs_group: The group that owns mounted volumes.
        read_only_root: Whether the image's own files are read-only.
        network_policy: Whether only the services of the experiment can be dialled, and only by it.
        service_account_token: Whether pods get a token of the API server.
    """

    level: Literal["baseline", "restricted", "privileged"] = "baseline"
    run_as_user: int | None = None
    run_as_group: int | None = None
    fs_group: int | None = None
    read_only_root: bool = False
    network_policy: bool = False
    service_account_token: bool = False
