"""One container of a pod: the twin of ``charts/symph/templates/_containers.tpl``."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from symphony_charts.chart.render import names
from symphony_charts.chart.render.images import image_text
from symphony_charts.chart.render.model import LiveService, Model
from symphony_charts.chart.render.scripts import attempt_script, hold_script, rank_script
from symphony_charts.chart.render.values import Values, is_true, said, scalar, strings, texts
from symphony_charts.environment.di_engine import node_facts
from symphony_charts.environment.expansion import pod_order
from symphony_charts.environment.variables import Fact, ServiceFact, interpret, own_variables
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.kinds.group import Group
from symphony_charts.spec.pods import ProcessRef
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR
from symphony_charts.spec.variable_names import ATTEMPT, DI_FIRST_RANK, DI_JOB_NAMESPACE, DI_RANK, RUN, beside_shells

__all__ = ["Role", "container", "resources_of", "secret_volume"]

Role = Literal["main", "sidecar", "step"]

# kubernetes/kubernetes pkg/apis/core/validation, ValidateSecurityContext.
_AGAINST_PRIVILEGE = ("allowPrivilegeEscalation", "capabilities")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_DIGITS = re.compile(r"[1-9][0-9]{0,9}")
_INDEX_OF_STATEFUL_SET = "metadata.labels['apps.kubernetes.io/pod-index']"


def container(model: Model, group: Group, name: str, values: Values, role: Role) -> Values:
    """The container `name` of `group`; sidecars and steps become init containers."""
    image = values.get("image") or model.defaults.get("image")
    if not image:
        raise SpecError.one(f"groups.{group.name}: container {name} needs an image", f"groups.{group.name}")
    listening = _listening(model, group, name, role)
    env = _env(model, group, name, values, role, listening)
    entries: dict[str, object] = {
        "imagePullPolicy": said(values, model.defaults, "imagePullPolicy"),
        **_entry_point(model, group, name, values, role, listening, [str(variable["name"]) for variable in env]),
        "workingDir": values.get("workingDir"),
        "envFrom": [
            *maps(values, "envFrom"),
            *([{"configMapRef": {"name": model.addresses_name}}] if model.addresses else []),
        ],
        "resources": resources_of(values, model.defaults),
        "volumeMounts": list(_mounts(model, group, name, values, role)),
        "securityContext": _security_context(model.defaults, values),
        "ports": [_port(model, service) for service in listening],
        **(_probes(values, model.services) if role != "step" else {}),
        "lifecycle": values.get("lifecycleHooks") if role != "step" else None,
        "restartPolicy": "Always" if role == "sidecar" else None,
    }
    result = {
        "name": name,
        "image": image_text(model.values, image),
        "env": env,
    }
    return merge_overlay(result | {key: value for key, value in entries.items() if value}, sub(values, "overlay"))


def secret_volume(model: Model, group: Group, name: str, role: Role) -> Values | None:
    """The volume with the secret files that a container may see; None when there are none."""
    files = sub(sub(model.values, "secrets"), "files")
    visible = _visible_secrets(model, group, name, role)
    if not visible:
        return None
    volume = "symph-secrets" if len(visible) == len(files) else names.join("symph-secrets", name, 63)
    items = [{"key": key, "path": key} for key in visible]
    return {"name": volume, "secret": {"secretName": model.secret_name, "items": items}}


def _visible_secrets(model: Model, group: Group, name: str, role: Role) -> dict[str, Values]:
    """The secret files that a container may see, by key and in that order."""
    files = sub(sub(model.values, "secrets"), "files")
    named = {key: sub(files, key) for key in sorted(files)}
    path = None if role == "step" else f"{group.name}/{name}"
    return {key: file for key, file in named.items() if not file.get("only") or path in texts(file.get("only"))}


def _security_context(defaults: Values, values: Values) -> object:
    """The defaults with the container's own merged in; what is privileged cannot forbid that at the same time."""
    if is_true(sub(values, "securityContext").get("privileged")):
        context = sub(defaults, "securityContext")
        defaults = {"securityContext": {key: context[key] for key in context if key not in _AGAINST_PRIVILEGE}}
    return said(values, defaults, "securityContext")


