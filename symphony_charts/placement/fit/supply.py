"""Classes of nodes, the demands that may use each, and the domains that live pods close."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import compress
from operator import floordiv

from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.fit.podspec import labels_match, ports_conflict, untolerated_taint
from symphony_charts.placement.pools.pool import HOSTNAME, ZONE, AntiAffinity, HostPort, Node, Pool, PresentPod, Taint
from symphony_charts.spec.sources import Toleration

# Source: kube-scheduler, plugin InterPodAffinity: terms of existing pods count as much as those of the incoming one.

Domains = dict[str, dict[str, str]]
"""Node label -> its value -> why a pod may not use the nodes that have this value."""

_OF_JOBSET = "jobset.sigs.k8s.io/"
# Labels that only charts set, by their domains; the oldest labels of Kubernetes' controllers have no domain.
_OF_CHARTS = frozenset({"symph.dev", "app.kubernetes.io", "helm.sh"})
_OF_CONTROLLERS = frozenset({"job-name", "controller-uid", "pod-template-hash", "controller-revision-hash"})


def closed_domains(pools: Sequence[Pool], demands: Sequence[Demand]) -> list[Domains]:
    """Return, for each demand, the domains that anti-affinity of a live pod may close to it, and the reason.

    A term counts within namespaces, and a chart can be installed in any: so a domain *may* be closed, unless both
    namespaces are known and differ.
    """
    nodes = [node for pool in pools for node in pool.nodes if node.pods]
    repelling = {
        (term, value, pod.namespace): pod
        for node in nodes
        for pod in node.pods
        for term in pod.anti_affinity
        if (value := _value(node, term.key)) is not None
    }
    return [_closed_to(demand.shape, nodes, repelling) for demand in demands]


def _closed_to(
    shape: Shape, nodes: Sequence[Node], repelling: Mapping[tuple[AntiAffinity, str, str], PresentPod]
) -> Domains:
    domains: Domains = {}
    for (term, value, _), pod in repelling.items():
        if _may_share_namespace(term, pod.namespace, shape.namespace) and _selects(term, shape) is not False:
            domains.setdefault(term.key, {}).setdefault(value, _why("anti-affinity of", pod, term, value))
    for term in shape.anti_affinity:
        for node in nodes:
            found = (
                pod
                for pod in node.pods
                if _may_share_namespace(term, pod.namespace, shape.namespace)
                and all(each.holds(pod.labels, "") for each in term.selector)
            )
            here, near = _value(node, term.key), next(found, None)
            if here is not None and near is not None:
                domains.setdefault(term.key, {}).setdefault(here, _why("its anti-affinity to", near, term, here))
    return domains


def _value(node: Node | NodeClass, key: str) -> str | None:
    return node.labels.get(key, node.name if key == HOSTNAME else None)


def _may_share_namespace(term: AntiAffinity, one: str, other: str) -> bool:
    return term.is_scoped or not (one and other) or one == other


def _selects(term: AntiAffinity, shape: Shape) -> bool | None:
    """Return True if `term` selects pods of `shape` in its namespace; None if labels of a controller decide."""
    labels = dict(shape.labels)
    is_open = False
    for requirement in term.selector:
        if requirement.key not in labels and _may_be_added(requirement.key, shape):
            is_open = True
        elif not requirement.holds(labels, ""):
            return False
    return None if is_open else True


def _may_be_added(key: str, shape: Shape) -> bool:
    """Return True if a controller may add this label to its pods, so that it is missing in their template."""
    domain, slash, _ = key.rpartition("/")
    if key.startswith(_OF_JOBSET):
        return shape.is_of_jobset
    return domain not in _OF_CHARTS if slash else key in _OF_CONTROLLERS


def _why(what: str, pod: PresentPod, term: AntiAffinity, value: str) -> str:
    where = f"node {value}" if term.key == HOSTNAME else f"nodes with {term.key}={value}"
    return f"{what} pod {pod.namespace}/{pod.name} on the cluster may keep it off {where}"


Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeClass:
    """`count` nodes that are equal for all pods of the experiment; `free` is in the order of `Cluster.dimensions`."""

    pool: int
    free: Vector
    count: int
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    ports: frozenset[HostPort]
    name: str
    is_live: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """Supply and demand in numbers.

    `needs[i]` is the request vector of demand i. `fits[i]` maps each usable node class to the number of its pods that
    fit on one empty node (never 0). `maybe[i]` are further classes that it may or may not use, each with the reason and
    a way to find out. `allowed[i]` holds the classes whose labels and taints admit it, whether it fits or not.
    `anti_affine[i]` are the demands that never share a node with i, including i itself if two of its pods may not.
    `unknown[i]` names rules that apply to it and that the model lacks. `splits_zones`: a pool's new
    nodes were distributed evenly over its zones, though the autoscaler may do otherwise, so a lack of nodes excludes
    nothing.
    """

    pools: tuple[Pool, ...]
    dimensions: tuple[str, ...]
    classes: tuple[NodeClass, ...]
    demands: tuple[Demand, ...]
    needs: tuple[Vector, ...]
    allowed: tuple[tuple[int, ...], ...]
    fits: tuple[dict[int, int], ...]
    maybe: tuple[dict[int, tuple[str, str]], ...]
    anti_affine: tuple[frozenset[int], ...]
    unknown: tuple[tuple[str, ...], ...]
    splits_zones: bool = False

    def may_use(self, demand: int, nodes: Collection[int]) -> bool:
        """Return True if pods of `demand` may take room on one of these node classes."""
        return any(not found.keys().isdisjoint(nodes) for found in (self.fits[demand], self.maybe[demand]))

    def pool_of(self, node: int) -> Pool:
        """Return the pool of a node class."""
        return self.pools[self.classes[node].pool]

    def pools_of(self, nodes: Iterable[int]) -> list[int]:
        """Return the numbers of the pools of these node classes."""
        return sorted({self.classes[node].pool for node in nodes})

    def nodes_in(self, classes: Iterable[int]) -> int:
        """Return the number of nodes in these classes."""
        return sum(self.classes[node].count for node in classes)

    def restricted(self, is_kept: Callable[[Demand, int], bool]) -> Cluster:
        """Return the cluster with only those fits of a demand on a node class that are kept."""
        pairs = zip(self.demands, self.fits, strict=True)
        fits = tuple({node: room for node, room in rooms.items() if is_kept(each, node)} for each, rooms in pairs)
        return replace(self, fits=fits)


def make_cluster(pools: Sequence[Pool], demands: Sequence[Demand]) -> Cluster:
    """Return node classes, request vectors, and the demands that fit each class."""
    dimensions = tuple(sorted({name for demand in demands for name, _ in demand.shape.requests} | {"pods"}))
    # The labels that some demand uses; an empty key stands for the node's name.
    keys = tuple(sorted({key for demand in demands for key in demand.shape.node_keys}))
    closed = closed_domains(pools, demands)
    classes = tuple(_classes(pools, dimensions, keys, closed))
    needs = tuple(tuple(demand.shape.amount(name) for name in dimensions) for demand in demands)
    groups: dict[object, tuple[tuple[str, ...], list[int]]] = {}
    for index, node in enumerate(classes):
        open_keys = tuple(key for key in keys if key not in node.labels and pools[node.pool].leaves_open(key))
        values = tuple(node.labels.get(key) for key in keys)
        alike = (values, node.taints, node.ports, node.name if "" in keys else "", open_keys)
        groups.setdefault(alike, (open_keys, []))[1].append(index)
    # Most demands have the same rules.
    allowed_by = cache(partial(_allowed, classes, groups.values()))
    filtered = [allowed_by(replace(with_admission(each.shape), requests=(), labels=())) for each in demands]
    allowed = tuple(found for found, _ in filtered)
    anti_affine, unknown = _anti_affine(demands)
    distinct = {node.free for node in classes}
    possible = tuple(
        _fits(need, allow, classes, distinct, alone=index in anti_affine[index])
        for index, (need, allow) in enumerate(zip(needs, allowed, strict=True))
    )
    maybe = tuple(
        _maybe(rooms, classes, domains, labels) if domains or labels else {}
        for rooms, domains, (_, labels) in zip(possible, closed, filtered, strict=True)
    )
    fits = tuple(
        {node: room for node, room in rooms.items() if node not in uncertain} if uncertain else rooms
        for rooms, uncertain in zip(possible, maybe, strict=True)
    )
    return Cluster(
        pools=tuple(pools),
        dimensions=dimensions,
        classes=classes,
        demands=tuple(demands),
        needs=needs,
        allowed=allowed,
        fits=fits,
        maybe=maybe,
        anti_affine=anti_affine,
        unknown=tuple(
            (*demand.shape.unknown, *rules, *_admitted(demand.shape, rooms, classes))
            for demand, rules, rooms in zip(demands, unknown, fits, strict=True)
        ),
        splits_zones=ZONE in keys and any(len(pool.zones) > 1 for pool in pools),
    )


def _closed(node: NodeClass, domains: Domains) -> Iterator[str]:
    """Yield why a live pod may keep a demand with these `domains` off nodes of the class.

    A new node has a unique name, and may have any value of a label that its pool does not fix.
    """
    for key, values in domains.items():
        value = _value(node, key)
        if value in values:
            yield values[value]
        elif value is None and not node.is_live:
            yield next(iter(values.values()))


def _classes(
    pools: Sequence[Pool], dimensions: tuple[str, ...], keys: tuple[str, ...], closed: Sequence[Domains]
) -> Iterable[NodeClass]:
    for index, pool in enumerate(pools):
        alike: dict[object, list[NodeClass]] = {}
        for node in pool.nodes:
            free = tuple(max(0, node.free.get(name, 0)) for name in dimensions)
            node_class = NodeClass(index, free, 1, dict(node.labels), node.taints, node.ports, node.name, True)
            values = tuple(node.labels.get(key) for key in keys)
            closed_to = tuple(number for number, domains in enumerate(closed) if any(_closed(node_class, domains)))
            key = (free, values, node.taints, node.ports, node.name if "" in keys else "", closed_to)
            alike.setdefault(key, []).append(node_class)
        yield from (replace(nodes[0], count=len(nodes)) for nodes in alike.values())
        yield from _new_nodes(index, pool, dimensions, keys)


def _new_nodes(index: int, pool: Pool, dimensions: tuple[str, ...], keys: tuple[str, ...]) -> Iterable[NodeClass]:
    more, usable = pool.max_nodes - len(pool.nodes), pool.usable
    free = tuple(usable.get(name, 0) for name in dimensions)
    zones = pool.zones if ZONE in keys and len(pool.zones) > 1 else ("",)
    for zone in zones:
        # Every node has a name, unknown for new nodes; a zone may have a node even if not every zone gets one.
        labels = dict(pool.labels) | {HOSTNAME: ""} | ({ZONE: zone} if zone else {})
        if more > 0:
            yield NodeClass(index, free, more // len(zones), labels, pool.taints, frozenset(), "", False)


def with_admission(shape: Shape) -> Shape:
    """Return the shape with the tolerations that the admission plugin ExtendedResourceToleration adds, as on GKE."""
    devices = [name for name, _ in shape.requests if "/" in name]
    more = (Toleration(key=name, operator="Exists", effect="NoSchedule") for name in devices)
    return replace(shape, tolerations=(*shape.tolerations, *more)) if devices else shape


def _admitted(shape: Shape, rooms: Iterable[int], classes: Sequence[NodeClass]) -> Iterator[str]:
    if any("/" in name for name, _ in shape.requests):
        taints = (untolerated_taint(shape.tolerations, classes[node].taints) for node in rooms)
        if taint := next(filter(None, taints), None):
            yield f"a toleration of {taint.key}, which not every cluster adds"


def _allowed(
    classes: tuple[NodeClass, ...], groups: Iterable[tuple[tuple[str, ...], list[int]]], shape: Shape
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Return the node classes that labels, taints and host ports may allow; equal classes are evaluated once.

    The second value gives, for classes that depend on a label that their nodes may or may not have, this label.
    """
    selector = dict(shape.selector)
    allowed: list[int] = []
    uncertain: dict[int, str] = {}
    for open_keys, members in groups:
        node = classes[members[0]]
        if not labels_match(selector, shape.affinity, node.labels, node.name, assumed=open_keys):
            continue
        if untolerated_taint(shape.tolerations, node.taints) or ports_conflict(shape.ports, node.ports):
            continue
        allowed += members
        if open_keys and not labels_match(selector, shape.affinity, node.labels, node.name, ruled_out=open_keys):
            required = (requirement.key for term in shape.affinity or () for requirement in term)
            asked = next(key for key in (*selector, *required) if key in open_keys)
            uncertain |= dict.fromkeys(members, asked)
    return tuple(sorted(allowed)), uncertain


