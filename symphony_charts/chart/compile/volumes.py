"""Volumes and mounts are written in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.chart.render.values import Values
from symphony_charts.spec.sources import (
    AnyVolume,
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyDirVolume,
    GitVolume,
    HostPathVolume,
    Mount,
    NfsVolume,
    SecretVolume,
)

__all__ = ["compile_volume", "git_step", "is_device", "mounts_of"]

_GIT_IMAGE = "alpine/git:v2.49.1"

_CHECKOUT = "/symph/checkout"

# Fetches only what is needed where the server allows it, and can be run again in the same folder. Kubernetes would take
# a dollar sign before a bracket for a reference, so there is none.
_GIT_SCRIPT = f"""cd {_CHECKOUT}
git() {{ command git -c safe.directory={_CHECKOUT} "$@"; }}
test -d .git || {{ git init -q . && git remote add origin "$GIT_REPOSITORY"; }}
if git fetch -q --depth 1 origin "$GIT_REVISION"; then git checkout -q -f FETCH_HEAD
else git fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*' && git checkout -q -f "$GIT_REVISION"
fi"""


def compile_volume(volume: AnyVolume) -> Values:
    """The volume source of a pod; a repository is scratch space that its init container fills."""
    match volume:
        case NfsVolume():
            nfs: Values = {"server": volume.server, "path": volume.path}
            return {"nfs": {**nfs, "readOnly": True} if volume.read_only else nfs}
        case HostPathVolume():
            path: Values = {"path": volume.path}
            return {"hostPath": {**path, "type": volume.kind} if volume.kind else path}
        case DeviceVolume():
            return {"hostPath": {"path": volume.path}}
        case ClaimVolume():
            return {"persistentVolumeClaim": {"claimName": volume.claim}}
        case SecretVolume():
            return {"secret": {"secretName": volume.secret, **_files(volume)}}
        case ConfigVolume():
            return {"configMap": {"name": volume.config, **_files(volume)}}
        case EmptyDirVolume():
            scratch = {"medium": "Memory" if volume.memory else "", "sizeLimit": volume.size or ""}
            return {"emptyDir": {key: value for key, value in scratch.items() if value}}
        case GitVolume():
            return {"emptyDir": {}}


def mounts_of(mounts: Iterable[Mount], volumes: Mapping[str, AnyVolume]) -> Values:
    """Mounts keyed by their volume; a second mount of one volume gets a number."""
    values: Values = {}
    for mount in mounts:
        key, number = mount.volume, 2
        while key in values:
            key, number = f"{mount.volume}-{number}", number + 1
        entry: Values = {"mountPath": mount.at}
        if key != mount.volume:
            entry["volume"] = mount.volume
        if mount.read_only or _is_read_only(volumes[mount.volume]):
            entry["readOnly"] = True
        if mount.sub_path:
            entry["subPath"] = mount.sub_path
        values[key] = entry
    return values


def git_step(name: str, volume: GitVolume) -> Values:
    """The init container that checks `volume` out."""
    return {
        "image": volume.image or _GIT_IMAGE,
        "command": ["/bin/sh", "-e", "-c", _GIT_SCRIPT],
        "env": {"GIT_REPOSITORY": volume.repository, "GIT_REVISION": volume.revision},
        "mounts": {name: {"mountPath": _CHECKOUT}},
    }


def is_device(volume: AnyVolume) -> bool:
    """Whether a process that mounts it must be privileged."""
    return isinstance(volume, DeviceVolume)


def _is_read_only(volume: AnyVolume) -> bool:
    if isinstance(volume, DeviceVolume):
        return "w" not in volume.perm
    return isinstance(volume, NfsVolume) and volume.read_only


def _files(volume: SecretVolume | ConfigVolume) -> Values:
    files: Values = {}
    if volume.mode is not None:
        files["defaultMode"] = int(volume.mode, 8)
    if volume.items:
        files["items"] = [{"key": key, "path": path} for key, path in volume.items.items()]
    return files
