"""Start order, and checks of readiness and health.

`ready` and ports come from the experiment; liveness and startup probes are in a container's overlay, as in the chart.
Source of fields and defaults: Kubernetes API reference, Container, Probe.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import count
from typing import Literal, TypeAlias, TypeVar

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import maps
from symphony_charts.local.plan.records import Check, Wait
from symphony_charts.local.plan.replicas import Replica, steps_of
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.overlay_fields import merge_probe, probe_data
from symphony_charts.spec.pods import ProcessRef, Service, find_process, processes_of
from symphony_charts.spec.sources import Probe

_Role: TypeAlias = Literal["ready", "alive", "started"]
_ROLES: tuple[tuple[_Role, str], ...] = (("started", "startupProbe"), ("alive", "livenessProbe"))
_HANDLERS = ("tcpSocket", "httpGet", "exec", "grpc")
_TIMES = {
    "initialDelaySeconds": ("initial_delay_s", 0),
    "periodSeconds": ("period_s", 10),
    "timeoutSeconds": ("timeout_s", 1),
    "failureThreshold": ("failures", 3),
    "successThreshold": ("successes", 1),
}


def checks_of(process: Process, address: str, listening: Sequence[tuple[str, int]]) -> Iterator[Check]:
    """Yield the checks of `process`: startup and liveness probes of its overlay, and its readiness probe.

    Without a readiness probe it is ready if each port of `listening` accepts connections.
    """
    ports, overlay = _named_ports(process, listening), process.container_overlay
    for role, key in _ROLES:
        if overlay.get(key):
            path = f"container_overlay.{key}"
            yield _check(role, _map(overlay[key], path), address, ports, path)
    over = overlay.get("readinessProbe")
    if process.ready == "none" and not over:
        return
    if process.ready is None and not over:
        for _, port in listening:
            yield Check(kind="tcp", host=address, port=port, automatic=True)
        return
    path, probe = "container_overlay.readinessProbe", dict[str, object]()
    if isinstance(process.ready, Probe):
        path, probe = "ready", probe_data(process.ready)
    elif listening and process.ready is None:
        # As in the chart: the overlay modifies a probe that connects to the first port.
        probe = {"tcpSocket": {"port": listening[0][1]}}
    yield _check("ready", merge_probe(probe, _map(over, path)), address, ports, path)


def _named_ports(process: Process, listening: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return the ports that a probe may name: service ports, then ports of the overlay, as in the chart."""
    ports = maps(process.container_overlay, "ports")
    own = {str(port.get("name")): port.get("containerPort") for port in ports}
    return {name: number for name, number in own.items() if isinstance(number, int)} | dict(listening)


def _check(role: _Role, probe: Mapping[str, object], address: str, ports: Mapping[str, int], path: str) -> Check:
    handlers = [key for key in _HANDLERS if probe.get(key)]
    if len(handlers) != 1 or handlers[0] == "grpc":
        asked = " and ".join(handlers) or "nothing"
        raise _fault(f"a probe of a local run has exactly one of tcpSocket, httpGet and exec, not {asked}", path)
    times = {ours: _number(probe.get(key, least), f"{path}.{key}") for key, (ours, least) in _TIMES.items()}
    if (grace := probe.get("terminationGracePeriodSeconds")) is not None:
        times["grace_s"] = _number(grace, f"{path}.terminationGracePeriodSeconds")
    [kind], path = handlers, f"{path}.{handlers[0]}"
    handler = _map(probe[kind], path)
    if kind == "exec":
        command = handler.get("command")
        if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
            raise _fault("the probe's command must be a list of words", f"{path}.command")
        return Check(kind="exec", role=role, command=tuple(command), **times)  # type: ignore[arg-type]  # names and types of _TIMES
    port, host = handler.get("port"), str(handler.get("host") or address)
    if not host.replace(".", "").isdigit():
        raise _fault(f'a probe of a local run needs an IP address, and "{host}" is a name', f"{path}.host")
    return Check(
        kind="http" if kind == "httpGet" else "tcp",
        role=role,
        host=host,
        port=ports[port] if isinstance(port, str) and not port.isdecimal() else _number(port, f"{path}.port"),
        path=str(handler.get("path") or "/"),
        is_tls=handler.get("scheme") == "HTTPS",
        headers=tuple(_headers(handler.get("httpHeaders"), f"{path}.httpHeaders")),
        **times,  # type: ignore[arg-type]  # names and types of _TIMES
    )


def _headers(value: object, path: str) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, list) else []:
        header = _map(item, path)
        yield str(header.get("name")), str(header.get("value"))


def _number(value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not str(value).isdecimal():
        raise _fault(f"{value!r} is not a number", path)
    return int(value)


def _map(value: object, path: str) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _fault("it must be a map", path)
    return value


def _fault(what: str, path: str) -> SpecError:
    return SpecError([Problem(what=what, path=path)])


Node = TypeVar("Node", bound=Hashable)


def waits_of(
    experiment: Experiment, services: Sequence[Service], replicas: Sequence[Replica]
) -> dict[ProcessRef, list[Wait]]:
    """Return the waits of each process: for those it is `after` (services: until ready), and for its listeners."""
    processes, slots, numbers = dict(processes_of(experiment)), dict[ProcessRef, list[int]](), count()
    for pod in [replica.pod for replica in replicas]:
        for name in [*steps_of(experiment, pod), *pod.processes]:
            slots.setdefault(ProcessRef(pod.name, name), []).append(next(numbers))
    is_ordered = experiment.local.start == "in-order"
    listeners = {service.name: service.listener for service in services if is_ordered}
    connects: dict[ProcessRef, list[ProcessRef]] = {}
    strict: dict[ProcessRef, list[ProcessRef]] = {}
    for ref, process in processes.items():
        targets = dict.fromkeys(listeners[service] for service in process.connects if service in listeners)
        connects[ref] = [target for target in targets if target != ref]
        strict[ref] = [find_process(experiment, other) for other in process.after]
    waits: dict[ProcessRef, list[Wait]] = {ref: [] for ref in processes}
    for ref, others in strict.items():
        for other in others:
            until: Literal["ready", "done"] = "ready" if processes[other].lifecycle == "service" else "done"
            waits[ref] += [Wait(slot=slot, until=until) for slot in slots.get(other, [])]
    for ref, others in without_cycles(connects, strict).items():
        for other in others:
            service = next(name for name in processes[ref].connects if listeners.get(name) == other)
            waits[ref] += [Wait(slot=slot, until="ready", service=service) for slot in slots.get(other, [])]
    return waits


def without_cycles(
    edges: Mapping[Node, Sequence[Node]], strict: Mapping[Node, Sequence[Node]]
) -> dict[Node, list[Node]]:
    """Return `edges` without those that lie on a cycle of `edges` and `strict` together.

    Processes that connect to each other in a ring cannot wait for each other: they start at once and retry.
    """
    both = {node: [*edges.get(node, ()), *strict.get(node, ())] for node in {*edges, *strict}}
    return {
        node: [other for other in targets if node not in _reachable(other, both)] for node, targets in edges.items()
    }


def _reachable(start: Node, edges: Mapping[Node, Sequence[Node]]) -> set[Node]:
    found, pending = {start}, [start]
    while pending:
        new = set(edges.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found
