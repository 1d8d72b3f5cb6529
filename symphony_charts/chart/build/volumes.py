"""The volumes of a pod and the mounts of its containers as trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.chart.build.data import config_name
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.sources import volume_source
from symphony_charts.chart.helpers import cut
from symphony_charts.chart.tree import Text, Tree
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.sources import (
    CONFIG_DIR,
    SECRETS_DIR,
    AnyVolume,
    DeviceVolume,
    Mount,
    NfsVolume,
    key_of,
)

_CONFIG = "symph-config"
_SECRETS = "symph-secrets"
FILES_MOUNT: Tree = {"name": _CONFIG, "mountPath": CONFIG_DIR, "readOnly": True}


def used_volumes(draft: Draft, group: Group) -> Mapping[str, AnyVolume]:
    """Return the volumes of the experiment that containers of `group` mount."""
    programs: list[Process | Step] = [*group.pod.processes.values(), *group.steps.values()]
    return {mount.volume: draft.experiment.volumes[mount.volume] for one in programs for mount in one.mounts}


def volumes_of(draft: Draft, group: Group) -> list[dict[str, Tree]]:
    """Return the volumes of a pod: the experiment's, its configuration files, and the secrets that containers see."""
    volumes: list[dict[str, Tree]] = [
        {"name": name, **volume_source(volume)} for name, volume in used_volumes(draft, group).items()
    ]
    if draft.experiment.configs:
        volumes.append(files_volume(draft))
    secrets: dict[str, dict[str, Tree]] = {}
    for name in (*group.pod.processes, *group.steps):
        keys = _visible_secrets(draft, group, name)
        if keys:
            volume = _secret_volume(draft, name, keys)
            items = [{"key": key, "path": key} for key in keys]
            secrets[volume] = {"name": volume, "secret": {"secretName": Text("{secretName}"), "items": items}}
    return [*volumes, *(secrets[name] for name in sorted(secrets))]


def has_only_files(draft: Draft) -> bool:
    """Return True if all pods mount the configuration files and nothing else."""
    return (
        bool(draft.experiment.configs)
        and not draft.experiment.secrets
        and not any(used_volumes(draft, group) for group in draft.groups.values())
    )


def files_volume(draft: Draft, fullname: str = "$fullname") -> dict[str, Tree]:
    """Return the volume of the configuration files; `fullname` is the path of the full name."""
    files = draft.experiment.configs
    source: dict[str, Tree] = {"name": config_name(draft, fullname)}
    if any(file.mode is not None for file in files.values()):
        source["items"] = [
            {"key": name, "path": name} | ({"mode": int(file.mode, 8)} if file.mode is not None else {})
            for name, file in sorted(files.items())
        ]
    return {"name": _CONFIG, "configMap": source}


def _visible_secrets(draft: Draft, group: Group, name: str) -> dict[str, list[str]]:
    """Return the keys of the secret files that a container sees, with the further paths of each."""
    names = {f"{group.name}/{name}"} | ({name} if name in group.pod.processes else set())
    return {
        key_of(secret): list(secret.also_at)
        for secret in sorted(draft.experiment.secrets, key=key_of)
        if not secret.only or names & set(secret.only)
    }


def _secret_volume(draft: Draft, name: str, keys: Iterable[str]) -> str:
    is_all = len(list(keys)) == len(draft.experiment.secrets)
    return _SECRETS if is_all else cut(f"{_SECRETS}-{name}", 63)


def mounts_of(draft: Draft, group: Group, name: str, program: Process | Step) -> list[Tree]:
    """Return the mounts of a container: the declared ones, configuration files, and secret files."""
    mounts: list[Tree] = [_mount(draft, mount) for mount in program.mounts]
    if draft.experiment.configs:
        mounts.append(FILES_MOUNT)
    keys = _visible_secrets(draft, group, name)
    if keys:
        volume = _secret_volume(draft, name, keys)
        mounts.append({"name": volume, "mountPath": SECRETS_DIR, "readOnly": True})
        mounts += [
            {"name": volume, "mountPath": path, "subPath": key, "readOnly": True}
            for key, paths in keys.items()
            for path in paths
        ]
    return mounts


def _mount(draft: Draft, mount: Mount) -> Tree:
    entry: dict[str, Tree] = {"name": mount.volume, "mountPath": mount.at}
    if mount.read_only or _is_read_only(draft.experiment.volumes[mount.volume]):
        entry["readOnly"] = True
    if mount.sub_path:
        entry["subPath"] = mount.sub_path
    return entry


def _is_read_only(volume: AnyVolume) -> bool:
    if isinstance(volume, DeviceVolume):
        return "w" not in volume.perm
    return isinstance(volume, NfsVolume) and volume.read_only
