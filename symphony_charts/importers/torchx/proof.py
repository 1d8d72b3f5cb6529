"""The pods that the installed TorchX would make of an application are compared with those of our chart.

Its own code makes them, that of its scheduler for MCAD, or where a newer release has dropped that, for Volcano; without
the package nothing is said to be equal. Replicas of a role are alike but for macros, so one stands for all. Names of
pods are no part of the comparison, nor is the variable of rank 0's host, which TorchX calls after its schedulers.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symphony_charts.environment.expansion import expand
from symphony_charts.formats.data import maps, sub
from symphony_charts.importers.common.proof import Object, OriginalPod, Pods, pods_of, proven
from symphony_charts.importers.common.report import Imported
from symphony_charts.importers.torchx.appdef import AppDef, Role
from symphony_charts.importers.torchx.macros import APP_ID_VARIABLES, RANK0_VARIABLE
from symphony_charts.importers.torchx.mounts import AnyMount, BindMount, VolumeMount
from symphony_charts.importers.torchx.options import RunOptions, pushed_image
from symphony_charts.spec.variable_names import INDEX

__all__ = ["compared"]

_TOOL = "TorchX"
_SCHEDULERS = "torchx.schedulers"
# One replica, in an application of which this is the id; both are the same on both sides.
_REPLICA = "1"
_RELEASE, _RUN = "app", "run"
_NEEDED = {INDEX: _REPLICA, **dict(zip(APP_ID_VARIABLES, (_RELEASE, _RUN), strict=True))}
_OF_RANK0 = re.compile(r"TORCHX_MCAD_.*_0_HOSTS|VC_.*_0_HOSTS|TORCHX_RANK0_HOST|TORCHX_IMAGE")
# The shells in front of a program: the one that counts tries, and the one that tells rank 0's host.
_ATTEMPT = ("/bin/sh", "-c")
_HOST = ("/bin/sh", "-e", "-c")


def compared(
    imported: Imported,
    app: AppDef,
    options: RunOptions,
    names: Sequence[str],
    objects: Sequence[dict[str, object]] = (),
) -> Imported:
    """`imported`, its report completed by how TorchX's pods differ from ours, those of `objects` where they are given.

    `names` are the roles' processes.
    """
    if importlib.util.find_spec("torchx") is None:
        return _unproven(imported, "the package torchx is not installed")
    if any("kubernetes" in role.metadata for role in app.roles):
        return _unproven(imported, "a role has a pod overlay of its own")
    logging.getLogger(_SCHEDULERS).setLevel(logging.ERROR)  # what it warns of, it warns of when it submits
    try:
        originals = [
            OriginalPod(pod=name, spec=_theirs(role, options), place=role.path, processes=[(name, role.path)])
            for name, role in zip(names, app.roles, strict=True)
        ]
    except ImportError as error:
        return _unproven(imported, f"its scheduler is not to be had here: {error}")
    result = proven(imported, originals, _TOOL, _ours, objects)
    if options.reserve or result.report.unproven:
        return result
    added = (*result.report.added, "requests as high as the limits (reserve)")
    return result.with_report(replace(result.report, added=added))


def _unproven(imported: Imported, why: str) -> Imported:
    return imported.with_report(replace(imported.report, unproven=f"{_TOOL}'s own pods: {why}"))


# --- theirs ---------------------------------------------------------------------------------------------------------


def _theirs(role: Role, options: RunOptions) -> Object:
    """The spec of a role's pod as TorchX's own function makes it."""
    specs: Any = importlib.import_module("torchx.specs")
    values = specs.macros.Values(
        img_root="", app_id=f"{_RELEASE}-{_RUN}", replica_id=_REPLICA, rank0_env=RANK0_VARIABLE
    )
    filled = values.apply(_as_theirs(role, specs, options))
    try:
        mcad: Any = importlib.import_module(f"{_SCHEDULERS}.kubernetes_mcad_scheduler")
    except ImportError:
        volcano: Any = importlib.import_module(f"{_SCHEDULERS}.kubernetes_scheduler")
        pod = volcano.role_to_pod(role.name, filled, options.service_account)
    else:
        # The network is an annotation, and of pods only what runs is compared.
        pod = mcad.role_to_pod(
            role.name,
            _RELEASE,
            options.namespace or "default",
            filled,
            options.service_account,
            options.image_secret,
            options.coscheduler_name,
            options.priority_class_name,
            None,
        )
    client: Any = importlib.import_module("kubernetes.client")
    spec = client.ApiClient().sanitize_for_serialization(pod)["spec"]
    (container,) = spec["containers"]
    limits = sub(container, "resources", "limits")
    container = {**container, "resources": {"limits": limits}, **_seen(container)}
    secrets = [secret for secret in maps(spec, "imagePullSecrets") if secret]
    spec = {**_nameless(spec), "containers": [container], "imagePullSecrets": secrets}
    return {key: value for key, value in spec.items() if value != []}


def _as_theirs(role: Role, specs: Any, options: RunOptions) -> Any:
    """The role as a record of TorchX."""
    resource = role.resource
    return specs.Role(
        name=role.name,
        image=pushed_image(role.image, options) or role.image,
        entrypoint=role.entrypoint,
        args=list(role.args),
        env=dict(role.env),
        num_replicas=role.num_replicas,
        resource=specs.Resource(
            cpu=resource.cpu,
            gpu=resource.gpu,
            memMB=resource.memory_mb,
            capabilities=dict(resource.capabilities),
            devices=dict(resource.devices),
        ),
        port_map=dict(role.port_map),
        mounts=[_mount(mount, specs) for mount in role.mounts],
    )


def _mount(mount: AnyMount, specs: Any) -> Any:
    if isinstance(mount, BindMount):
        return specs.BindMount(src_path=mount.src_path, dst_path=mount.dst_path, read_only=mount.read_only)
    if isinstance(mount, VolumeMount):
        return specs.VolumeMount(src=mount.src, dst_path=mount.dst_path, read_only=mount.read_only)
    return specs.DeviceMount(src_path=mount.src_path, dst_path=mount.dst_path, permissions=mount.permissions)


# --- ours -----------------------------------------------------------------------------------------------------------


def _ours(objects: Sequence[dict[str, object]]) -> Pods:
    pods, notes = pods_of(objects)
    return {
        name: {**_nameless(spec), "containers": [{**item, **_seen(item)} for item in maps(spec, "containers")]}
        for name, spec in pods.items()
    }, notes


# --- both -----------------------------------------------------------------------------------------------------------


def _seen(container: Mapping[str, object]) -> dict[str, object]:
    """Program, environment and ports as the replica has them, without the shells of ours in front of it."""
    known = dict(_NEEDED)
    env: list[dict[str, object]] = []
    for entry in maps(container, "env"):
        name = str(entry["name"])
        is_text = "valueFrom" not in entry
        if is_text:
            known.setdefault(name, expand(str(entry.get("value") or ""), known))
        if name not in _NEEDED and not _OF_RANK0.fullmatch(name):
            env.append({"name": name, "value": known[name]} if is_text else entry)
    argv = [expand(word, known) for word in _without_shells(list(_words(container)))]
    # A port is called after its service here.
    ports = [{"containerPort": port.get("containerPort")} for port in maps(container, "ports")]
    return {"command": argv, "args": [], "env": env, **({"ports": ports} if ports else {})}


def _nameless(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if key not in ("hostname", "subdomain")}


def _words(container: Mapping[str, object]) -> Iterator[str]:
    for key in ("command", "args"):
        words = container.get(key)
        yield from map(str, words if isinstance(words, list) else [])


def _without_shells(argv: list[str]) -> list[str]:
    if tuple(argv[:2]) == _ATTEMPT and argv[3:4] == ["symph-attempt"]:
        argv = argv[4:]
    if tuple(argv[:3]) == _HOST and argv[3].endswith('exec "$@"') and RANK0_VARIABLE in argv[3]:
        argv = argv[5:]
    return argv
