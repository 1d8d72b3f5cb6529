"""A reference scheduler for small cases: every order of pods and every choice of node, by brute force."""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.pools.pool import HostPort, Pool, Pools, Taint
from symphony_charts.spec.sources import Toleration


@dataclass(frozen=True)
class PodKind:
    """`count` pods that request `asks`; `only` names the one pool they may use, `port` a host port they take."""

    asks: tuple[tuple[str, int], ...]
    count: int
    only: str = ""
    port: int = 0
    tolerates: bool = False


@dataclass(frozen=True)
class PoolKind:
    """`count` nodes that offer `has`; a tainted pool takes only pods that tolerate it."""

    name: str
    has: tuple[tuple[str, int], ...]
    count: int
    tainted: bool = False


def as_pools(kinds: list[PoolKind]) -> Pools:
    return Pools(
        pools=tuple(
            Pool(
                name=kind.name,
                allocatable=dict(kind.has),
                accuracy="stated",
                labels={"pool": kind.name},
                taints=(Taint(key="kept", value="yes"),) if kind.tainted else (),
                max_nodes=kind.count,
            )
            for kind in kinds
        )
    )


def as_demands(kinds: list[PodKind]) -> list[Demand]:
    return [
        Demand(
            Shape(
                requests=tuple(sorted((*kind.asks, ("pods", 1)))),
                selector=(("pool", kind.only),) if kind.only else (),
                tolerations=(Toleration(key="kept", operator="Exists"),) if kind.tolerates else (),
                ports=frozenset({HostPort("TCP", kind.port)}) if kind.port else frozenset(),
            ),
            [(f"d{number}", kind.count)],
        )
        for number, kind in enumerate(kinds)
    ]


_Node = tuple[str, bool, tuple[tuple[str, int], ...], tuple[int, ...]]
_State = tuple[tuple[_Node, ...], tuple[int, ...]]


class Reference:
    """All states that any scheduler can reach by placing pods one at a time, on any node that takes them."""

    def __init__(self, pools: list[PoolKind], pods: list[PodKind]) -> None:
        self.pods = pods
        nodes = tuple(
            sorted((pool.name, pool.tainted, tuple(sorted(pool.has)), ()) for pool in pools for _ in range(pool.count))
        )
        self.waits = [False] * len(pods)  # True if a pod of this kind may find no node
        self.can_place_all = False
        seen: set[_State] = set()
        todo: list[_State] = [(nodes, tuple(pod.count for pod in pods))]
        while todo:
            state = todo.pop()
            if state not in seen:
                seen.add(state)
                todo += self._after(state)

    def _after(self, state: _State) -> list[_State]:
        nodes, left = state
        self.can_place_all = self.can_place_all or not any(left)
        found = []
        for kind, number in enumerate(left):
            if not number:
                continue
            options = [place for place, node in enumerate(nodes) if self._takes(node, self.pods[kind])]
            if not options:
                self.waits[kind] = True
            for place in options:
                after = sorted((*nodes[:place], self._put(nodes[place], self.pods[kind]), *nodes[place + 1 :]))
                counts = (*left[:kind], number - 1, *left[kind + 1 :])
                found.append((tuple(after), counts))
        return found

    @staticmethod
    def _takes(node: _Node, pod: PodKind) -> bool:
        name, tainted, free, ports = node
        if (pod.only and pod.only != name) or (tainted and not pod.tolerates) or (pod.port and pod.port in ports):
            return False
        have = dict(free)
        return have["pods"] >= 1 and all(have.get(resource, 0) >= amount for resource, amount in pod.asks)

    @staticmethod
    def _put(node: _Node, pod: PodKind) -> _Node:
        name, tainted, free, ports = node
        asks = {**dict(pod.asks), "pods": 1}
        rest = tuple((resource, amount - asks.get(resource, 0)) for resource, amount in free)
        return name, tainted, rest, tuple(sorted((*ports, pod.port))) if pod.port else ports