def _maybe(
    rooms: Iterable[int], classes: Sequence[NodeClass], domains: Domains, labels: Mapping[int, str]
) -> dict[int, tuple[str, str]]:
    """Return the classes that live pods, or labels that may be missing, may close, each with the reason and advice."""
    found: dict[int, tuple[str, str]] = {}
    for node in rooms:
        if why := next(_closed(classes[node], domains), ""):
            found[node] = why, ""
        elif label := labels.get(node):
            found[node] = (
                f"it depends on the node label {label}, which no input file shows",
                f"give `kubectl get nodes -o json`, or set {label} under `labels` in a pools.yaml",
            )
    return found


def _fits(
    need: Vector, allowed: Iterable[int], classes: Sequence[NodeClass], distinct: Iterable[Vector], *, alone: bool
) -> dict[int, int]:
    """Return the number of pods that fit on each class; `distinct` are the free resources that some class has."""
    amounts = [amount for amount in need if amount]
    rooms = {free: min(map(floordiv, compress(free, need), amounts)) for free in distinct}
    found = ((number, rooms[classes[number].free]) for number in allowed)
    return {number: 1 if alone else room for number, room in found if room}


def _anti_affine(demands: Sequence[Demand]) -> tuple[tuple[frozenset[int], ...], list[dict[str, None]]]:
    """Return for each demand the demands that may not share a node with it, and names of rules about more than nodes.

    Nodes are divided by host ports, and by anti-affinity over the host name whose selection is certain.
    """
    anti_affine: list[set[int]] = [set() for _ in demands]
    unknown: list[dict[str, None]] = [{} for _ in demands]
    for index, one in enumerate(demands):
        for other in range(len(demands)) if one.shape.ports else ():
            if ports_conflict(one.shape.ports, demands[other].shape.ports):
                anti_affine[index].add(other)
                anti_affine[other].add(index)
        for term in one.shape.anti_affinity:
            for other, two in enumerate(demands):
                selects = _may_share_namespace(term, one.shape.namespace, two.shape.namespace) and _selects(
                    term, two.shape
                )
                if selects and term.key == HOSTNAME and not term.is_scoped:
                    anti_affine[index].add(other)
                    anti_affine[other].add(index)
                elif selects is not False:
                    unknown[index][_rule(term, is_certain=bool(selects))] = None
                    if other != index:
                        unknown[other][f"anti-affinity of {one.name}"] = None
    return tuple(frozenset(group) for group in anti_affine), unknown


def _rule(term: AntiAffinity, *, is_certain: bool) -> str:
    if term.is_scoped:
        return "anti-affinity over other namespaces"
    return f"anti-affinity over {term.key}" if is_certain else "anti-affinity to labels that a controller sets"
