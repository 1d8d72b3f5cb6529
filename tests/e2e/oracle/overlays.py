"""Random overlays of pods in Kubernetes' own fields, and the parts of them that a scheduler acts on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.e2e.oracle.live import HEAVY
from tests.e2e.oracle.nodes import GPU, KEYS, ZONES, NodePool

_Data = dict[str, Any]
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def quantity(rng: random.Random, millis: int) -> str:
    """Return this many millicores, in one of the spellings that Kubernetes accepts."""
    return rng.choice((f"{millis}m", f"{millis}m", f"{millis / 1000:.3f}", f"{millis * 1000}u", f"{millis}e-3"))


def add_constraints(
    rng: random.Random, settings: _Data, processes: Mapping[str, _Data], like: NodePool, groups: Sequence[str]
) -> frozenset[str]:
    """Add tolerations, selectors and overlays to one pod of the spec; return the names of the overlays."""
    overlay: _Data = {"metadata": {}, "spec": {}}
    tolerations = [_toleration(rng, taint) for taint in like.taints if rng.random() < 0.95]
    if rng.random() < 0.15:
        tolerations = [{"operator": "Exists"}]
    if rng.random() < 0.8:
        settings["tolerations"] = tolerations
    else:
        overlay["spec"]["tolerations"] = tolerations
    if rng.random() < 0.25:
        settings["node_selector"] = {"pool": like.name} if "pool" in like.labels else {}
    elif like.labels.keys() & KEYS.keys() and rng.random() < 0.3:
        key = rng.choice(sorted(like.labels.keys() & KEYS.keys()))
        settings["node_selector"] = {key: like.labels[key]}
    chosen = set()
    for name, (odds, lay) in _OVERLAYS.items():
        if rng.random() < odds:
            lay(_Pod(rng, overlay, processes, like, groups))
            chosen.add(name)
    if rng.random() < 0.06:
        name = rng.choice(sorted(processes))
        processes[name]["container_overlay"] = _container_overlay(rng, processes[name])
    if overlay["metadata"] or overlay["spec"]:
        settings["pod_overlay"] = {key: part for key, part in overlay.items() if part}
    return frozenset(chosen)


def _toleration(rng: random.Random, taint: Mapping[str, str]) -> _Data:
    exact = {**taint, "operator": "Equal"} if "value" in taint else {**taint, "operator": "Exists"}
    return rng.choice((exact, {"key": taint["key"], "operator": "Exists"}))


class _Pod:
    def __init__(
        self, rng: random.Random, overlay: _Data, processes: Mapping[str, _Data], like: NodePool, groups: Sequence[str]
    ) -> None:
        self.rng, self.overlay, self.processes, self.like, self.groups = rng, overlay, processes, like, groups
        self.spec: _Data = overlay["spec"]

    def small(self, parts: int = 8) -> str:
        return f"{max(10, self.like.free['cpu'] // self.rng.choice((1, 2, parts, parts, 4 * parts)))}m"

    def affinity(self, kind: str, strength: str = _REQUIRED) -> list[_Data]:
        terms: list[_Data] = self.spec.setdefault("affinity", {}).setdefault(kind, {}).setdefault(strength, [])
        return terms


def _container(pod: _Pod) -> None:
    """Add a container, or more settings for the spec's own container."""
    if pod.rng.random() < 0.5:
        proxy = {"name": "proxy", "image": "b:1", "resources": {"requests": {"cpu": pod.small()}}}
        pod.spec.setdefault("containers", []).append(proxy)
        return
    name = pod.rng.choice(sorted(pod.processes))
    has_limit = pod.processes[name].get("limits") or pod.processes[name].get("reserve")
    if not has_limit and pod.processes[name].get("lifecycle") != "service":
        asked = {"name": name, "resources": {"requests": {"cpu": pod.small()}}}
        pod.spec.setdefault("containers", []).append(asked)


def _gpu_container(pod: _Pod) -> None:
    if GPU in pod.like.free:
        trainer = {"name": "trainer", "image": "b:1", "resources": {"limits": {GPU: 1, "cpu": "10m"}}}
        pod.spec.setdefault("containers", []).append(trainer)


def _init_container(pod: _Pod) -> None:
    init: _Data = {"name": "init", "image": "b:1", "resources": {"requests": {"cpu": pod.small(2)}}}
    if pod.rng.random() < 0.5:
        init |= {"restartPolicy": "Always", "resources": {"requests": {"cpu": pod.small()}}}
    elif pod.rng.random() < 0.2:
        init["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
    pod.spec.setdefault("initContainers", []).append(init)


def _pod_resources(pod: _Pod) -> None:
    """Set resources of the pod as a whole: more than its containers', as the API server requires."""
    whole = pod.like.free["cpu"] * pod.rng.choice((1, 1, 2)) // pod.rng.choice((1, 1, 2))
    if not any(process.get("limits") or process.get("reserve") for process in pod.processes.values()):
        pod.spec["resources"] = {"requests": {"cpu": f"{whole}m"}}


def _node_selector(pod: _Pod) -> None:
    labels = [{key: pod.rng.choice(values)} for key, values in KEYS.items()]
    labels += [{"kubernetes.io/os": "linux"}, {"kubernetes.io/arch": "amd64"}, {_ZONE: pod.rng.choice(ZONES)}]
    pod.spec.setdefault("nodeSelector", {}).update(pod.rng.choice(labels))


def _node_affinity(pod: _Pod) -> None:
    terms = [{"matchExpressions": [_expression(pod.rng)]} for _ in range(pod.rng.choice((1, 1, 2)))]
    if pod.rng.random() < 0.1:
        terms[0] = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["nowhere"]}]}
    if pod.rng.random() < 0.2:
        weighted = [{"weight": 5, "preference": term} for term in terms]
        pod.affinity("nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution").extend(weighted)
        return
    pod.spec.setdefault("affinity", {})["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": terms}}


