"""Who may dial whom: the twin of ``networkpolicies.yaml``."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render.dial_pod import HOOK, dial_name, dialled
from symphony_charts.chart.render.model import LiveService, Model, connects_of
from symphony_charts.chart.render.values import Values, is_true
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.group import Group

__all__ = ["network_policies"]

_TEST = {"app.kubernetes.io/component": "test"}
# DNS.
_NAMES = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def network_policies(model: Model, run: str) -> Iterator[dict[str, object]]:
    """A policy per group that lets in exactly the declared connects, and out where that is asked for, too.

    What is told its peers by rank dials them on ports that nobody declares: such groups let each other in. The pod of
    `helm test` has a policy of its own.
    """
    settings = sub(model.values, "networkPolicy")
    if not is_true(settings.get("enabled")):
        return
    for name, group in model.groups.items():
        spec: Values = {"podSelector": {"matchLabels": _selector(model, group, run)}, "policyTypes": ["Ingress"]}
        rules = [_rule(model, service, run) for service in model.services.values() if service.group == name]
        peers = [_pods(model, one, run) for one in model.groups.values() if _is_peer(one) and _is_peer(group)]
        if peers:
            rules.append({"from": peers})
        if rules:
            spec["ingress"] = rules
        if is_true(settings.get("egress")):
            spec["policyTypes"] = ["Ingress", "Egress"]
            spec["egress"] = [
                _NAMES,
                *(
                    _outward_rule(model, service, run)
                    for name, service in model.services.items()
                    if name in connects_of(group)
                ),
                *([{"to": peers}] if peers else []),
                *maps(settings, "egressRules"),
            ]
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": group.base, "labels": {**model.labels, "symph.dev/group": name}},
            "spec": spec,
        }
    if dialled(model):
        yield _policy_of_tests(model, is_closed=is_true(settings.get("egress")))


def _policy_of_tests(model: Model, *, is_closed: bool) -> dict[str, object]:
    """Nobody dials the pod of `helm test`, and it dials this release alone."""
    spec: Values = {"podSelector": {"matchLabels": {**model.identity, **_TEST}}, "policyTypes": ["Ingress"]}
    if is_closed:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [_NAMES, {"to": [{"podSelector": {"matchLabels": model.identity}}]}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": dial_name(model),
            "labels": {**model.labels, **_TEST},
            # It is there before the pod, and goes with it.
            "annotations": {**HOOK, "helm.sh/hook-weight": "-1"},
        },
        "spec": spec,
    }


def _rule(model: Model, service: LiveService, run: str) -> Values:
    rule: Values = {"ports": [{"port": service.port, "protocol": "TCP"}]}
    if not service.expose:
        dialling = [group for group in model.groups.values() if service.name in connects_of(group)]
        selectors = [{**model.identity, **_TEST}, *(_selector(model, group, run) for group in dialling)]
        rule["from"] = [{"podSelector": {"matchLabels": selector}} for selector in selectors]
    return rule


def _outward_rule(model: Model, service: LiveService, run: str) -> Values:
    listeners = _pods(model, model.groups[service.group], run)
    return {"to": [listeners], "ports": [{"port": service.port, "protocol": "TCP"}]}


def _is_peer(group: Group) -> bool:
    return group.is_node or bool(group.selector_patterns)


def _pods(model: Model, group: Group, run: str) -> Values:
    return {"podSelector": {"matchLabels": _selector(model, group, run)}}


def _selector(model: Model, group: Group, run: str) -> dict[str, str]:
    return group.selector(run) or {**model.identity, "symph.dev/group": group.name}
