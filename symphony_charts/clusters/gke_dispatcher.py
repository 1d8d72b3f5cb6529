"""Symphony's dispatcher: request a share of a machine for a process, and the labels and tolerations to get there.

The calls are those of Symphony's Kubernetes guide; the default numbers are the allocatable resources of real nodes.
Calls raise for wrong use only: `symph plan` checks that all processes fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.placement.assign import ANNOTATION, exclusive_terms, with_anti_affinity
from symphony_charts.placement.assign_rules import Decision, decide, decide_like_symphony, named_pool
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.readers import pools_of_data, read_pools_file, user_catalog
from symphony_charts.spec.builder.experiment import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.spec.sources import Assignment
from symphony_charts.system.records import convert

__all__ = ["GKEDispatcher"]

_MODES = ("machine", "gpu", "resource", "node_pool")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "machine": ("node_pool_name", "process_per_machine", "exclusive"),
    "gpu": ("node_pool_name", "exclusive", "cpu", "memory_m", "gpu_type", "gpu_count"),
    "resource": ("node_pool_name", "cpu", "memory_m", "gpu_type", "gpu_count", "exclusive"),
    "node_pool": ("node_pool_name", "cpu", "memory_m", "gpu_count", "exclusive"),
}


class GKEDispatcher:
    """Assigns processes to the node pools of one cluster.

    `source` is a cluster file (any format of `symphony_charts.placement.pools`, such as Cloudwise's ``.tf.json``) or
    its parsed content. `formula="symphony"` reproduces Symphony's own numbers. Every call returns its `Decision`, and
    `decisions` keeps them. The process group is inferred; passing another one is an error.
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, object] | Pools,
        *,
        formula: Literal["allocatable", "symphony"] = "allocatable",
    ) -> None:
        if formula not in ("allocatable", "symphony"):
            raise SpecError.one(f'no formula "{formula}"', "formula", 'use "allocatable" or "symphony"')
        self._file = ""
        if isinstance(source, Pools):
            self.pools = source
        elif isinstance(source, Mapping):
            self.pools = pools_of_data(dict(source), catalog=user_catalog())
        else:
            self.pools = read_pools_file(source)
            self._file = str(Path(source).expanduser().absolute())
        self.formula = formula
        self.decisions: list[Decision] = []

    def __repr__(self) -> str:
        return f"GKEDispatcher with node pools: {', '.join(self.get_node_pools())}"

    def get_node_pools(self) -> list[str]:
        """Return the names of all node pools, sorted."""
        return self.pools.names

    def get_node_pool(self, node_pool_name: str) -> Pool:
        """Return the pool of that name; raises SpecError with the nearest one."""
        return named_pool(node_pool_name, self.pools)

    def assign_to_machine(
        self,
        process: ProcessSpec,
        process_group: ProcessGroupSpec | None = None,
        *,
        node_pool_name: str,
        process_per_machine: int = 1,
        exclusive: bool | None = None,
    ) -> Decision:
        """Request 1/`process_per_machine` of a machine of the pool; `exclusive` keeps other pods off it."""
        assignment = Assignment(
            assign_to="machine",
            node_pool_name=node_pool_name,
            process_per_machine=process_per_machine,
            exclusive=exclusive,
        )
        return self._assign(process, process_group, assignment)

    def assign_to_gpu(
        self,
        process: ProcessSpec,
        process_group: ProcessGroupSpec | None = None,
        *,
        node_pool_name: str | None = None,
        cpu: float | None = None,
        memory_m: float | None = None,
        gpu_type: str | None = None,
        gpu_count: int | None = None,
        exclusive: bool | None = None,
    ) -> Decision:
        """Request one GPU and its share of a machine of the pool.

        With `cpu`, `memory_m`, `gpu_type` or `gpu_count` it calls `assign_to_resource`, as in Symphony's guide.
        """
        assignment = Assignment(
            assign_to="gpu",
            node_pool_name=node_pool_name,
            cpu=cpu,
            memory_m=memory_m,
            gpu_type=gpu_type,
            gpu_count=gpu_count,
            exclusive=exclusive,
        )
        return self._assign(process, process_group, assignment)

    def assign_to_resource(
        self,
        process: ProcessSpec,
        process_group: ProcessGroupSpec | None = None,
        *,
        node_pool_name: str | None = None,
        cpu: float | None = None,
        memory_m: float | None = None,
        gpu_type: str | None = None,
        gpu_count: int | None = None,
        exclusive: bool | None = None,
    ) -> Decision:
        """Request cores, memory (MiB) and GPUs on the pool that they use best; `gpu_type` alone means one GPU."""
        assignment = Assignment(
            assign_to="resource",
            node_pool_name=node_pool_name,
            cpu=cpu,
            memory_m=memory_m,
            gpu_type=gpu_type,
            gpu_count=gpu_count,
            exclusive=exclusive,
        )
        return self._assign(process, process_group, assignment)

    def assign_to_node_pool(
        self,
        process: ProcessSpec,
        process_group: ProcessGroupSpec | None = None,
        *,
        node_pool_name: str,
        cpu: float | None = None,
        memory_m: float | None = None,
        gpu_count: int | None = None,
        exclusive: bool | None = None,
    ) -> Decision:
        """Request cores, memory (MiB) and GPUs on the named pool."""
        assignment = Assignment(
            assign_to="node_pool",
            node_pool_name=node_pool_name,
            cpu=cpu,
            memory_m=memory_m,
            gpu_count=gpu_count,
            exclusive=exclusive,
        )
        return self._assign(process, process_group, assignment)

    def assign_to(
        self, process: ProcessSpec, process_group: ProcessGroupSpec | None = None, *, assign_to: str, **settings: object
    ) -> Decision:
        """Call the method of a mode with settings from a configuration; None counts as not given.

        Raises SpecError for an unknown mode, TypeError (as Symphony does) for a key that the mode does not take.
        """
        if assign_to not in _MODES:
            raise SpecError.one(f'no mode "{assign_to}"', "assign_to", f"use one of {', '.join(_MODES)}")
        given = {key: value for key, value in settings.items() if value is not None}
        unknown = sorted(set(given) - set(_KEYS[assign_to]))
        if unknown:
            raise TypeError(
                f"assign_to {assign_to} takes no {', '.join(unknown)}; it takes {', '.join(_KEYS[assign_to])}"
            )
        try:
            assignment = convert({"assign_to": assign_to, **given}, Assignment)
        except msgspec.ValidationError as error:
            raise SpecError.one(f"assign_to {assign_to}: {error}", "assign_to") from error
        return self._assign(process, process_group, assignment)

    def _assign(self, process: ProcessSpec, process_group: ProcessGroupSpec | None, assignment: Assignment) -> Decision:
        pod = _pod_of(process, process_group)
        if self.formula == "symphony":
            decision = decide_like_symphony(assignment, self.pools)
        else:
            pool = str(sub(pod.to_data(), "annotations").get(ANNOTATION, "")).partition(": ")[2]
            decision = decide(assignment, self.pools, group_pool="" if pod is process else pool)
        _refuse_second_pool(pod, process, decision)
        _write(process, pod, decision)
        self._name_pools(pod.experiment)
        decision = replace(decision, process=process.name)
        self.decisions.append(decision)
        return decision

    def _name_pools(self, experiment: ExperimentSpec | None) -> None:
        """Set the pools file of an experiment that names none, so that every verb checks that it fits."""
        if experiment is None or not self._file:
            return
        settings = sub(experiment.to_data(), "placement")
        if not settings.get("pools"):
            experiment.set(placement={**settings, "pools": self._file})


