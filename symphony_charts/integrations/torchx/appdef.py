"""Read TorchX applications: roles, macros and mounts.

The records mirror TorchX's own (meta-pytorch/torchx: torchx/specs/api.py, releases 0.7.0 to 2026.10). They are
separate from the experiment because TorchX's own objects are made from them too (`importers.torchx_objects`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields

# Source: meta-pytorch/torchx, torchx/specs/api.py (BindMount, VolumeMount, DeviceMount) and builders.py
# (parse_mounts).

_LONG_NAMES = {
    "source": "src",
    "destination": "dst",
    "target": "dst",
    "ro": "readonly",
    "read_only": "readonly",
    "permissions": "perm",
}
_OPTIONS = ("type", "src", "dst", "readonly", "perm")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A path of the node."""

    src_path: str
    dst_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMount:
    """A PersistentVolumeClaim."""

    src: str
    dst_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMount:
    """A device of the node; it makes the pod privileged."""

    src_path: str
    dst_path: str
    permissions: str = "rwm"

    @property
    def is_read_only(self) -> bool:
        """True if neither writing nor mknod is permitted."""
        return not {"w", "m"} & set(self.permissions)


AnyMount: TypeAlias = BindMount | VolumeMount | DeviceMount


def read_mounts(role: Fields) -> list[AnyMount]:
    """Return the mounts of a role: objects, `type=...` strings, or a flat list of their options."""
    value = role.get("mounts")
    if value is None:
        return []
    if isinstance(value, str):
        return _parse_mount_options(value.split(","), role.at("mounts"), role.log)
    if not isinstance(value, list):
        role.log.fault(role.at("mounts"), f"{show(value)} is not a list of mounts")
        return []
    if value and all(isinstance(item, str) for item in value):
        options = [option for item in value for option in str(item).split(",")]
        return _parse_mount_options(options, role.at("mounts"), role.log)
    mounts: list[AnyMount] = []
    for index, item in enumerate(value):
        path = join(role.at("mounts"), index)
        if isinstance(item, str):
            mounts += _parse_mount_options(item.split(","), path, role.log)
        elif (mount := _read_object(Fields(item, path, role.log))) is not None:
            mounts.append(mount)
    return mounts


def _parse_mount_options(options: list[str], path: str, log: Log) -> list[AnyMount]:
    """Return the mounts in a list of `key=value` options; each begins with its `type=`."""
    parsed: list[dict[str, str]] = []
    for option in options:
        key, _, value = option.strip().partition("=")
        key = _LONG_NAMES.get(key, key)
        if key not in _OPTIONS:
            log.fault(path, f"unknown mount option {show(key)}", f"use one of {', '.join(_OPTIONS)}")
        elif key == "type":
            parsed.append({"type": value})
        elif not parsed:
            log.fault(path, "a mount must begin with `type=`", "write type=bind, type=volume or type=device first")
            return []
        else:
            parsed[-1][key] = value
    mounts = (_from_options(options, path, log) for options in parsed)
    return [mount for mount in mounts if mount is not None]


def _from_options(options: dict[str, str], path: str, log: Log) -> AnyMount | None:
    kind, src = options["type"], options.get("src", "")
    dst = options.get("dst") or (src if kind == "device" else "")
    if kind not in ("bind", "volume", "device"):
        log.fault(path, f"{show(kind)} is not a mount type", "use bind, volume or device")
        return None
    if not src or not dst:
        log.fault(path, f"the {kind} mount has no {'src' if not src else 'dst'}", "add it: src=...,dst=...")
        return None
    if kind == "device":
        return _device(src, dst, options.get("perm") or "rwm", path, log)
    is_read_only = options.get("readonly", "false") in ("", "true", "True", "1")
    if kind == "bind":
        return BindMount(src_path=src, dst_path=dst, read_only=is_read_only)
    return VolumeMount(src=src, dst_path=dst, read_only=is_read_only)