def _expression(rng: random.Random) -> _Data:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "size", "operator": operator, "values": [rng.choice(("1", "4", "8"))]}
    known = {**KEYS, _HOST: ("nowhere",), _ZONE: ZONES, "kubernetes.io/arch": ("amd64", "arm64")}
    key = rng.choice(sorted(known))
    values = {"values": [rng.choice(known[key])]} if operator in ("In", "NotIn") else {}
    return {"key": key, "operator": operator, **values}


def _selector(pod: _Pod) -> _Data | None:
    """Return a selector by labels of the chart, an overlay or the controllers; empty means all pods, None no pod."""
    other = pod.rng.choice(pod.groups)
    exact = [
        {"symph.dev/group": other},
        {"app.kubernetes.io/name": "e"},
        {"app.kubernetes.io/instance": "e"},
        {"symph.dev/experiment": "other"},
        {"tier": "hot"},
    ]
    loose = [
        {"key": "symph.dev/group", "operator": "NotIn", "values": [other]},
        {"key": "tier", "operator": "DoesNotExist"},
        {"key": "batch.kubernetes.io/job-name", "operator": "Exists"},
        {"key": "batch.kubernetes.io/job-completion-index", "operator": "In", "values": ["0"]},
    ]
    if pod.rng.random() < 0.1:
        return pod.rng.choice(({}, None))
    if pod.rng.random() < 0.6:
        return {"matchLabels": pod.rng.choice(exact)}
    return {"matchExpressions": [pod.rng.choice(loose)]}


def _term(pod: _Pod) -> _Data:
    term: _Data = {"topologyKey": pod.rng.choice((_HOST, _HOST, _HOST, _ZONE))}
    selector = _selector(pod)
    if selector is not None:
        term["labelSelector"] = selector
    if pod.rng.random() < 0.1:
        term["namespaceSelector"] = {}
    elif pod.rng.random() < 0.05:
        term["namespaces"] = ["elsewhere"]
    if selector is not None and pod.rng.random() < 0.05:
        term["matchLabelKeys"] = ["symph.dev/run"]
    return term


def _anti_affinity(pod: _Pod) -> None:
    pod.affinity("podAntiAffinity").append(_term(pod))


def _pod_affinity(pod: _Pod) -> None:
    pod.affinity("podAffinity").append(_term(pod))


def _label(pod: _Pod) -> None:
    pod.overlay["metadata"]["labels"] = {"tier": "hot"}


def _spread(pod: _Pod) -> None:
    spread: _Data = {
        "maxSkew": 1,
        "topologyKey": pod.rng.choice((_HOST, _ZONE)),
        "whenUnsatisfiable": pod.rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(pod) or {},
    }
    pod.spec["topologySpreadConstraints"] = [spread]


def _host_network(pod: _Pod) -> None:
    """Use the node's network: every port of a container is a port of the node."""
    pod.spec["hostNetwork"] = True
    name = sorted(pod.processes)[0]
    if pod.rng.random() < 0.7:
        pod.processes[name]["binds"] = {f"service-{pod.rng.randint(0, 10**6)}": pod.rng.choice((7100, 7100, 7101))}


def _host_port(pod: _Pod) -> None:
    number = pod.rng.choice((8080, 8080, 8081))
    port: _Data = {"containerPort": number, "hostPort": number}
    if pod.rng.random() < 0.3:
        port["hostIP"] = pod.rng.choice(("127.0.0.1", "127.0.0.2", "0.0.0.0"))  # noqa: S104 - what a manifest says
    if pod.rng.random() < 0.2:
        port["protocol"] = "UDP"
    pod.spec.setdefault("containers", []).append({"name": "door", "image": "b:1", "ports": [port]})


def _runtime_class(pod: _Pod) -> None:
    pod.spec["runtimeClassName"] = HEAVY


def _gate(pod: _Pod) -> None:
    pod.spec["schedulingGates"] = [{"name": "example.com/wait"}]


def _claim(pod: _Pod) -> None:
    pod.spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]


def _node_name(pod: _Pod) -> None:
    pod.spec["nodeName"] = "nowhere"


def _foreign_scheduler(pod: _Pod) -> None:
    pod.spec["schedulerName"] = "other"


_Lay = Callable[[_Pod], None]
_OVERLAYS: Mapping[str, tuple[float, _Lay]] = {
    "container": (0.08, _container),
    "gpu container": (0.04, _gpu_container),
    "init container": (0.08, _init_container),
    "pod resources": (0.05, _pod_resources),
    "node selector": (0.05, _node_selector),
    "node affinity": (0.08, _node_affinity),
    "anti-affinity": (0.1, _anti_affinity),
    "pod affinity": (0.03, _pod_affinity),
    "label": (0.15, _label),
    "spread": (0.04, _spread),
    "host network": (0.04, _host_network),
    "host port": (0.06, _host_port),
    "runtime class": (0.012, _runtime_class),
    "gate": (0.008, _gate),
    "claim": (0.008, _claim),
    "node name": (0.005, _node_name),
    "scheduler": (0.005, _foreign_scheduler),
}
UNMODELLED = frozenset({"runtime class", "gate", "claim", "node name", "scheduler"})
"""Settings that affect placement and that no model of the scheduler knows."""


def _container_overlay(rng: random.Random, process: Mapping[str, Any]) -> _Data:
    if process.get("limits") or process.get("reserve"):
        return {"imagePullPolicy": "Always"}
    return {"resources": {"requests": {"cpu": quantity(rng, rng.choice((100, 900, 2500)))}}}
