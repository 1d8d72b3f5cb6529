"""DIJobs of the operator v0.x have roles: coordinator, collector, learner, and the aggregator of its own object.

There the coordinator's program asks the operator's server for collectors and learners; how many stands inside the
Python configuration. Here the replicas are fixed, and read from there where they can be.
"""

from __future__ import annotations

import re

from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.dijob.import_pods import AddedPod, add_pod
from symphony_charts.integrations.dijob.settings import CONTAINER

__all__ = ["PORTS", "ROLES", "read_aggregator", "read_roles"]

ROLES = ("coordinator", "collector", "learner")
# Ports that the operator takes when the container names none. Source: opendilab/DI-orchestrator v0.2.2.
PORTS = {"collector": 22270, "learner": 22271, "aggregator": 22272, "coordinator": 22273}
_PORT_NAME = "di-port"


def read_roles(spec: Fields, draft: Draft) -> None:
    """Add the three roles. Only the coordinator decides when the job is done; the others serve it until then."""
    for role in ROLES:
        if role not in spec:
            spec.skip(role)
            continue
        part = spec.map(role)
        pod = add_pod(part.map("template"), role, part.path, spec.maps("volumes"), draft)
        part.note_unread("of a role is not carried over")
        main = _complete(pod, role, draft)
        if role == "coordinator":
            draft.done_when = [main]
    if "coordinator" not in spec:
        draft.log.fault(spec.at("coordinator"), "the DIJob has no coordinator", "add it, or use a newer apiVersion")
    spec.skip("volumes")
    _read_replicas(spec, draft)
    if (priority_class := spec.text("priorityClassName")) is not None and priority_class:
        coordinator = draft.processes.get("coordinator", draft.groups.get("coordinator"))
        if isinstance(coordinator, dict):
            coordinator["priority_class"] = priority_class
        what = "`priorityClassName` is the coordinator's alone, as the operator has it"
        draft.log.changed(spec.at("priorityClassName"), what, "use `workload.priority_class` for all pods")


def read_aggregator(config: Fields, draft: Draft) -> None:
    """Add the pod of an AggregatorConfig as process `aggregator`."""
    spec = config.map("spec")
    part = spec.map("aggregator")
    pod = add_pod(part.map("template"), "aggregator", part.path, [], draft)
    part.note_unread("of a role is not carried over")
    spec.note_unread("of an AggregatorConfig is not carried over")
    config.skip("apiVersion", "kind", "metadata", "status")
    _complete(pod, "aggregator", draft)
    what = "the operator starts aggregators for learners of several GPUs only; here it always runs"
    draft.log.changed(config.path, what, "set its replicas to 0 if no learner uses more than one GPU")


def _main_container(pod: AddedPod, role: str) -> str:
    """The container that the operator looks at: the one of the name it knows, else the role's, else the first."""
    return next((name for name in (CONTAINER, role) if name in pod.processes), next(iter(pod.processes)))


def _complete(pod: AddedPod, role: str, draft: Draft) -> str:
    main = _main_container(pod, role)
    named = dict(pod.parts.ports.get(main, {}))
    # The operator looks for this port in this container alone, and else takes the usual number.
    number = named.pop(_PORT_NAME, PORTS[role]) if main == CONTAINER else PORTS[role]
    for container, process in pod.processes.items():
        binds: dict[str, object] = {role: number} if container == main else {}
        others = named if container == main else pod.parts.ports.get(container, {})
        # The usual number under another name is the role's all the same.
        binds |= {f"{role}-{name}": port for name, port in others.items() if port != number}
        if binds:
            process["binds"] = binds
        if container == main or binds:
            # The operator asks nobody whether they are ready.
            process.setdefault("ready", "none")
        env = process.setdefault("env", {})
        if isinstance(env, dict):
            # The operator's own come last, over those of the container.
            env[f"{role.upper()}_PORT"] = str(number)
            env["KUBERNETES_POD_NAME"] = {"field": "metadata.name"}
            env["KUBERNETES_POD_NAMESPACE"] = {"field": "metadata.namespace"}
    _live(pod, role, draft)
    if pod.name in draft.processes:
        return pod.name
    refs = [ref for ref in draft.order if ref.startswith(f"{pod.name}/")]
    return refs[list(pod.processes).index(main)]


def _live(pod: AddedPod, role: str, draft: Draft) -> None:
    """Set how long a role runs, and whether it is restarted."""
    restart = pod.parts.restart or ("never" if role == "coordinator" else "always")
    if restart == "on-failure":
        pod.settings["restart"] = "on-failure"
    elif restart == "always" and role == "coordinator":
        pod.settings["restart"] = "on-failure"
        what = "`restartPolicy: Always` of a coordinator never lets the job end; it is started again when it fails"
        draft.log.changed(pod.parts.path, what)
    elif restart == "always":
        for process in pod.processes.values():
            process["lifecycle"] = "service"


def _read_replicas(spec: Fields, draft: Draft) -> None:
    """The number of collectors and learners that the configuration asks the operator's server for."""
    texts = [text for text in draft.configs.values() if "init_replicas_request" in text or "_target_num" in text]
    for role in ("collector", "learner"):
        process = draft.processes.get(role, draft.groups.get(role))
        if not isinstance(process, dict):
            continue
        count = next((number for text in texts if (number := _requested(text, role)) is not None), None)
        if count is None:
            what = f"how many {role}s there are stands in the Python configuration; one is assumed"
            draft.log.changed(spec.at(role), what, f"set `processes.{role}.replicas`")
        elif count != 1:
            process["replicas"] = count
            what = f"{count} {role}s, as the configuration requests; keep both numbers the same"
            draft.log.changed(spec.at(role), what)


def _requested(text: str, role: str) -> int | None:
    patterns = (
        rf"\b{role}s['\"]?\s*[:=]\s*(?:\{{|dict\()[^}})]{{0,400}}?['\"]?\breplicas['\"]?\s*[:=]\s*(\d{{1,4}})\b",
        rf"\b{role}_target_num['\"]?\s*[:=]\s*(\d{{1,4}})\b",
    )
    for pattern in patterns:
        if (match := re.search(pattern, text)) is not None:
            return int(match[1])
    return None