def _pod_of(process: ProcessSpec, group: ProcessGroupSpec | None) -> ProcessSpec | ProcessGroupSpec:
    if group is not None and process.group is not group:
        where = f'is in group "{process.group.name}"' if process.group else "is in no group"
        what = f'process "{process.name}" {where}, not in "{group.name}"'
        raise SpecError.one(what, process.name, "leave process_group out: it is inferred")
    return process.group or process


def _refuse_second_pool(pod: ProcessSpec | ProcessGroupSpec, process: ProcessSpec, decision: Decision) -> None:
    selector = sub(pod.to_data(), "node_selector")
    for key, value in decision.selector:
        if selector.get(key, value) != value:
            what = f'"{process.name}" is sent to {value}, but its pod is already bound to {key}={selector[key]}'
            raise SpecError.one(what, pod.name, "processes of one group share a pod, so they need one pool")


def _write(process: ProcessSpec, pod: ProcessSpec | ProcessGroupSpec, decision: Decision) -> None:
    process.resource_request(cpu=decision.cpu, memory=decision.memory)
    process.set(pod_share=[name for name in decision.shared if getattr(decision, name) is not None])
    if decision.gpus:
        process.resource_limit(gpu=decision.gpus)
    if decision.tpus:
        chips: dict[str, Any] = {"google.com/tpu": str(decision.tpus)}
        process.resource_limit(**chips)
    for key, value in decision.selector:
        pod.node_selector(key, value)
    for toleration in decision.tolerations:
        pod.add_toleration(**msgspec.to_builtins(toleration))
    if decision.is_exclusive:
        terms = exclusive_terms(pod.name, pod.experiment.name if pod.experiment else "")
        pod.set(pod_overlay=with_anti_affinity(sub(pod.to_data(), "pod_overlay"), terms))
    if decision.pool:
        pod.add_annotation(ANNOTATION, f"{decision.mode}: {decision.pool}")
