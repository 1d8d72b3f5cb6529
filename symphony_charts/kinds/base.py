"""The interface between a kind of workload and its objects, modelled on Kueue's GenericJob.

A kind reads objects from charts and live objects from the API server. The class of the same name in
``chart/build/kinds``, or the `builder` of a kind from another package, writes charts.

Sources: kubernetes-sigs/kueue, pkg/controller/jobframework/interface.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.spec import variable_names
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service
from symphony_charts.spec.sources import Record
from symphony_charts.spec.workload import Workload

Object: TypeAlias = Mapping[str, Any]
End: TypeAlias = Literal["succeeded", "failed"]

COMPONENT = "conductor"
"""The component (a label) of the Job that ends a run."""

WAITING = "symph-waiting"
"""The container that keeps a pod of services running until its Job is suspended or deleted."""

UNTIL = "symph.dev/until"
"""The annotation of a Job of services that end with the run."""

ENDED = "symph.dev/ended"
"""The annotation of a Job that the conductor suspended at the end of the run."""

STOPPED = "symph.dev/Stopped"
"""The condition of a Job that its set deleted when the set ended."""

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
    """Pods that an object creates from one `template`, `count` at a time. `name` names the object or its part."""

    name: str
    template: Fields
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialObjects:
    """A trial of a sweep: the name of its release, and its objects."""

    name: str
    objects: Sequence[Mapping[str, object]]


class Kind(Protocol):
    """A kind of workload. The defaults hold for most kinds.

    `name` is its word in a spec; empty if no spec can ask for it. `gvks` are apiVersion and kind of its objects, the
    newest first; `further` those of additional objects. `is_finite`: its objects end by themselves. `holds_groups`: one
    object may run several groups. `is_repeated`: of several objects the last one counts. `ends_either_way`: an object
    has succeeded when its Jobs have ended, even if one failed. `is_workflow`: it has its own schedule, and cannot run
    inside another workflow. `restarts_in_place`: the kubelet may restart a failed pod. `exclusive`: the annotation with
    which its controller keeps other experiments out of a domain of nodes. `argo_conditions`: how an Argo Workflow
    detects success and failure. `mutable`: the paths in the spec of a live object that may change; None if all may.
    `on_change`: the effect of such a change on its pods. `kueue_paths`: paths in an object that Kueue writes besides
    ``spec.suspend``; None if Kueue does not start and stop it. `runs_as`: the name of a group's part of it.
    `controller`: the software that the cluster needs for it. `pod_selector`: the label of all pods that its controller
    labels itself; empty if they have the labels of our charts.

    A kind from another package also sets these. `settings`: the record of ``workload.<name>`` in a spec. `short_forms`:
    JSON Schemas of short forms of settings, which `expanded` expands. `builder`: the class that writes its charts, a
    subclass of `Kind` of ``chart.build.draft``, or its ``module:name``. `compat`: the word of ``compat`` in a spec with
    which processes under any kind get the variables that its controller would set. `peers`: the class that adds
    these to charts, a subclass of `Peers` of ``chart.build.draft``, or its ``module:name``.
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
    is_workflow: bool = False
    restarts_in_place: bool = True
    exclusive: str = ""
    argo_conditions: tuple[str, str] | None = None
    mutable: tuple[str, ...] | None = None
    on_change: str = ""
    kueue_paths: tuple[str, ...] | None = None
    pod_selector: str = ""
    settings: type[Record] = Record
    short_forms: ClassVar[Mapping[str, Sequence[dict[str, Any]]]] = {}
    compat: str = ""
    builder: type[Any] | str = ""
    peers: type[Any] | str = ""

    # --- from a spec to an experiment ---

    def expanded(self, settings: dict[str, object]) -> dict[str, object]:
        """Return the settings with short forms expanded."""
        return settings

    def with_clean_names(self, settings: Any) -> Record:
        """Return the settings with sanitised names of groups and processes."""
        record: Record = settings
        return record

    def faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return the faults of its settings, independent of the experiment's kind."""
        return ()

    def cluster_faults(self, experiment: Experiment) -> Iterable[Problem]:
        """Return parts of an experiment of this kind that it cannot run."""
        return ()

    # --- from an experiment to a run on this machine ---

    def with_helpers_here(
        self, experiment: Experiment, services: Sequence[Service], run_dir: str
    ) -> tuple[Experiment, Sequence[Service]]:
        """Return experiment and services plus the processes that replace a controller on this machine."""
        return experiment, services

    def planned_here(self, plan: Any, run_dir: str) -> Any:
        """Return the plan of a run with the needs of those processes added."""
        return plan

    def hidden_here(self, experiment: Experiment) -> Collection[str]:
        """Return the services of those processes; other processes do not get their addresses."""
        return ()

    def variables_here(
        self, experiment: Experiment, pod: str, index: int, hosts: Mapping[str, Sequence[str]]
    ) -> Mapping[str, str]:
        """Return variables of a replica that its declared ones override. `hosts` are those of all replicas, by pod."""
        return {}

    def overrides_here(
        self,
        experiment: Experiment,
        pod: str,
        index: int,
        hosts: Mapping[str, Sequence[str]],
        ports: Mapping[str, int],
        name: str,
    ) -> Mapping[str, str]:
        """Return variables of a replica that override its declared ones.

        `ports` are those of services by name, and `name` is the replica's own.
        """
        return {}

    # --- what it does with an experiment ---

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True if it ends its other groups (never services) once the `done` groups of `done_when` have."""
        return False

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True if services with `until: run` are Jobs, or a part of its object, and end with the run."""
        return False

    def is_conducted(self, workload: Workload) -> bool:
        """Return True if a conductor ends all Jobs of a run, not only services beside its object."""
        return False

    def fails_together(self, workload: Workload) -> bool:
        """Return True if it ends its other groups (never services) when one has failed for good."""
        return False

    def removed_pods(self, experiment: Experiment) -> Collection[str]:
        """Return the names of the pods, including those of services, that are removed when it ends."""
        return ()

    # --- from its objects to pods ---

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterable[dict[str, object]]:
        """Return the objects that run pods and that its controller creates from `item`, with the controller's names.

        `beside` are all objects of the release: a controller may take pod templates from them.
        """
        return ()

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """Yield the pods that an object creates itself."""
        yield from ()

    def parts(self, item: Fields) -> Iterator[Fields]:
        """Yield the objects inside an object whose pods belong to it."""
        yield from ()

    # --- from the trials of a sweep to one workflow, for a kind that is one ---

    def sweep_objects(
        self, experiment: Experiment, trials: Sequence[TrialObjects], *, parallel: int | None = None
    ) -> list[dict[str, object]]:
        """Return a workflow that creates the objects of `trials`, `parallel` trials at a time, and its RBAC objects.

        `experiment` is the one whose settings the trials vary.

        Raises:
            SpecError: The workflow is too large.
        """
        return []

    def lost_in_task(self, workload: Workload) -> Iterable[str]:
        """Return the paths of settings that a trial loses as a task of such a workflow."""
        return ()

    # --- from live objects to their pods ---

    def selectors(self, items: Sequence[Object]) -> list[str]:
        """Return the selectors of live objects' pods, for a kind with a `pod_selector`."""
        return []

    def labelled_pods(self, items: Sequence[Object], listed: Callable[[str], Iterable[Object]]) -> list[dict[str, Any]]:
        """Return the pods of live objects with the labels of our charts. `listed` returns the pods of a selector."""
        return []

    def adopted(self, item: Object) -> dict[str, Any] | None:
        """Return a live object from outside our charts, labelled as an experiment of its name; None if not known."""
        return None

    # --- from live objects to a status ---

    def jobs(self, item: Object) -> list[Object]:
        """Return the Jobs that a live object describes, even if they do not exist."""
        return []

    def state(self, item: Object) -> str:
        """Return the state of a live object in its project's word, from the field that the project uses."""
        status = item.get("status") or {}
        state = status.get("state") or ""
        phase = state.get("phase") if isinstance(state, Mapping) else state
        # JobSet sets the condition a moment before the phase.
        held = next((kind for kind in ("Failed", "Completed") if kind in conditions_of(item)), "")
        return str(status.get("terminalState") or status.get("phase") or phase or held)

    def outcome(self, item: Object) -> End | None:
        """Return the outcome of a live object; None before its end."""
        return _ENDS.get(self.state(item))

    def replicas(self, item: Object) -> int:
        """Return the replicas of a live object's template; 0 if each of its parts has a template."""
        spec = item["spec"]
        return int(spec.get("replicas", 1)) if "template" in spec else 0

    def is_former(self, item: Object, pod: Object) -> bool:
        """Return True if `pod` belongs to an earlier run than the live object that runs its group."""
        runs = {run_of(item), run_of(pod)}
        return len(runs) > 1 and "" not in runs

    def pods_at_a_time(self, item: Object) -> int:
        """Return the number of pods that a live object's Jobs want; 0 if it describes no Jobs."""
        return sum(at_a_time(Fields.of(job["spec"], "spec", Faults())) for job in self.jobs(item))

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """Return True if a live object runs everything it should. `pods` are the newest of each replica."""
        # The controller creates the pods one by one.
        return len(pods) >= max(self.pods_at_a_time(item), 1) and all(map(is_pod_ready, pods))


