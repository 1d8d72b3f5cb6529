"""TorchX's mounts are read: objects of an AppDef, and ``type=bind,src=,dst=[,readonly][,perm=rwm]`` strings.

Source: meta-pytorch/torchx, torchx/specs/api.py (BindMount, VolumeMount, DeviceMount) and builders.py (parse_mounts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.paths import join
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields

__all__ = ["AnyMount", "BindMount", "DeviceMount", "VolumeMount", "read_mounts"]

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
        """Return True if neither writing nor mknod is permitted."""
        return not {"w", "m"} & set(self.permissions)


AnyMount: TypeAlias = BindMount | VolumeMount | DeviceMount


def read_mounts(role: Fields) -> list[AnyMount]:
    """The mounts of a role: objects, ``type=...`` strings, or a list of their options one by one."""
    value = role.get("mounts")
    if value is None:
        return []
    if isinstance(value, str):
        return _parse_mount_options(value.split(","), role.at("mounts"), role.log)
    if not isinstance(value, list):
        role.log.fault(role.at("mounts"), f"{show(value)} stands where a list of mounts is needed")
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
    """The mounts that a list of ``key=value`` options describes; each begins with its ``type=``."""
    parsed: list[dict[str, str]] = []
    for option in options:
        key, _, value = option.strip().partition("=")
        key = _LONG_NAMES.get(key, key)
        if key not in _OPTIONS:
            log.fault(path, f"unknown mount option {show(key)}", f"one of {', '.join(_OPTIONS)}")
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
        log.fault(path, f"{show(kind)} is no mount type", "one of bind, volume, device")
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
    """A mount as ``dataclasses.asdict`` leaves it: the class is gone, but its fields tell which it was."""
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
        log.fault(path, f"{show(permissions)} are no device permissions", "use letters of rwm")
        return None
    return DeviceMount(src_path=src, dst_path=dst, permissions=permissions)
