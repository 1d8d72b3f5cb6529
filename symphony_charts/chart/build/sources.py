"""The volume sources of pods, and the step that checks a repository out."""

from __future__ import annotations

from symphony_charts.formats.data import Values
from symphony_charts.spec.sources import (
    AnyVolume,
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyDirVolume,
    GitVolume,
    HostPathVolume,
    NfsVolume,
    SecretVolume,
)

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


def volume_source(volume: AnyVolume) -> Values:
    """Return the volume source of a pod; a repository is an empty volume that an init container fills."""
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


def git_step(name: str, volume: GitVolume) -> Values:
    """Return the init container that checks `volume` out."""
    return {
        "image": volume.image or _GIT_IMAGE,
        "command": ["/bin/sh", "-e", "-c", _GIT_SCRIPT],
        "env": {"GIT_REPOSITORY": volume.repository, "GIT_REVISION": volume.revision},
        "mounts": {name: {"mountPath": _CHECKOUT}},
    }


def is_device(volume: AnyVolume) -> bool:
    """Return True if a process that mounts it must be privileged."""
    return isinstance(volume, DeviceVolume)


def _files(volume: SecretVolume | ConfigVolume) -> Values:
    files: Values = {}
    if volume.mode is not None:
        files["defaultMode"] = int(volume.mode, 8)
    if volume.items:
        files["items"] = [{"key": key, "path": path} for key, path in volume.items.items()]
    return files
