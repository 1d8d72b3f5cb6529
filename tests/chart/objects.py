"""Queries on the objects of a chart: the pods of each group, and the network access to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from symphony_charts.integrations.dijob.pods import group_of
from symphony_charts.kinds.base import is_conductor

Item = dict[str, Any]

_GROUP = "symph.dev/group"


def pod_templates(objects: list[Item]) -> dict[str, Item]:
    found = {}
    for item in objects:
        for template in _templates(item):
            found[template["metadata"]["labels"][_GROUP]] = template
    return found


def _templates(item: Item) -> Iterator[Item]:
    if item["kind"] in ("DIJob", "AggregatorConfig"):
        yield from _pods_of_operator(item)
    elif "tasks" in item.get("spec", {}):
        for task in item["spec"]["tasks"]:
            yield task["template"]
    elif item["kind"] in ("Job", "StatefulSet"):
        if not is_conductor(item):
            yield item["spec"]["template"]
    elif item["kind"] == "JobSet":
        for member in item["spec"]["replicatedJobs"]:
            yield member["template"]["spec"]["template"]
    elif item["kind"] == "AppWrapper":
        for job in wrapped_jobs(item):
            yield job["spec"]["template"]


def _pods_of_operator(item: Item) -> Iterator[Item]:
    """Return the pod templates of a DIJob with the labels that DI-orchestrator gives the pods."""
    name, spec = item["metadata"]["name"], item["spec"]
    for task in [*spec.get("tasks", []), *([spec] if "template" in spec else [])]:
        own = {"diengine/task-name": task["name"]} if "name" in task else {}
        yield _labelled(task["template"], {"diengine/job": name, **own})
    for role in ("coordinator", "collector", "learner", "aggregator"):
        if role in spec:
            yield _labelled(spec[role]["template"], {"dijob-name": name, "replica-type": role})


def _labelled(template: Item, labels: Mapping[str, str]) -> Item:
    assert template.keys() == {"spec"}
    return {"metadata": {"labels": {**labels, _GROUP: group_of(template["spec"], "")}}, **template}


def wrapped_jobs(item: Item) -> list[Item]:
    """Return the Jobs of an AppWrapper, of v1beta2 or of v1beta1."""
    spec = item["spec"]
    items = [part["template"] for part in spec.get("components", [])]
    return items + [part["generictemplate"] for part in spec.get("resources", {}).get("GenericItems", [])]


def _all_containers(spec: Item) -> list[Item]:
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def reachable(objects: list[Item]) -> set[tuple[str, str, int]]:
    """Return which group can dial which port of which group, by the NetworkPolicies; tests are the group ``(test)``."""
    policies = [item["spec"] for item in objects if item["kind"] == "NetworkPolicy"]
    pods = {group: template["metadata"]["labels"] for group, template in pod_templates(objects).items()}
    test = next((item["metadata"]["labels"] for item in objects if item["kind"] == "Pod"), None)
    callers = {**pods, **({"(test)": test} if test else {}), "(outside)": {}}
    ports = {
        (group, port["containerPort"])
        for group, template in pod_templates(objects).items()
        for container in _all_containers(template["spec"])
        for port in container.get("ports", [])
    }
    return {
        (caller, group, port)
        for caller, labels in callers.items()
        for group, port in ports
        if _lets_in(policies, labels, pods[group], port)
    }


def _lets_in(policies: list[Item], caller: Mapping[str, str], labels: Mapping[str, str], port: int) -> bool:
    closing = [spec for spec in policies if _selects(spec["podSelector"], labels)]
    rules = [rule for spec in closing for rule in spec.get("ingress", [])]
    return not closing or any(
        ("ports" not in rule or any(each["port"] == port for each in rule["ports"]))
        and ("from" not in rule or any(_selects(peer["podSelector"], caller) for peer in rule["from"]))
        for rule in rules
    )


def _selects(selector: Item, labels: Mapping[str, str]) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", [])
    )
