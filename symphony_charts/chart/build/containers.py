"""The containers of a pod as trees: programs, ports, probes, mounts, and the overlays of a spec.

Overlays are merged while packaging, with Kubernetes' strategic merge. Parts that have a place in the values go there
instead, so that they can be changed: affinity, tolerations, topology spread constraints, and of containers image,
command, arguments, resources and variables.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.build.data import FILES_MOUNT, has_only_files, mounts_of, variables_name
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.tree import Block, Call, Entries, File, Helper, Include, Merged, Tree, Value, When
from symphony_charts.formats.data import maps, merge_overlay, sub
from symphony_charts.kinds.base import WAITING
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.overlay_fields import merge_probe, probe_data
from symphony_charts.spec.pods import Service
from symphony_charts.spec.sources import DeviceVolume, EnvSource, SecuritySettings

POD_VALUES = ("affinity", "tolerations", "topologySpreadConstraints")

_IN_CONTAINER_VALUES = ("args", "command", "env", "image", "resources")


def laid_on(base: Mapping[str, Tree], over: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, Tree]:
    """Return `base` with `over` merged in. A Block that `over` changes becomes constant: its entry in `defaults`."""
    constants = {key: defaults.get(key, {}) for key, item in base.items() if key in over and isinstance(item, Block)}
    return merge_overlay({**base, **constants}, over)


def rest_of_container(over: Mapping[str, object]) -> dict[str, Any]:
    """Return the parts of a container overlay that have no place in the values."""
    return {key: copy.deepcopy(item) for key, item in over.items() if key not in _IN_CONTAINER_VALUES}


def env_of(over: Mapping[str, object]) -> dict[str, object]:
    """Return the variables of a container overlay as values."""
    return {
        str(item.get("name")): item["valueFrom"] if "valueFrom" in item else str(item.get("value", ""))
        for item in maps(over, "env")
    }


def for_container(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Remove the settings of container `name` from the overlay `spec` of a pod, and return them."""
    for key in ("containers", "initContainers"):
        items = maps(spec, key)
        mine = next((item for item in items if item.get("name") == name), None)
        if mine is not None:
            spec[key] = [item for item in items if item is not mine]
            return {field: item for field, item in mine.items() if field != "name"}
    return {}


HOLD_SCRIPT = "scripts/hold.sh"

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
# Containers start after the sidecars before them have started; a sidecar that takes longer than this is restarted.
_STARTUP = {"periodSeconds": 2, "failureThreshold": 1800}


def container_helpers(draft: Draft) -> list[Helper]:
    """Return the helpers with the common parts of all containers."""
    program = _program(".root", ".container", ".hold" if may_be_held(draft) else "", [])
    tree = Merged(image_of(".container", ".root"), program, Include("containerDefaults", ".root"))
    defaults = Helper(name="containerDefaults", tree=_defaults(draft, "."), is_constant=True)
    return [defaults, Helper(name="container", tree=tree)]


def may_be_held(draft: Draft) -> bool:
    """Return True if a process ends by itself, so that tests may keep it running."""
    return any(not group.is_sidecar(name) for group in draft.finite for name in group.pod.processes)


def containers(draft: Draft, group: Group, over: dict[str, Any]) -> tuple[list[Tree], list[Tree]]:
    """Return init containers (steps, then services of a finite pod) and containers.

    `over` is the overlay of the pod's spec; settings of containers are removed from it.
    """
    init = [_container(draft, group, name, step, for_container(over, name)) for name, step in group.steps.items()]
    main: list[Tree] = []
    for name, process in group.pod.processes.items():
        place = init if group.is_sidecar(name) else main
        place.append(_container(draft, group, name, process, for_container(over, name)))
    main += [waiting_container()] if group.is_ended else []
    return [*init, *over.pop("initContainers", [])], [*main, *over.pop("containers", [])]