def run_of(item: Object) -> str:
    """Return the run of an object; empty if it outlives runs. A StatefulSet has it only as a label of its pods."""
    template = (item.get("spec") or {}).get("template") or {}
    labels = (one.get("metadata", {}).get("labels") or {} for one in (item, template))
    return next((str(each["symph.dev/run"]) for each in labels if "symph.dev/run" in each), "")


def is_conductor(item: Mapping[str, object]) -> bool:
    """Return True for the Job that ends a run, its pods, and the account that the chart makes for it."""
    labels = sub(item, "metadata", "labels")
    return labels.get("app.kubernetes.io/component") == COMPONENT


def is_service(item: Mapping[str, object]) -> bool:
    """Return True for a Job of services that end with the run."""
    return UNTIL in sub(item, "metadata", "annotations")


def process_of(container: Mapping[str, object]) -> str:
    """Return the process that a container runs. An operator may require another container name."""
    return variable_in(container, variable_names.ROLE) or str(container["name"])


def variable_in(container: Mapping[str, object], name: str) -> str:
    values = (entry.get("value") for entry in maps(container, "env") if entry.get("name") == name)
    return str(next(values, None) or "")


def is_pod_ready(pod: Object) -> bool:
    """Return True if a pod has succeeded, or is ready and not being deleted."""
    is_ready = "Ready" in conditions_of(pod) and not pod["metadata"].get("deletionTimestamp")
    return is_ready or (pod.get("status") or {}).get("phase") == "Succeeded"


@runtime_checkable
class Restartable(Protocol):
    """A kind that continues after a group has failed: it restarts everything, or continues without the group."""

    def restarts(self, item: Object) -> bool:
        """Return True if a live object may continue."""
        ...


def described_job(item: Object, end: End | None, name: str, template: Object) -> Object:
    """Return the Job of a `template` in a live object with outcome `end`; it is suspended if the object is."""
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
    """Return the conditions that are true for a live object."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return {condition["type"] for condition in conditions if condition.get("status") == "True"}


def count_of(spec: Fields, key: str) -> int:
    """Return a number of pods; 1 if it is not set."""
    number = spec.number(key)
    return 1 if number is None else number


def at_a_time(spec: Fields) -> int:
    """Return the number of pods that a Job with this spec runs at a time."""
    parallelism = count_of(spec, "parallelism")
    return min(parallelism, count_of(spec, "completions")) if spec.has("completions") else parallelism