def _listening(model: Model, group: Group, name: str, role: Role) -> list[LiveService]:
    if role == "step":
        return []
    return list(model.bound.get((group.name, name), ()))


def _port(model: Model, service: LiveService) -> Values:
    port: Values = {"containerPort": service.port, "protocol": "TCP"}
    return {"name": model.row.port, **port} if model.row.port and service.name == service.group else port


def _entry_point(
    model: Model,
    group: Group,
    name: str,
    values: Values,
    role: Role,
    listening: list[LiveService],
    variables: list[str],
) -> dict[str, object]:
    command, args = texts(values.get("command")), texts(values.get("args"))
    is_ranked = group.is_node and group.replicas > 1 and role != "step"
    if is_ranked and not command:
        what = f"groups.{group.name}: container {name} needs a command, so that its replicas learn their ranks"
        raise SpecError.one(what, f"groups.{group.name}")
    is_tried = bool(group.tries and role == "main" and command)
    is_held = bool(model.values.get("hold") and group.is_finite and role == "main" and command)
    if is_ranked or is_tried or is_held:
        command = [*beside_shells(variables), *command]
    if is_ranked:
        command = ["/bin/sh", "-c", rank_script(), "symph-rank", *command]
    if is_tried:
        command = ["/bin/sh", "-c", attempt_script(), "symph-attempt", *command]
    if is_held:
        script = hold_script([service.port for service in listening])
        return {"command": ["/bin/sh", "-c", script, "symph-hold", *command, *args]}
    return {"command": command, "args": args}


def _env(
    model: Model, group: Group, name: str, values: Values, role: Role, listening: list[LiveService]
) -> list[Values]:
    """The list of variables as a container has it, with the user's over them; what refers to others comes last."""
    env: dict[str, object] = dict(_told(model, group, name, values, role, listening))
    declared = said(values, model.defaults, "env")
    for key, value in declared.items() if isinstance(declared, dict) else ():
        env[key] = value if isinstance(value, dict) else scalar(value)
    return [
        {"name": key, "valueFrom": env[key]} if isinstance(env[key], dict) else {"name": key, "value": env[key]}
        for key in pod_order(env)
    ]


def _told(
    model: Model, group: Group, name: str, values: Values, role: Role, listening: list[LiveService]
) -> Mapping[str, object]:
    """What a container is told of itself; where services are stands in the ConfigMap of addresses."""
    is_node = group.is_node and role != "step"
    listens = [service.name for service in listening]
    connects = [] if role == "step" else [key for key in texts(values.get("connects")) if key in model.services]
    variables = own_variables(model.experiment, ProcessRef(group.name, name), listens, connects, is_node=is_node)
    own = [one for one in variables if not isinstance(one.source, ServiceFact) or one.source.part != "OWN_PORT"]
    addresses = {key: model.services[key].address for key in (*listens, *connects)}
    env = interpret(own, _facts(model, group), addresses)
    if role == "main" and group.tries is not None:
        earlier = group.tries if texts(values.get("command")) else {}
        env |= {key: _field(path) for key, path in earlier.items()} if group.tries else {ATTEMPT: "1"}
    if is_node:
        env[DI_JOB_NAMESPACE] = _field("metadata.namespace")
    if is_node and group.replicas > 1:
        env[DI_FIRST_RANK] = env.pop(DI_RANK)
    return env


