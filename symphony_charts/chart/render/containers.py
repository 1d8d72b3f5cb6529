"""One container of a pod: the twin of ``templates/_containers.tpl``."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from symphony_charts.chart.render import names
from symphony_charts.chart.render.model import LiveService, Model
from symphony_charts.chart.render.scripts import hold_script, rank_script
from symphony_charts.chart.render.values import Values, is_true, scalar, strings, texts
from symphony_charts.environment.di_engine import di_environment
from symphony_charts.environment.variables import CONFIG_DIR, SECRETS_DIR
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.kinds.group import Group

__all__ = ["Role", "container", "secret_volume"]

Role = Literal["main", "sidecar", "step"]

# kubernetes/kubernetes pkg/apis/core/validation, ValidateSecurityContext.
_AGAINST_PRIVILEGE = ("allowPrivilegeEscalation", "capabilities")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_DIGITS = re.compile(r"[1-9][0-9]{0,9}")
_INDEX_OF_STATEFUL_SET = "metadata.labels['apps.kubernetes.io/pod-index']"


def container(model: Model, group: Group, name: str, values: Values, role: Role) -> Values:
    """The container `name` of `group`; sidecars and steps become init containers."""
    image = values.get("image")
    if not image:
        raise SpecError.one(f"groups.{group.name}: container {name} needs an image", f"groups.{group.name}")
    listening = _listening(model, group, name, role)
    entries: dict[str, object] = {
        "imagePullPolicy": values.get("imagePullPolicy") or model.defaults.get("imagePullPolicy"),
        **_entry_point(model, group, name, values, role, listening),
        "workingDir": values.get("workingDir"),
        "envFrom": [{"configMapRef": {"name": model.addresses_name}}] if model.addresses else None,
        "resources": _resources(values, model.defaults),
        "volumeMounts": list(_mounts(model, group, name, values, role)),
        "securityContext": _security_context(sub(model.defaults, "securityContext"), sub(values, "securityContext")),
        "ports": [{"containerPort": service.port, "protocol": "TCP"} for service in listening],
        **(_probes(values, model.services) if role != "step" else {}),
        "restartPolicy": "Always" if role == "sidecar" else None,
    }
    result = {"name": name, "image": image, "env": _env(model, group, name, values, role, listening)}
    return merge_overlay(result | {key: value for key, value in entries.items() if value}, sub(values, "overlay"))


def secret_volume(model: Model, group: Group, name: str, role: Role) -> Values | None:
    """The volume with the secret files that a container may see; None when there are none."""
    files = sub(sub(model.values, "secrets"), "files")
    path = f"{group.name}/{name}"
    visible = [key for key in sorted(files) if _may_see(sub(files, key).get("only"), path, role)]
    if not visible:
        return None
    volume = "symph-secrets" if len(visible) == len(files) else names.join("symph-secrets", name, 63)
    items = [{"key": key, "path": key} for key in visible]
    return {"name": volume, "secret": {"secretName": model.secret_name, "items": items}}


def _may_see(only: object, path: str, role: Role) -> bool:
    return not only or (role != "step" and isinstance(only, list) and path in only)


def _security_context(defaults: Values, own: Values) -> Values:
    """The defaults with the container's own merged in; what is privileged cannot forbid that at the same time."""
    if is_true(own.get("privileged")):
        defaults = {key: value for key, value in defaults.items() if key not in _AGAINST_PRIVILEGE}
    return merge_overlay(defaults, own)


def _listening(model: Model, group: Group, name: str, role: Role) -> list[LiveService]:
    if role == "step":
        return []
    return [service for service in model.services.values() if (service.group, service.process) == (group.name, name)]


def _entry_point(
    model: Model, group: Group, name: str, values: Values, role: Role, listening: list[LiveService]
) -> dict[str, object]:
    command, args = texts(values.get("command")), texts(values.get("args"))
    if group.is_node and group.replicas > 1 and role != "step":
        if not command:
            what = f"groups.{group.name}: container {name} needs a command, so that its replicas learn their ranks"
            raise SpecError.one(what, f"groups.{group.name}")
        command = ["/bin/sh", "-c", rank_script(), "symph-rank", *command]
    if model.values.get("hold") and group.is_finite and role == "main" and command:
        script = hold_script([service.port for service in listening])
        return {"command": ["/bin/sh", "-c", script, "symph-hold", *command, *args]}
    return {"command": command, "args": args}


def _env(
    model: Model, group: Group, name: str, values: Values, role: Role, listening: list[LiveService]
) -> list[Values]:
    """SYMPH_* with the user's variables over them; what refers to others comes last."""
    env = _symph_env(model, group, name, listening)
    if group.is_node and role != "step":
        env |= _di_env(model, group)
    for source in (sub(model.defaults, "env"), sub(values, "env")):
        for key, value in source.items():
            env[key] = {"valueFrom": value} if isinstance(value, dict) else {"value": scalar(value)}
    entries = [{"name": key, **env[key]} for key in sorted(env)]
    return sorted(entries, key=lambda entry: "$(" in scalar(entry.get("value", "")))


def _symph_env(model: Model, group: Group, name: str, listening: list[LiveService]) -> dict[str, Values]:
    constants = {
        "SYMPHONY_ROLE": name,
        "SYMPH_CONFIG_DIR": CONFIG_DIR,
        "SYMPH_EXPERIMENT": model.experiment,
        "SYMPH_GROUP": group.name,
        "SYMPH_INDEX": "0",
        "SYMPH_REPLICAS": str(group.replicas),
        "SYMPH_SECRETS_DIR": SECRETS_DIR,
        **model.run_hosts,
    }
    fields = {}
    if group.replicas > 1 or group.is_scaled_live:
        del constants["SYMPH_INDEX"]
        fields["SYMPH_INDEX"] = model.row.index if group.in_unit else _INDEX_OF_STATEFUL_SET
    if model.run_hosts and group.selector_patterns:
        constants["SYMPH_RUN"] = ""  # No label of such a pod holds it; it is filled in once it is known.
    elif model.run_hosts or group.is_node:
        fields["SYMPH_RUN"] = "metadata.labels['symph.dev/run']"
    for service in listening:
        fields[f"{service.prefix}_HOST"] = fields[f"{service.prefix}_BIND_HOST"] = "status.podIP"
    env: dict[str, Values] = {key: {"value": value} for key, value in constants.items()}
    return {**env, **{key: {"valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items() if path}}


def _di_env(model: Model, group: Group) -> dict[str, Values]:
    """What `ditask` reads; of several replicas each adds its index to the rank of the first."""
    job = f"$(DI_JOB_NAMESPACE)/{model.fullname}-$(SYMPH_RUN)"
    said = di_environment(job, group.name, 0, model.nodes)
    if group.replicas > 1:
        said["DI_FIRST_RANK"] = said.pop("DI_RANK")
    namespace: Values = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    return {"DI_JOB_NAMESPACE": namespace, **{key: {"value": value} for key, value in said.items()}}


def _resources(values: Values, defaults: Values) -> Values:
    """Default requests where there are none; memory and devices are limited to what was asked for."""
    resources, fallback = sub(values, "resources"), sub(defaults, "resources")
    requests, limits = strings(resources.get("requests")), strings(resources.get("limits"))
    asked = {key: value for key, value in requests.items() if key == "memory" or "/" in key}
    limits = {**strings(fallback.get("limits")), **asked, **limits}
    missing = {key: value for key, value in strings(fallback.get("requests")).items() if key not in limits}
    requests = {**missing, **requests}
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
