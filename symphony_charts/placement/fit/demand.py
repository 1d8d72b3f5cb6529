"""The demand of Kubernetes objects: pods of equal shape are counted together, across groups.

The rendered pods are the only source, so the plan sees the same pods as the scheduler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.registry import KINDS, kind_for
from symphony_charts.placement.allocatable import Amounts
from symphony_charts.placement.fit.podspec import (
    REQUIRED,
    NodeAffinity,
    gpus_at_once,
    pod_ports,
    pod_requests,
    read_anti_affinity,
    read_node_affinity,
    read_tolerations,
)
from symphony_charts.placement.pools.pool import AntiAffinity, HostPort, Pools
from symphony_charts.spec.sources import Toleration

_GROUP_LABEL = "symph.dev/group"
# Schedulers that filter nodes like kube-scheduler: itself, GKE's profile of it, and the supported gang schedulers.
_SCHEDULERS = frozenset(
    {"", "default-scheduler", "gke.io/optimize-utilization-scheduler", "scheduler-plugins-scheduler", "volcano"}
)
_OUTSIDE = frozenset(
    {"resourceClaims", "schedulingGates", "runtimeClassName", "os", "affinity", "topologySpreadConstraints"}
)
_TOPOLOGIES = ("kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All fields of a pod that affect scheduling.

    `anti_affinity` are the required terms. `labels`, `namespace` (if the objects set it) and `is_of_jobset` are only
    set if `Pools.needs_labels`, or if some pod has such a term. `unknown` names rules that the model of the scheduler
    lacks; `is_unruly`: such a pod may take a node, or more of one, than its own rules allow. `gpus_at_once` is the most
    GPUs that one container requests, if more than one.
    """

    requests: tuple[tuple[str, int], ...]
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    ports: frozenset[HostPort] = frozenset()
    anti_affinity: tuple[AntiAffinity, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    namespace: str = ""
    is_of_jobset: bool = False
    unknown: tuple[str, ...] = ()
    is_unruly: bool = False
    gpus_at_once: int = 0

    def amount(self, resource: str) -> int:
        return next((amount for name, amount in self.requests if name == resource), 0)

    @property
    def node_keys(self) -> frozenset[str]:
        """The labels of nodes that it uses; an empty one is the node's name."""
        required = ("" if each.is_field else each.key for term in self.affinity or () for each in term)
        return frozenset((*dict(self.selector), *required))


@dataclass(slots=True)
class Demand:
    """Pods of one shape: `members` are the experiment's pods (name, replicas), `count` is their total."""

    shape: Shape
    members: list[tuple[str, int]] = field(default_factory=list)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = sum(count for _, count in self.members)

    @property
    def name(self) -> str:
        """The first member's name, and the number of others."""
        first = self.members[0][0]
        return first if len(self.members) == 1 else f"{first} and {len(self.members) - 1} more"


def demands_of(
    objects: Iterable[Mapping[str, object]], *, scheduler: str = "", pools: Pools | None = None
) -> list[Demand]:
    """Return the demands of all pods that `objects` run at a time, sorted by shape.

    Supported are Job, StatefulSet, Deployment, JobSet, Volcano's Job, AppWrapper, DIJob, WorkflowTemplate and lists of
    these; other kinds make no pods. `scheduler` is one more that filters nodes like kube-scheduler. `pools` are the
    pools of the plan: their pods may repel these by label. Raises SpecError for an unreadable pod.
    """
    faults = Faults()
    listed = [_fields(item, faults) for item in objects]
    pods = [pod for item in listed for pod in _pods(item)]
    gangs = frozenset(
        item.block("metadata").text("name")
        for item in listed
        if item.text("kind") == "PodGroup" and item.block("spec").block("schedulingConstraints").has("topology")
    )
    faults.check()
    with_labels = (pools is not None and pools.needs_labels) or any(
        pod.template.block("spec").block("affinity").has("podAntiAffinity") for pod in pods
    )
    members: dict[Shape, list[tuple[str, int]]] = defaultdict(list)
    for pod in pods:
        if pod.count > 0:
            shape = _shape(pod, _SCHEDULERS | {scheduler}, with_labels=with_labels, gangs=gangs)
            members[shape].append((pod.name, pod.count))
    faults.check()
    return in_order(Demand(shape, sorted(named)) for shape, named in members.items())


def pending_demands(pods: Iterable[Mapping[str, object]]) -> list[Demand]:
    """Return the demands of pods that wait for a node, by namespace and name.

    Another scheduler name, a gate or a runtime class affects when a pod is bound, not its possible nodes: the API
    server has already added the overhead of its runtime class.
    """
    faults = Faults()
    members: dict[Shape, list[tuple[str, int]]] = defaultdict(list)
    for item in pods:
        pod = Fields.of(dict(item), "", faults)
        namespace = pod.block("metadata").text("namespace")
        name = f"{namespace}/{pod.block('metadata').text('name')}"
        shape = _shape(_Pods(name, pod, 1, namespace=namespace), _SCHEDULERS, with_labels=True)
        members[replace(shape, unknown=(), is_unruly=False)].append((name, 1))
    faults.check()
    return in_order(Demand(shape, named) for shape, named in members.items())


def running_requests(objects: Iterable[Mapping[str, object]]) -> dict[str, Amounts]:
    """Return the requests of one running pod of each group: its containers and sidecars without steps."""
    faults = Faults()
    pods = {pod.name: pod.template for item in objects for pod in _pods(_fields(item, faults))}
    requests = {name: pod_requests(template.block("spec"), with_steps=False) for name, template in pods.items()}
    faults.check()
    return requests


def _fields(item: Mapping[str, object], faults: Faults) -> Fields:
    fields = Fields.of(dict(item), "", faults)
    return Fields.of(fields.data, f"{fields.text('kind')}/{fields.block('metadata').text('name')}", faults)


@dataclass(frozen=True, slots=True)
class _Pods:
    """`count` pods of one template; `kind` makes them, in `namespace` if its object sets one.

    `exclusive` is the node label whose values the controller reserves for one Job each; empty if it does not.
    """

    name: str
    template: Fields
    count: int
    kind: str = ""
    namespace: str = ""
    exclusive: str = ""


def _pods(item: Fields) -> Iterator[_Pods]:
    kind = kind_for(item.data)
    for pods in kind.pod_sets(item) if kind else ():
        marks = [holder.block("metadata").block("annotations") for holder in (item, pods.template)]
        exclusive = [mark.text(kind.exclusive) for mark in marks if kind and kind.exclusive]
        yield _Pods(
            name=pods.template.block("metadata").block("labels").text(_GROUP_LABEL) or pods.name,
            template=pods.template,
            count=pods.count,
            kind=kind.name if kind else "",
            namespace=item.block("metadata").text("namespace"),
            exclusive=next(filter(None, exclusive), ""),
        )
    # Only a list contains other objects.
    for part in kind.parts(item) if kind else item.blocks("items") if item.text("kind") == "List" else ():
        yield from _pods(part)


def _shape(pods: _Pods, schedulers: frozenset[str], *, with_labels: bool, gangs: frozenset[str] = frozenset()) -> Shape:
    """Return the shape of the pods; `gangs` are the pod groups that need a topology domain."""
    template, spec = pods.template, pods.template.block("spec")
    labels = template.block("metadata").mapping("labels") if with_labels else {}
    requests = pod_requests(spec)
    passes_by = spec.has("nodeName") or spec.has("runtimeClassName")
    is_unruly = passes_by or spec.text("schedulerName") not in schedulers
    unknown = list(_unknown(spec, schedulers)) if is_unruly or not _OUTSIDE.isdisjoint(spec.data) else []
    annotations = template.block("metadata").block("annotations")
    unknown += (f"{key.rpartition('/')[2]} {annotations.text(key)}" for key in _TOPOLOGIES if annotations.has(key))
    unknown += [f"exclusive placement over {pods.exclusive}"] if pods.exclusive else []
    if gangs and spec.block("schedulingGroup").text("podGroupName") in gangs:
        unknown.append("the topology of its gang")
    return Shape(
        requests=tuple(sorted((name, amount) for name, amount in requests.items() if amount > 0)),
        selector=tuple(sorted(spec.mapping("nodeSelector").items())),
        affinity=read_node_affinity(spec),
        tolerations=read_tolerations(spec),
        ports=pod_ports(spec),
        anti_affinity=read_anti_affinity(spec),
        labels=tuple(sorted(labels.items())),
        namespace=pods.namespace if with_labels else "",
        is_of_jobset=with_labels and pods.kind in KINDS and bool(KINDS[pods.kind].exclusive),
        unknown=tuple(unknown),
        is_unruly=is_unruly,
        gpus_at_once=gpus_at_once(spec) if requests.get("nvidia.com/gpu", 0) > 1 else 0,
    )


def _unknown(spec: Fields, schedulers: frozenset[str]) -> Iterator[str]:
    """Yield the settings of a pod that the model does not support."""
    if spec.has("nodeName"):
        yield f"nodeName {spec.text('nodeName')}, which bypasses the scheduler"
    if spec.text("schedulerName") not in schedulers:
        yield f"the scheduler {spec.text('schedulerName')}"
    yield from (key for key in ("resourceClaims", "schedulingGates") if spec.has(key))
    if spec.has("runtimeClassName"):
        yield f"runtimeClassName {spec.text('runtimeClassName')}, which may add overhead and choose nodes"
    if spec.block("os").text("name") not in ("", "linux"):
        yield f"the operating system {spec.block('os').text('name')}"
    if any(True for _ in spec.block("affinity").block("podAffinity").blocks(REQUIRED)):
        yield "required pod affinity"
    for spread in spec.blocks("topologySpreadConstraints"):
        if spread.text("whenUnsatisfiable") != "ScheduleAnyway":
            yield f"topology spread over {spread.text('topologyKey')}"


def in_order(demands: Iterable[Demand]) -> list[Demand]:
    """Return the demands by shape, then by members, independent of the order of declaration."""

    def key(demand: Demand) -> tuple[object, ...]:
        shape = demand.shape
        texts = str(shape.affinity), str(shape.tolerations)
        return shape.requests, shape.selector, *texts, sorted(shape.ports), demand.members

    return sorted(demands, key=key)