def _facts(model: Model, group: Group) -> dict[Fact, str | Values | None]:
    """What a pod of `group` answers the list of variables: texts, fields that Kubernetes fills in, None for nothing."""
    facts: dict[Fact, str | Values | None] = {
        Fact.ADDRESS: _field("status.podIP"),
        Fact.INDEX: "0",
        Fact.REPLICAS: str(group.replicas),
        Fact.RUN: None,
        Fact.ATTEMPT: None,
        Fact.CONFIG_DIR: CONFIG_DIR,
        Fact.SECRETS_DIR: SECRETS_DIR,
    }
    if group.replicas > 1 or group.is_scaled_live:
        path = model.row.index if group.in_unit else _INDEX_OF_STATEFUL_SET
        facts[Fact.INDEX] = _field(path) if path else None
    if model.names_run and group.selector_patterns:
        facts[Fact.RUN] = ""  # No label of such a pod holds it; it is filled in once it is known.
    elif (model.names_run or group.is_node) and not group.keep:
        facts[Fact.RUN] = _field("metadata.labels['symph.dev/run']")
    if group.is_node:
        # Of several replicas each adds its index to the rank of the first.
        types = strings(sub(model.values, "workload", "dijob").get("tasks"))
        facts |= node_facts(f"$({DI_JOB_NAMESPACE})/{model.fullname}-$({RUN})", group.name, 0, model.nodes, types)
    return facts


def _field(path: str) -> Values:
    return {"fieldRef": {"fieldPath": path}}


def resources_of(values: Values, defaults: Values) -> Values:
    """What a container requests (by default where it says nothing) and its limits: memory and devices as asked for."""
    resources = sub(values, "resources")
    fallback = sub(defaults, "resources") if resources or "resources" not in values else {}
    requests, limits = strings(resources.get("requests")), strings(resources.get("limits"))
    asked = {key: value for key, value in requests.items() if key == "memory" or "/" in key}
    usual = {key: strings(fallback.get(key)) for key in ("requests", "limits") if resources.get(key) != {}}
    # What it limits itself it asks for, too; what is limited for all is only a bound.
    own = {**asked, **limits}
    missing = {key: value for key, value in usual.get("requests", {}).items() if key not in own}
    requests, limits = {**missing, **requests}, {**usual.get("limits", {}), **own}
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _mounts(model: Model, group: Group, name: str, values: Values, role: Role) -> Iterator[Values]:
    for key, mount in sorted(sub(values, "mounts").items()):
        entry = mount if isinstance(mount, dict) else {}
        item: Values = {"name": entry.get("volume") or key, "mountPath": entry.get("mountPath")}
        if is_true(entry.get("readOnly")):
            item["readOnly"] = True
        if entry.get("subPath"):
            item["subPath"] = entry["subPath"]
        yield item
    if model.configs is not None:
        yield {"name": "symph-config", "mountPath": CONFIG_DIR, "readOnly": True}
    secrets = secret_volume(model, group, name, role)
    if secrets is not None:
        yield {"name": secrets["name"], "mountPath": SECRETS_DIR, "readOnly": True}
        for key, file in _visible_secrets(model, group, name, role).items():
            for path in texts(file.get("alsoAt")):
                yield {"name": secrets["name"], "mountPath": path, "subPath": key, "readOnly": True}


def _probes(values: Values, services: Mapping[str, LiveService]) -> Values:
    """The probes with service names turned into ports; without those of a service that is gone."""
    probes = {name: _probe(copy.deepcopy(sub(values, name)), values, services) for name in _PROBES}
    return {name: probe for name, probe in probes.items() if probe}


def _probe(probe: Values, values: Values, services: Mapping[str, LiveService]) -> Values | None:
    for kind in ("tcpSocket", "httpGet"):
        handler = sub(probe, kind)
        port = handler.get("port")
        if not isinstance(port, str):
            continue
        if _DIGITS.fullmatch(port):
            handler["port"] = int(port)
        elif port in services:
            handler["port"] = services[port].port
        elif port not in [entry.get("name") for entry in maps(sub(values, "overlay"), "ports")]:
            return None
    return probe
