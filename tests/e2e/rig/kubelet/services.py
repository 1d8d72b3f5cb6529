"""The network's view of Services: the rules that forward their addresses, and the answers of the cluster's DNS.

A ClusterIP is no address of any pod: packets for it are rewritten on their way through the router. Sources:
kubernetes/kubernetes pkg/proxy (which endpoints count), kubernetes/dns docs/specification.md (names).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.e2e.rig.api import Object

DNS_ADDRESS = "10.96.0.10"
API_ADDRESS = "10.96.0.1"
"""The address of the Service `kubernetes`; the router itself answers, on port 443, for the API server."""
GATEWAY = "169.254.1.1"
"""The router, as every pod sees it; also the source address for a pod that dials itself through a Service."""
_ZONE = "cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Connections to `address`:`port` go to one of `targets` (address, port); without targets they are refused."""

    address: str
    protocol: str
    port: int
    targets: tuple[tuple[str, int], ...]


def forwards(services: Iterable[Object], slices: Iterable[Object]) -> list[Forward]:
    """Return the rules, in a stable order: each port of each Service that has an address of its own."""
    by_service = _group(slices)
    found = []
    for service in sorted(services, key=lambda s: (s["metadata"]["namespace"], s["metadata"]["name"])):
        for address in _addresses(service):
            for port in service["spec"].get("ports", []):
                targets = _targets(by_service.get(_key(service), []), port)
                protocol = port.get("protocol", "TCP").lower()
                found.append(Forward(address=address, protocol=protocol, port=port["port"], targets=targets))
    return found


def ruleset(rules: Iterable[Forward], service_range: str) -> str:
    """Return the nftables script that replaces all forwarding by `rules`, in one transaction."""
    rules = list(rules)
    forwarded = [_dnat(rule) for rule in rules if rule.targets]
    itself = sorted({address for rule in rules for address, _ in rule.targets})
    hairpins = [f"ip saddr {address} ip daddr {address} snat to {GATEWAY}" for address in itself]
    # A packet that still has a service's address after the rewriting leads nowhere; reject it at once.
    stray = f"ip daddr {service_range} ip daddr != {{ {DNS_ADDRESS}, {API_ADDRESS} }}"
    refusals = [f"{stray} meta l4proto tcp reject with tcp reset", f"{stray} reject with icmp type port-unreachable"]
    lines = ["table ip symph {}", "delete table ip symph", "table ip symph {"]
    lines += _chain("dstnat", "type nat hook prerouting priority dstnat; policy accept;", forwarded)
    lines += _chain("srcnat", "type nat hook postrouting priority srcnat; policy accept;", hairpins)
    lines += _chain("refuse", "type filter hook prerouting priority filter; policy accept;", refusals)
    return "\n".join([*lines, "}", ""])


def names(services: Iterable[Object], slices: Iterable[Object]) -> dict[str, tuple[str, ...]]:
    """Return every name of the cluster's DNS, without a final dot, and its addresses.

    A headless Service answers with its ready endpoints, and each that has a host name answers by that name too.
    """
    by_service = _group(slices)
    found: dict[str, tuple[str, ...]] = {}
    for service in services:
        namespace, name = _key(service)
        full = f"{name}.{namespace}.svc.{_ZONE}"
        if service["spec"].get("clusterIP") != "None":
            found[full] = tuple(_addresses(service)[:1])
            continue
        endpoints = [e for piece in by_service.get((namespace, name), []) for e in _usable(piece)]
        found[full] = tuple(sorted({address for e in endpoints for address in e["addresses"]}))
        for endpoint in endpoints:
            if endpoint.get("hostname"):
                found[f"{endpoint['hostname']}.{full}"] = tuple(endpoint["addresses"])
    return {name: addresses for name, addresses in found.items() if addresses}


def _key(service: Object) -> tuple[str, str]:
    return service["metadata"]["namespace"], service["metadata"]["name"]


def _group(slices: Iterable[Object]) -> Mapping[tuple[str, str], list[Object]]:
    found: dict[tuple[str, str], list[Object]] = {}
    for piece in slices:
        name = piece["metadata"].get("labels", {}).get("kubernetes.io/service-name")
        if name and piece.get("addressType") == "IPv4":
            found.setdefault((piece["metadata"]["namespace"], name), []).append(piece)
    return found


def _addresses(service: Object) -> list[str]:
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    own = service["spec"].get("clusterIP") or "None"
    return [] if own == "None" else [own, *(entry["ip"] for entry in ingress if entry.get("ip"))]


def _usable(piece: Object) -> list[Object]:
    """Return the ready endpoints; if there are none, those that end but still serve, as kube-proxy does."""
    endpoints = piece.get("endpoints") or []
    ready = [e for e in endpoints if e.get("conditions", {}).get("ready") is not False]
    serving = [e for e in endpoints if e.get("conditions", {}).get("serving") is not False]
    return ready or serving


def _targets(pieces: list[Object], port: Object) -> tuple[tuple[str, int], ...]:
    found = set()
    for piece in pieces:
        for offered in piece.get("ports") or []:
            if (offered.get("name") or "") == (port.get("name") or "") and offered.get("port"):
                found |= {(address, offered["port"]) for e in _usable(piece) for address in e["addresses"]}
    return tuple(sorted(found))


def _dnat(rule: Forward) -> str:
    match = f"ip daddr {rule.address} {rule.protocol} dport {rule.port}"
    if len(rule.targets) == 1:
        address, port = rule.targets[0]
        return f"{match} dnat to {address}:{port}"
    choices = ", ".join(f"{i} : {address} . {port}" for i, (address, port) in enumerate(rule.targets))
    return f"{match} dnat ip to numgen random mod {len(rule.targets)} map {{ {choices} }}"


def _chain(name: str, hook: str, rules: list[str]) -> list[str]:
    return [f"  chain {name} {{", f"    {hook}", *(f"    {rule}" for rule in rules), "  }"]
