"""The Kind protocol says what the rest of the package asks of a kind of workload, after Kueue's GenericJob.

A kind stands behind a word of the spec (``workload.kind``), behind objects of Kubernetes, or behind both. It answers
for objects as a chart writes them, and for live ones as the API server gives them.

Sources: kubernetes-sigs/kueue, pkg/controller/jobframework/interface.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from symphony_charts.errors import Problem
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.group import Group, Unit
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.workload import Workload

__all__ = [
    "STOPPED",
    "End",
    "Kind",
    "Object",
    "PodSet",
    "Restartable",
    "at_a_time",
    "conditions_of",
    "count_of",
    "described_job",
    "is_pod_ready",
]

Object: TypeAlias = Mapping[str, Any]
End: TypeAlias = Literal["succeeded", "failed"]

STOPPED = "symph.dev/Stopped"
"""The condition of a Job that its set took away when it was over."""

_ENDS: Mapping[str, End] = {
    "Completed": "succeeded",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Deleted": "failed",
    "Error": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods that an object makes of one `template`, `count` of them at a time; `name` is the object's or part's own."""

    name: str
    template: Fields
    count: int


class Kind(Protocol):
    """A kind of workload. What is not said of one below is so for most of them.

    `name` is its word in a spec, empty for what no spec asks for. `gvks` are apiVersion and kind of the objects
    that run it, the newest first, and `further` those of what stands beside them. `is_finite`: they end by
    themselves. `holds_groups`: one object may run several groups. `is_repeated`: of several objects the last one
    counts. `ends_either_way`: they have succeeded when their Jobs have ended, also where one of these failed.
    `has_ranks`: the order of groups matters to it. `is_workflow`: it runs on a schedule of its own, and not inside
    of another. `restarts_in_place`: a failed pod may stay and begin again. `exclusive`: the annotation by which its
    controller keeps other experiments out of a domain of nodes. `argo_conditions`: by what an Argo Workflow sees
    that one has succeeded or failed. `mutable`: all that may change of the spec of a live object; None where
    everything may. `on_change`: what such a change does to its pods. `kueue_paths`: what Kueue writes into an
    object beside ``spec.suspend``; None where it does not start and stop it. `runs_as`: what a group is called in
    it, and `controller` what has to be in the cluster for it.
    """

    name: str = ""
    gvks: tuple[tuple[str, str], ...] = ()
    further: tuple[tuple[str, str], ...] = ()
    runs_as: str = ""
    controller: str = ""
    is_finite: bool = True
    holds_groups: bool = True
    is_repeated: bool = False
    ends_either_way: bool = False
    has_ranks: bool = False
    is_workflow: bool = False
    restarts_in_place: bool = True
    exclusive: str = ""
    argo_conditions: tuple[str, str] | None = None
    mutable: tuple[str, ...] | None = None
    on_change: str = ""
    kueue_paths: tuple[str, ...] | None = None

    # --- from the experiment to objects ---

    def settings(self, workload: Workload) -> dict[str, object]:
        """What this kind alone reads of a spec, as values; nothing where it is as it is by itself."""
        return {}

    def spec_faults(self, experiment: Experiment) -> Iterable[Problem]:
        """What it cannot run of an experiment, with paths in the spec."""
        return ()

    def faults(self, groups: Sequence[Group], values: Mapping[str, object]) -> Iterable[Problem]:
        """What it cannot run of the groups that are to be in its objects, given all values."""
        return ()

    def build(self, unit: Unit) -> Iterable[dict[str, object]]:
        """Its objects; none of a kind that no spec asks for."""
        return ()

    def reads_priority(self, workload: Mapping[str, object]) -> bool:
        """Whether its controller queues by the number in ``workload.priority``."""
        return False

    def reads_minimum(self, workload: Mapping[str, object]) -> bool:
        """Whether its own objects say with how many pods of a group the work begins."""
        return False

    def stops_the_rest(self, values: Mapping[str, object], done: int) -> bool:
        """Whether it ends its other groups once the `done` groups of `doneWhen` have ended; never its services."""
        return False

    def fails_together(self, workload: Workload) -> bool:
        """Whether it ends its other groups when one has failed for good; never its services."""
        return False

    def removes_its_pods(self, values: Mapping[str, object]) -> bool:
        """Whether its end takes all its pods away, those of services too."""
        return False

    # --- from its objects to pods ---

    def children(self, item: Mapping[str, object]) -> Iterable[dict[str, object]]:
        """What its controller makes of an object, as far as it runs pods, under the names it gives."""
        return ()

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The pods that an object makes itself."""
        yield from ()

    def parts(self, item: Fields) -> Iterator[Fields]:
        """The objects inside of one, whose pods are its own."""
        yield from ()

    # --- from live objects to a status ---

    def jobs(self, item: Object) -> list[Object]:
        """The Jobs that a live object describes, whether they are there or not."""
        return []

    def state(self, item: Object) -> str:
        """The state of a live object in its own word: where that stands differs by project."""
        status = item.get("status") or {}
        state = status.get("state") or ""
        phase = state.get("phase") if isinstance(state, Mapping) else state
        # A JobSet has the condition a moment before the word.
        held = next((kind for kind in ("Failed", "Completed") if kind in conditions_of(item)), "")
        return str(status.get("terminalState") or status.get("phase") or phase or held)

    def outcome(self, item: Object) -> End | None:
        """How a live object ended, by its own word; None before that."""
        return _ENDS.get(self.state(item))

    def replicas(self, item: Object) -> int:
        """How many replicas of one template a live object runs; none where it has a template for each part."""
        spec = item["spec"]
        return int(spec.get("replicas", 1)) if "template" in spec else 0

    def is_former(self, item: Object, pod: Object) -> bool:
        """Whether a pod of a group is of an earlier run than the live object that runs the group."""
        runs = [(one["metadata"].get("labels") or {}).get("symph.dev/run") for one in (item, pod)]
        return all(runs) and runs[0] != runs[1]

    def pods_at_a_time(self, item: Object) -> int:
        """How many pods the Jobs of a live object want; none where it describes no Jobs."""
        return sum(at_a_time(Fields.of(job["spec"], "spec", Faults())) for job in self.jobs(item))

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """Whether a live object runs all that it should, as it says itself or as `pods` do, the newest per replica."""
        # Its controller makes them one after the other.
        return len(pods) >= max(self.pods_at_a_time(item), 1) and all(map(is_pod_ready, pods))


def is_pod_ready(pod: Object) -> bool:
    """Whether a pod is ready and stays, or was and has succeeded."""
    is_ready = "Ready" in conditions_of(pod) and not pod["metadata"].get("deletionTimestamp")
    return is_ready or (pod.get("status") or {}).get("phase") == "Succeeded"


@runtime_checkable
class Restartable(Protocol):
    """A kind that goes on when a group has failed: it starts all again, or does without."""

    def restarts(self, item: Object) -> bool:
        """Whether a live object may do so."""
        ...


def described_job(item: Object, end: End | None, name: str, template: Object) -> Object:
    """A Job by the template of a live object, which ended so; suspended with it, and gone with its end."""
    meta, spec = item["metadata"], item["spec"]
    gone = {"type": STOPPED, "status": "True", "message": f"its {item['kind']} has {end}"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": meta.get("namespace", ""),
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "ownerReferences": [{"kind": item["kind"], "name": meta["name"], "uid": meta.get("uid", "")}],
        },
        "spec": {**template["spec"], "suspend": bool(spec.get("suspend"))},
        "status": {"conditions": [gone] if end else []},
    }


def conditions_of(item: Object) -> set[str]:
    """The conditions that a live object has now."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return {condition["type"] for condition in conditions if condition.get("status") == "True"}


def count_of(spec: Fields, key: str) -> int:
    """A number of pods; one where none is said."""
    number = spec.number(key)
    return 1 if number is None else number


def at_a_time(spec: Fields) -> int:
    """How many pods a Job with this spec has at a time."""
    parallelism = count_of(spec, "parallelism")
    return min(parallelism, count_of(spec, "completions")) if spec.has("completions") else parallelism