def waiting_container() -> Tree:
    """Return the container that keeps a pod of sidecars running until it is deleted."""
    return Merged(
        {"name": WAITING},
        image_of(".Values.conductor"),
        {
            "command": ["/bin/sh", "-c", "trap 'exit 143' TERM; sleep 2147483647 & wait"],
            "resources": {key: {"cpu": "1m", "memory": "8Mi"} for key in ("requests", "limits")},
            "securityContext": CONFINED,
        },
    )


NOBODY = 65534
CONFINED: Mapping[str, object] = {
    "runAsNonRoot": True,
    "runAsUser": NOBODY,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of our own programs in the user's pods, and of the conductor."""


def env_value(value: str | EnvSource) -> Any:
    """Return a variable of the spec in the form of the values: text, or a Kubernetes source."""
    if isinstance(value, str):
        return value
    if value.field is not None:
        return {"fieldRef": {"fieldPath": value.field}}
    if value.resource is not None:
        return {"resourceFieldRef": {"resource": value.resource}}
    kind, name = ("secretKeyRef", value.secret) if value.secret is not None else ("configMapKeyRef", value.config)
    return {kind: {"name": name, "key": value.key} | ({"optional": True} if value.optional else {})}


def image_of(path: str, root: str = ".") -> Tree:
    """Return the image and pull policy of a container with its values at `path`."""
    return Include("image", {"root": root, "image": f"{path}.image"})


def _defaults(draft: Draft, root: str) -> dict[str, Tree]:
    """Return the fields that are the same in all containers."""
    return {
        "envFrom": [{"configMapRef": {"name": Call("environment", root)}}],
        "securityContext": Block(f"{root.removesuffix('.')}.Values.securityContext"),
        **({"volumeMounts": [FILES_MOUNT]} if has_only_files(draft) else {}),
    }


def _program(root: str, path: str, hold: str, before: list[str]) -> dict[str, Tree]:
    """Return the fields with the values of the container at `path`.

    If the value at `hold` is true, a script keeps the ports of the process open after its end. `before` are words
    before its command.
    """
    command: Tree = Block(f"{path}.command", via="strings", is_sure=bool(hold or before))
    if command.is_sure:
        script: list[Tree] = ["/bin/sh", "-c", File(HOLD_SCRIPT, root)]
        parts: list[Tree] = [When(hold, script)] if hold else []
        parts += [list(before)] if before else []
        command = When(f"{path}.command", Merged(*parts, command))
    return {
        "command": command,
        "args": Block(f"{path}.args", via="strings"),
        "resources": Block(f"{path}.resources"),
    }


def _container(draft: Draft, group: Group, name: str, program: Process | Step, pod_over: Mapping[str, Any]) -> Tree:
    """Return a container. If an overlay changes a part that all containers share, write that part out here."""
    path = f"$group.{'initContainers' if isinstance(program, Step) else 'containers'}.{name}"
    is_process = isinstance(program, Process)
    is_held = is_process and group.is_finite and not group.is_sidecar(name)
    title = draft.kind.container_name(group, name) if is_process and draft.kind.runs(group) else name
    over = merge_overlay(rest_of_container(program.container_overlay), rest_of_container(pod_over))
    own = _own(draft, group, name, program, over)
    over.pop("ports", None)
    has_device = any(isinstance(draft.experiment.volumes[mount.volume], DeviceVolume) for mount in program.mounts)
    if has_device:
        over = {**over, "securityContext": sub(over, "securityContext")}
    is_privileged = sub(over, "securityContext").get("privileged", has_device) is True
    security = container_security(draft.experiment.security, device=is_privileged)
    rank = draft.peers.rank_words(draft, group, program)
    shared = _program(".", path, ".Values.tests.hold" if is_held else "", rank) | _defaults(draft, ".")
    if not rank and not over.keys() & shared.keys():
        arguments: dict[str, str | Entries] = {"root": ".", "container": path}
        if is_held:
            arguments["hold"] = ".Values.tests.hold"
        return Merged({"name": title}, Include("container", arguments), laid_on(own, over, {}))
    fields = laid_on({**shared, **own}, over, {"securityContext": security})
    return Merged({"name": title}, image_of(path), fields)


def _own(draft: Draft, group: Group, name: str, program: Process | Step, over: dict[str, Any]) -> dict[str, Tree]:
    """Return the fields of one container alone. Removes ports and probes from its overlay, after merging them."""
    own: dict[str, Tree] = {}
    if isinstance(program, Process) and group.is_sidecar(name):
        own["restartPolicy"] = "Always"
    if program.cwd:
        own["workingDir"] = program.cwd
    listening = draft.services_of(group, name) if isinstance(program, Process) else []
    ports = _ports(draft, group, listening, over.get("ports", []))
    if ports:
        own["ports"] = ports
    arguments: dict[str, str | Entries] = {
        "user": f"$group.{'containers' if isinstance(program, Process) else 'initContainers'}.{name}.env",
        "own": Entries(variables_name(group, name)),
    }
    own["env"] = Include("env", arguments)
    mounts = [] if has_only_files(draft) else mounts_of(draft, group, name, program)
    if mounts:
        own["volumeMounts"] = mounts
    if isinstance(program, Process):
        own |= _probes(draft, group, name, program, over)
    return own


def _ports(draft: Draft, group: Group, listening: list[Service], over: Any) -> list[Tree]:
    names = draft.port_names(group)
    ours = [{"name": names[service.name], "containerPort": service.port, "protocol": "TCP"} for service in listening]
    merged: Any = merge_overlay({"ports": ours}, {"ports": over})["ports"] if over else ours
    values = {service.port: Value(f".Values.services.{service.name}.port") for service in listening}
    return [{**item, "containerPort": values.get(item["containerPort"], item["containerPort"])} for item in merged]


def _probes(draft: Draft, group: Group, name: str, process: Process, over: dict[str, Any]) -> dict[str, Tree]:
    """Return the probes of a process. Containers after a sidecar start when its startup probe succeeds."""
    probes: dict[str, Any] = {}
    ready = _probe(draft, group, name, process)
    if ready:
        probes["readinessProbe"] = ready
        if group.is_sidecar(name) and not group.is_ended:
            handler = {key: {**item} for key, item in ready.items() if key in ("tcpSocket", "httpGet", "exec")}
            probes["startupProbe"] = {**handler, **_STARTUP}
    for key in _PROBES:
        if key in over:
            probes[key] = merge_probe(probes.get(key, {}), over.pop(key))
    for probe in probes.values():
        for handler in (probe.get("tcpSocket"), probe.get("httpGet")):
            if handler and isinstance(handler.get("port"), str):
                handler["port"] = _probe_port(draft, group, name, handler["port"])
    return probes


def _probe(draft: Draft, group: Group, name: str, process: Process) -> dict[str, Any]:
    ready = process.ready
    if ready == "none":
        return {}
    if ready is None:
        own = [service.name for service in draft.services_of(group, name)]
        bound = next((each for each in process.binds if each in own), None)
        return {"tcpSocket": {"port": bound}} if bound else {}
    return probe_data(ready)


def _probe_port(draft: Draft, group: Group, name: str, port: str) -> Tree:
    if any(service.name == port for service in draft.services_of(group, name)):
        return draft.port_names(group)[port]
    return int(port) if port.isdecimal() else port


def container_security(security: SecuritySettings, *, device: bool = False) -> dict[str, object]:
    """Return the security context of a container, which is privileged if it mounts a `device`."""
    context: dict[str, object] = {}
    if device:
        context["privileged"] = True
    elif security.level != "privileged":
        context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if security.level == "restricted":
        context["runAsNonRoot"] = True
    if security.read_only_root:
        context["readOnlyRootFilesystem"] = True
    return context
