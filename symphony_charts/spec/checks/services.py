"""The checks of services judge who binds, who dials, and on which port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.names import SERVICE_NAME
from symphony_charts.formats.paths import nearest
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.probes import Probe
from symphony_charts.spec.variable_names import service_variable

__all__ = ["network_faults"]

# A Service is named `<release>-<service>`, in 63 characters at most.
_SERVICE_LENGTH = 40
_LAST_PORT = 65535
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def network_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of `binds`, `connects`, `exposes`, `ready` and of their ports."""
    listeners: dict[str, ProcessEntry] = {}
    bound: set[str] = set()
    for entry in entries:
        yield from _listener_faults(entry, listeners)
        bound.update(entry.process.binds)
    for entry in entries:
        yield from _connect_faults(entry, bound, listeners)
        if isinstance(entry.process.ready, Probe):
            yield from _probe_faults(entry.process.ready, entry)
        yield from _overlay_probe_faults(entry)
    yield from _pod_port_faults(entries)
    yield from _variable_faults(listeners)
    yield from _range_faults(experiment, entries)
    exposed = {name for entry in entries for name in entry.process.exposes}
    for name in experiment.expose:
        if name not in exposed:
            meant = nearest(name, exposed)
            next_step = f'did you mean "{meant}"?' if meant else f"add `exposes: {name}` to a process"
            yield Problem(what=f'no process exposes "{name}"', path=f"expose.{name}", next=next_step)


def _listener_faults(entry: ProcessEntry, listeners: dict[str, ProcessEntry]) -> Iterator[Problem]:
    process = entry.process
    for verb, services in (("binds", process.binds), ("exposes", process.exposes)):
        for index, (name, port) in enumerate(services.items()):
            path = f"{entry.path}.{verb}[{index}]"
            yield from _name_faults(name, path)
            if port is not None and not 1 <= port <= _LAST_PORT:
                what = f'the port {port} of "{name}" is no port'
                yield Problem(what=what, path=path, next=f"use 1 to {_LAST_PORT}, or leave it out to have one chosen")
            other = listeners.setdefault(name, entry)
            if other is not entry:
                what = f'"{name}" is {"bound" if verb == "binds" else "exposed"} by "{entry.ref}" and by "{other.ref}"'
                next_step = "let one process listen, and `replicas` make it many; or give each its own service"
                yield Problem(what=what, path=path, next=next_step)
            bound = process.binds.get(name)
            if verb == "exposes" and None not in (bound, port) and bound != port:
                what = f'"{name}" is bound on port {process.binds[name]} and exposed on port {port}'
                yield Problem(what=what, path=path, next="a service has one port: fix it in one place")


def _name_faults(name: str, path: str) -> Iterator[Problem]:
    if not SERVICE_NAME.fullmatch(name):
        next_step = "use lower-case letters, digits and dashes, a letter first, a letter or digit last"
        yield Problem(what=f'"{name}" cannot be the name of a service', path=path, next=next_step)
    elif len(name) > _SERVICE_LENGTH:
        what = f'the service "{name}" has {len(name)} characters; {_SERVICE_LENGTH} fit beside the release\'s name'
        yield Problem(what=what, path=path, next="shorten it")


