"""What an experiment asks of the cluster: pods of equal shape counted together, whatever process they belong to.

A pod's request follows Kubernetes: containers and sidecars add up, steps before them count by their peak. What a
container does not ask for is `DEFAULT_REQUESTS`, which the chart writes into its values, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from symphony_charts.placement.filters import NodeAffinity, Requirement
from symphony_charts.placement.inputs.fields import Faults, Fields
from symphony_charts.placement.inputs.podspec import effective_requests, pod_ports, read_node_affinity, read_tolerations
from symphony_charts.placement.pool import Amounts
from symphony_charts.placement.quantity import amount_of
from symphony_charts.spec.model import Experiment, Process, Step, Toleration
from symphony_charts.spec.node_labels import selector_of
from symphony_charts.spec.pods import Pod, pods_of
from symphony_charts.spec.reserve import resources_of
from symphony_charts.spec.sources import GitVolume

__all__ = ["DEFAULT_REQUESTS", "Demand", "Shape", "demands_of", "in_order", "pod_affinity"]

DEFAULT_REQUESTS: Mapping[str, str] = {"cpu": "100m", "memory": "128Mi"}
HOSTNAME = "kubernetes.io/hostname"
_NO_FAULTS = Faults()
# What fills a volume from a Git repository asks for no more than any container.
_CLONING = Step()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All that the scheduler looks at in a pod.

    `repels` are the label selectors of required anti-affinity on one node: pods that match never share it. `labels`
    are filled in only where somebody repels. `unproven` names constraints whose outcome depends on pods outside.
    """

    requests: tuple[tuple[str, int], ...]
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    ports: frozenset[tuple[str, int]] = frozenset()
    repels: tuple[tuple[Requirement, ...], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    unproven: tuple[str, ...] = ()

    def amount(self, resource: str) -> int:
        """How much of `resource` one pod requests."""
        return next((amount for name, amount in self.requests if name == resource), 0)


@dataclass(slots=True)
class Demand:
    """Pods of one shape: `members` are the experiment's pods (name, replicas) behind them, `count` all of them."""

    shape: Shape
    members: list[tuple[str, int]] = field(default_factory=list)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = sum(count for _, count in self.members)

    def add(self, name: str, count: int) -> None:
        """Count `count` pods of `name` in."""
        self.members.append((name, count))
        self.count += count

    @property
    def name(self) -> str:
        """The first member's name, and how many more there are."""
        first = self.members[0][0]
        return first if len(self.members) == 1 else f"{first} and {len(self.members) - 1} more"


def demands_of(experiment: Experiment) -> list[Demand]:
    """The demands of an experiment, sorted by shape, so that the order of processes changes nothing."""
    pods = pods_of(experiment)
    with_labels = any("podAntiAffinity" in str(pod.settings.pod_overlay) for pod in pods.values())
    general = [step for step in experiment.prepare.values() if not step.groups]
    special = [step for step in experiment.prepare.values() if step.groups]
    cloned = {name for name, volume in experiment.volumes.items() if isinstance(volume, GitVolume)}
    seen: dict[object, Demand] = {}
    by_shape: dict[Shape, Demand] = {}
    for name, pod in pods.items():
        if pod.settings.replicas < 1:
            continue
        steps = [*general, *(step for step in special if name in step.groups)] if special else general
        if cloned and any(mount.volume in cloned for process in pod.processes.values() for mount in process.mounts):
            steps = [*steps, _CLONING]
        key = _raw_key(pod, tuple(map(id, steps)), with_labels)
        demand = seen.get(key)
        if demand is None:
            shape = _shape(pod, steps, experiment, with_labels)
            demand = seen[key] = by_shape.setdefault(shape, Demand(shape))
        demand.add(name, pod.settings.replicas)
    for demand in by_shape.values():
        demand.members.sort()
    return in_order(by_shape.values())


def in_order(demands: Iterable[Demand]) -> list[Demand]:
    """The demands by shape, then by members: the same for every order of declaration."""
    return sorted(demands, key=lambda demand: (_sort_key(demand.shape), demand.members))


def _sort_key(shape: Shape) -> tuple[object, ...]:
    return (shape.requests, shape.selector, str(shape.affinity), str(shape.tolerations), sorted(shape.ports))


def _raw_key(pod: Pod, steps: tuple[int, ...], with_labels: bool) -> object:
    """A cheap key: pods with equal keys have equal shapes. Most experiments have few distinct ones."""
    settings = pod.settings
    parts: list[object] = [
        steps,
        tuple(selector_of(settings).items()),
        tuple(settings.tolerations),
        json.dumps(settings.pod_overlay, default=str) if settings.pod_overlay else "",
        (pod.name, tuple(settings.labels.items())) if with_labels else "",
    ]
    for process in pod.processes.values():
        parts += (
            tuple(process.requests.items()),
            tuple(process.limits.items()),
            process.gpus,
            process.reserve,
            process.lifecycle,
            json.dumps(process.container_overlay, default=str) if process.container_overlay else "",
            # Ports count where an overlay takes those of the node.
            (*process.binds.values(), *process.exposes.values()) if settings.pod_overlay else (),
        )
    return tuple(parts)


def _shape(pod: Pod, steps: list[Step], experiment: Experiment, with_labels: bool) -> Shape:
    settings = pod.settings
    over = Fields.of(settings.pod_overlay.get("spec"), "spec", _NO_FAULTS)
    repels, unproven = pod_affinity(over)
    affinity = read_node_affinity(over)
    selector = selector_of(settings) | over.mapping("nodeSelector")
    labels = (
        experiment.labels | settings.labels | {"symph.dev/group": pod.name, "symph.dev/experiment": experiment.name}
    )
    return Shape(
        requests=tuple(sorted(_requests(pod, steps, over).items())),
        selector=tuple(sorted(selector.items())),
        affinity=affinity,
        tolerations=read_tolerations(over) if over.has("tolerations") else tuple(settings.tolerations),
        ports=_ports(pod, over),
        repels=repels,
        labels=tuple(sorted(labels.items())) if with_labels else (),
        unproven=unproven,
    )


def _requests(pod: Pod, steps: list[Step], over: Fields) -> Amounts:
    """The effective request of the pod; services of a pod that ends are sidecars, steps come before them."""
    containers, inits = [], [(_container(step.requests, step.limits), False) for step in steps]
    for process in pod.processes.values():
        amounts = _process(process)
        if pod.is_finite and process.lifecycle == "service":
            inits.append((amounts, True))
        else:
            containers.append(amounts)
    overhead = {name: amount_of(name, over.block("overhead").text(name)) for name in over.block("overhead").data}
    total = effective_requests(containers, inits, overhead)
    if over.has("resources"):
        resources = over.block("resources")
        stated = resources.mapping("limits") | resources.mapping("requests")
        total |= {name: amount_of(name, text) + overhead.get(name, 0) for name, text in stated.items()}
    return {name: amount for name, amount in total.items() if amount > 0}


def _process(process: Process) -> Amounts:
    over = Fields.of(process.container_overlay.get("resources"), "resources", _NO_FAULTS)
    requests, limits = resources_of(process)
    return _container(requests | over.mapping("requests"), limits | over.mapping("limits"), process.gpus)


def _container(requests: Mapping[str, str], limits: Mapping[str, str], gpus: int = 0) -> Amounts:
    """Requests of one container as the chart emits it: limits stand in for requests, defaults for neither."""
    text = {**DEFAULT_REQUESTS, **limits, **requests}
    amounts = {name: amount_of(name, value) for name, value in text.items()}
    if gpus:
        amounts["nvidia.com/gpu"] = gpus
    return amounts


def _ports(pod: Pod, over: Fields) -> frozenset[tuple[str, int]]:
    """Host ports: declared in overlays, and with hostNetwork all that the pod's processes listen on."""
    found: set[tuple[str, int]] = set()
    for process in pod.processes.values():
        if process.container_overlay:
            spec = {"containers": [process.container_overlay], "hostNetwork": over.data.get("hostNetwork")}
            found |= pod_ports(Fields.of(spec, "", _NO_FAULTS))
        if over.flag("hostNetwork"):
            found |= {("TCP", port) for port in (*process.binds.values(), *process.exposes.values()) if port}
    if over.has("containers"):
        found |= pod_ports(over)
    return frozenset(found)


def pod_affinity(over: Fields) -> tuple[tuple[tuple[Requirement, ...], ...], tuple[str, ...]]:
    """Selectors that this pod keeps off its node, and the constraints that cannot be proven from here."""
    repels, unproven = [], []
    affinity = over.block("affinity")
    for term in affinity.block("podAntiAffinity").blocks("requiredDuringSchedulingIgnoredDuringExecution"):
        if term.text("topologyKey") == HOSTNAME:
            repels.append(_label_selector(term.block("labelSelector")))
        else:
            unproven.append(f"anti-affinity over {term.text('topologyKey')}")
    if any(True for _ in affinity.block("podAffinity").blocks("requiredDuringSchedulingIgnoredDuringExecution")):
        unproven.append("required pod affinity")
    for spread in over.blocks("topologySpreadConstraints"):
        if spread.text("whenUnsatisfiable") != "ScheduleAnyway":
            unproven.append(f"topology spread over {spread.text('topologyKey')}")
    return tuple(repels), tuple(unproven)


def _label_selector(selector: Fields) -> tuple[Requirement, ...]:
    exact = [Requirement(key, "In", (value,)) for key, value in sorted(selector.mapping("matchLabels").items())]
    rest = [
        Requirement(item.text("key"), item.text("operator"), tuple(item.texts("values")))
        for item in selector.blocks("matchExpressions")
    ]
    return (*exact, *rest)