def _read_object(fields: Fields) -> AnyMount | None:
    """Return a mount from the output of `dataclasses.asdict`; its fields identify the lost class."""
    kind = fields.text("type")
    if "permissions" in fields or kind == "device":
        src = fields.required_text("src_path", "/dev/null")
        dst = fields.text("dst_path") or src
        mount: AnyMount | None = _device(src, dst, fields.text("permissions") or "rwm", fields.path, fields.log)
    elif "src" in fields or kind == "volume":
        src, dst = fields.required_text("src", "claim"), fields.required_text("dst_path", "/volume")
        mount = VolumeMount(src=src, dst_path=dst, read_only=bool(fields.flag("read_only")))
    else:
        src, dst = fields.required_text("src_path", "/"), fields.required_text("dst_path", "/bind")
        mount = BindMount(src_path=src, dst_path=dst, read_only=bool(fields.flag("read_only")))
    fields.note_unread("of a mount is not carried over")
    return mount


def _device(src: str, dst: str, permissions: str, path: str, log: Log) -> DeviceMount | None:
    if set(permissions) - set("rwm"):
        log.fault(path, f"{show(permissions)} are not device permissions", "use letters of rwm")
        return None
    return DeviceMount(src_path=src, dst_path=dst, permissions=permissions)


RetryPolicy: TypeAlias = Literal["REPLICA", "APPLICATION", "ROLE", "HOT_SPARE"]
_POLICIES: tuple[RetryPolicy, ...] = ("REPLICA", "APPLICATION", "ROLE", "HOT_SPARE")
_UNSET = ("<MISSING>", "<NONE>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The resources of one replica; zero or less means not set. `memory_mb` counts 10^6 bytes, as TorchX emits it."""

    cpu: float = -1
    gpu: int = -1
    memory_mb: int = -1
    capabilities: dict[str, object] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    tags: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Replicas of one program; `path` is its path in the input."""

    path: str
    name: str
    image: str
    entrypoint: str
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    num_replicas: int = 1
    min_replicas: int | None = None
    max_retries: int = 0
    retry_policy: RetryPolicy = "APPLICATION"
    resource: Resource = field(default_factory=Resource)
    port_map: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    mounts: list[AnyMount] = field(default_factory=list)
    base_image: str | None = None
    workspace: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppDef:
    """A distributed application: its roles, in order (the first one holds rank 0)."""

    name: str
    roles: list[Role]
    metadata: dict[str, str] = field(default_factory=dict)


def read_appdef(data: object, log: Log, path: str = "") -> AppDef:
    """Return the application in `data`; faults and unknown fields go to `log`."""
    fields = Fields(data, path, log)
    name = fields.required_text("name", "app", "give the app a name")
    roles = [_read_role(role) for role in fields.maps("roles")]
    if not roles and "roles" not in fields:
        log.fault(fields.at("roles"), "the app has no roles", "give it at least one role")
    elif not roles and isinstance(fields.get("roles"), list):
        log.fault(fields.at("roles"), "the list of roles is empty", "give the app at least one role")
    metadata = fields.text_map("metadata")
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return AppDef(name=name, roles=roles, metadata=metadata)


def _read_role(fields: Fields) -> Role:
    role = Role(
        path=fields.path,
        name=fields.required_text("name", "role", "give the role a name"),
        image=_said(fields.text("image")),
        entrypoint=_said(fields.text("entrypoint")),
        args=fields.texts("args"),
        env=fields.text_map("env"),
        num_replicas=_or(fields.integer("num_replicas", 1, 100_000), 1),
        min_replicas=fields.integer("min_replicas", 1, 100_000),
        max_retries=_or(fields.integer("max_retries", 0, 2**31 - 1), 0),
        retry_policy=_read_policy(fields),
        resource=_read_resource(fields.map("resource")),
        port_map=_integers(fields.map("port_map")),
        metadata=_plain_map(fields, "metadata"),
        mounts=read_mounts(fields),
        base_image=fields.text("base_image"),
        workspace=fields.raw("workspace"),
    )
    if not role.entrypoint:
        fields.log.fault(fields.at("entrypoint"), f'role "{role.name}" has no entrypoint', "set its program")
    if role.min_replicas is not None and role.min_replicas > role.num_replicas:
        what = f"min_replicas ({role.min_replicas}) is more than num_replicas ({role.num_replicas})"
        fields.log.fault(fields.at("min_replicas"), what, "lower it")
    if fields.get("overrides"):
        what = "`overrides` hold values that TorchX computes when it submits; they are not carried over"
        fields.log.note(fields.at("overrides"), what)
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return role


def _read_policy(fields: Fields) -> RetryPolicy:
    text = fields.text("retry_policy")
    if text is None:
        return "APPLICATION"
    name = text.rpartition(".")[2]
    for policy in _POLICIES:
        if name == policy:
            return policy
    fields.log.fault(
        fields.at("retry_policy"), f"{show(text)} is not a retry policy", f"use one of {', '.join(_POLICIES)}"
    )
    return "APPLICATION"


def _read_resource(fields: Fields) -> Resource:
    resource = Resource(
        cpu=_or(fields.number("cpu"), -1),
        gpu=_or(fields.integer("gpu"), -1),
        memory_mb=int(_or(fields.number("memMB"), -1)),
        capabilities=_plain_map(fields, "capabilities"),
        devices=_integers(fields.map("devices")),
        tags=_plain_map(fields, "tags"),
    )
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return resource


def _plain_map(fields: Fields, key: str) -> dict[str, object]:
    inner = fields.map(key)
    return {name: inner.raw(name) for name in inner.keys()}  # noqa: SIM118 - not a dict


def _integers(fields: Fields) -> dict[str, int]:
    return {name: number for name in fields.keys() if (number := fields.integer(name)) is not None}  # noqa: SIM118


def _said(text: str | None) -> str:
    return "" if text is None or text in _UNSET else text


def _or(value: float | int | None, default: int) -> int:
    return default if value is None else value  # type: ignore[return-value] # numbers keep the type they were read as


# TorchX fills in `${app_id}` and other macros for every replica, so it writes a pod for each. Here they become
# references to the environment of the pod, so that one template serves all replicas. Otherwise the rules are those of
# Python's `string.Template.safe_substitute`: `$$` is a dollar sign, an unknown `${x}` stays.
# Source: meta-pytorch/torchx, torchx/specs/api.py, class macros.

RANK0_VARIABLE = "TORCHX_RANK0_HOST"
# The release and its run, which is new for every submission, so that a second run does not overwrite the first.
APP_ID_VARIABLES = ("TORCHX_RELEASE", "TORCHX_RUN")

# The replacement of each macro. `rank0_env` is the *name* of a variable, which the program or its shell looks up.
MACROS: Mapping[str, str] = {
    "img_root": "",
    "base_img_root": "",
    "app_id": f"$({APP_ID_VARIABLES[0]})-$({APP_ID_VARIABLES[1]})",
    "replica_id": "$(SYMPH_INDEX)",
    "rank0_env": RANK0_VARIABLE,
}

_REFERENCE = re.compile(r"\$(?:(\$)|([_a-zA-Z][_a-zA-Z0-9]*)|\{([_a-zA-Z][_a-zA-Z0-9]*)\})", re.ASCII)
_DOLLARS = re.compile(r"\$+\Z")


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with the macros in `values` filled in."""

    def fill(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return values.get(match[2] or match[3], match[0])

    return _REFERENCE.sub(fill, text)


def as_references(text: str) -> str:
    """Return `text` with its macros as references to the pod's environment, ``$(NAME)`` in Kubernetes' syntax.

    A dollar sign right before such a reference is doubled: Kubernetes would take it for an escape.
    """
    if "$" not in text:
        return text
    result = ""
    last = 0
    for match in _REFERENCE.finditer(text):
        result += text[last : match.start()]
        value = "$" if match[1] else MACROS.get(match[2] or match[3], match[0])
        if value.startswith("$(") and (dollars := _DOLLARS.search(result)) and len(dollars[0]) % 2:
            result += "$"
        result += value
        last = match.end()
    return result + text[last:]


def uses(text: str, macro: str) -> bool:
    """Return True if `text` contains the macro, not escaped."""
    return any(macro in (match[2], match[3]) for match in _REFERENCE.finditer(text))