def _connect_faults(entry: ProcessEntry, bound: set[str], listeners: Mapping[str, ProcessEntry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in enumerate(entry.process.connects):
        path = f"{entry.path}.connects[{index}]"
        if name in seen:
            yield Problem(what=f'"{name}" stands twice among the connects', path=path, next="drop one of them")
        elif name not in bound:
            meant = nearest(name, bound)
            hint = f' (did you mean "{meant}"?)' if meant else ""
            next_step = f"add `binds: {name}` to a process, or fix the name{hint}"
            if name in listeners:
                next_step = f'add `binds: {name}` to "{listeners[name].ref}", which only exposes it'
            what = f'process "{entry.ref}" connects to "{name}", which nobody binds'
            yield Problem(what=what, path=path, next=next_step)
        seen.add(name)


def _pod_port_faults(entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield ports that two services of one pod would listen on."""
    taken: dict[tuple[str, int], tuple[str, ProcessEntry]] = {}
    for entry in entries:
        for verb, services in (("binds", entry.process.binds), ("exposes", entry.process.exposes)):
            for index, (name, port) in enumerate(services.items()):
                if port is None:
                    continue
                other, where = taken.setdefault((entry.ref.pod, port), (name, entry))
                if other != name:
                    what = f'port {port} of pod "{entry.ref.pod}" is given to "{name}" and to "{other}"'
                    path = f"{entry.path}.{verb}[{index}]"
                    yield Problem(what=what, path=path, next=f'"{where.ref}" has it: take another, or leave it open')


def _variable_faults(listeners: Mapping[str, ProcessEntry]) -> Iterator[Problem]:
    """Yield services ``x-bind`` whose HOST variable would be that of BIND_HOST of ``x``."""
    for name, entry in listeners.items():
        if name.endswith("-bind") and name.removesuffix("-bind") in listeners:
            other = name.removesuffix("-bind")
            what = f'the services "{other}" and "{name}" would share a variable, {service_variable(name, "HOST")}'
            yield Problem(what=what, path=entry.path, next="rename one of them")


def _range_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    low, high = experiment.port_range
    if not 1 <= low <= high <= _LAST_PORT:
        next_step = f"write the lowest and the highest port, 1 to {_LAST_PORT}"
        yield Problem(what=f"{low} to {high} is no range of ports", path="port_range", next=next_step)
        return
    ports: dict[str, int | None] = {}
    for entry in entries:
        for services in (entry.process.exposes, entry.process.binds):
            for name, port in services.items():
                ports[name] = port if port is not None else ports.get(name)
    fixed = {port for port in ports.values() if port is not None}
    needed = sum(port is None for port in ports.values())
    free = high - low + 1 - sum(low <= port <= high for port in fixed)
    if needed > free:
        what = f"{needed} services need a port, and {free} are free in {low} to {high}"
        yield Problem(what=what, path="port_range", next="widen `port_range`")


def _probe_faults(probe: Probe, entry: ProcessEntry) -> Iterator[Problem]:
    path = f"{entry.path}.ready"
    kinds = [kind for kind in ("tcp", "http", "exec") if getattr(probe, kind) is not None]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none of tcp, http and exec"
        yield Problem(what=f"a probe asks in one way, not {given}", path=path, next="keep one of tcp, http, exec")
    for kind in ("tcp", "http"):
        asked = getattr(probe, kind)
        if asked is not None:
            yield from _probe_port_faults(asked.port, entry, f"{path}.{kind}.port")
    if probe.exec is not None and not probe.exec.command:
        yield Problem(what="the probe's command is empty", path=f"{path}.exec.command", next="say what to run")
    if probe.http is not None and not probe.http.path.startswith("/"):
        what = f'"{probe.http.path}" is no path of a URL'
        yield Problem(what=what, path=f"{path}.http.path", next="begin it with /")
    smallest = {"initial_delay": 0, "period": 1, "timeout": 1, "failures": 1, "successes": 1}
    for field, least in smallest.items():
        if getattr(probe, field) < least:
            yield Problem(
                what=f"{getattr(probe, field)} is too little", path=f"{path}.{field}", next=f"at least {least}"
            )


def _overlay_probe_faults(entry: ProcessEntry) -> Iterator[Problem]:
    """Yield ports of probes in an overlay that are neither numbers nor names of ports that the process has."""
    overlay = entry.process.container_overlay
    known = [str(port.get("name")) for port in maps(overlay, "ports")]
    for probe in _PROBES:
        for handler in ("tcpSocket", "httpGet"):
            port = sub(overlay, probe, handler).get("port")
            if isinstance(port, str) and not port.isdecimal() and port not in known:
                yield from _probe_port_faults(port, entry, f"{entry.path}.container_overlay.{probe}.{handler}.port")


def _probe_port_faults(port: int | str, entry: ProcessEntry, path: str) -> Iterator[Problem]:
    if isinstance(port, int):
        if not 1 <= port <= _LAST_PORT:
            yield Problem(what=f"{port} is no port", path=path, next=f"use 1 to {_LAST_PORT}")
        return
    own = [*entry.process.binds, *entry.process.exposes]
    if port not in own:
        meant = nearest(port, own)
        next_step = f'did you mean "{meant}"?' if meant else "use a number, or a service that this process listens on"
        what = f'process "{entry.ref}" listens on no service "{port}"'
        yield Problem(what=what, path=path, next=next_step)
