"""The checks of storage judge volumes, mounts, configuration and secret files."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from symphony_charts.errors import Problem
from symphony_charts.formats.names import FILE_KEY
from symphony_charts.formats.paths import nearest
from symphony_charts.formats.urls import repository_fault
from symphony_charts.spec.checks.amounts import amount_faults
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.checks.names import object_name_faults
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import (
    CONFIG_DIR,
    SECRETS_DIR,
    AnyVolume,
    ClaimVolume,
    ConfigFile,
    ConfigVolume,
    DeviceVolume,
    EmptyDirVolume,
    GitVolume,
    HostPathVolume,
    Mount,
    NfsVolume,
    SecretVolume,
    key_of,
)

__all__ = ["storage_faults"]

_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)
_PERM = re.compile(r"[rwm]{1,3}")
_HOST_PATH_KINDS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")


def storage_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of all files that processes find: volumes, mounts, configs and secrets."""
    for name, volume in experiment.volumes.items():
        yield from _volume_faults(volume, f"volumes.{name}")
    ours = {CONFIG_DIR} if experiment.configs else set()
    if experiment.secrets:
        ours.add(SECRETS_DIR)
    ours |= {at.rstrip("/") for secret in experiment.secrets for at in secret.also_at}
    for entry in entries:
        if entry.process.mounts:
            yield from _mount_faults(entry.process.mounts, experiment.volumes, f"{entry.path}.mounts", ours)
    for name, step in experiment.prepare.items():
        yield from _mount_faults(step.mounts, experiment.volumes, f"prepare.{name}.mounts", ours)
    for name, config in experiment.configs.items():
        yield from _key_faults(name, f"configs.{name}", "configuration file")
        yield from _config_faults(config, f"configs.{name}")
    yield from _secret_faults(experiment)


def _mount_faults(
    mounts: Sequence[Mount], volumes: Mapping[str, AnyVolume], path: str, ours: set[str]
) -> Iterator[Problem]:
    seen = set(ours)
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        if mount.volume not in volumes:
            meant = nearest(mount.volume, volumes)
            next_step = f'did you mean "{meant}"?' if meant else "declare it under `volumes:`, or say it at the mount"
            yield Problem(what=f'no volume is called "{mount.volume}"', path=f"{here}.volume", next=next_step)
        yield from _place_faults(mount.at, f"{here}.at", seen, ours)
        if mount.sub_path is not None and not _stays_inside(mount.sub_path):
            next_step = "write it relative to the volume, without .."
            yield Problem(what=f'"{mount.sub_path}" leads out of the volume', path=f"{here}.sub_path", next=next_step)


def _place_faults(place: str, path: str, seen: set[str], ours: Collection[str] = ()) -> Iterator[Problem]:
    """Faults of where something is mounted, which is `seen` from then on."""
    at = place.rstrip("/")
    if not _is_absolute(place) or ":" in place:
        what = f'"{place}" is no absolute path'
        yield Problem(what=what, path=path, next="write it from / on, without .. and colons")
    elif not at:
        what = "a volume cannot be the root of a machine"
        yield Problem(what=what, path=path, next="mount it at a folder below /")
    elif at in seen:
        owner = " by symph itself" if at in ours else ""
        yield Problem(what=f'"{at}" is mounted already{owner}', path=path, next="choose another path")
    seen.add(at)


def _volume_faults(volume: AnyVolume, path: str) -> Iterator[Problem]:
    match volume:
        case NfsVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if not volume.server:
                yield Problem(
                    what="the server has no name", path=f"{path}.server", next="name the host that exports it"
                )
        case HostPathVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if volume.kind not in _HOST_PATH_KINDS:
                meant = nearest(volume.kind, _HOST_PATH_KINDS)
                next_step = f'did you mean "{meant}"?' if meant else f"one of: {', '.join(_HOST_PATH_KINDS[1:])}"
                yield Problem(what=f'"{volume.kind}" is no kind of host path', path=f"{path}.kind", next=next_step)
        case DeviceVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if not _PERM.fullmatch(volume.perm):
                yield Problem(what=f'"{volume.perm}" is no permission', path=f"{path}.perm", next="letters of rwm")
        case ClaimVolume():
            yield from object_name_faults(volume.claim, f"{path}.claim")
        case SecretVolume():
            yield from object_name_faults(volume.secret, f"{path}.secret")
            yield from _mode_faults(volume.mode, f"{path}.mode")
        case ConfigVolume():
            yield from object_name_faults(volume.config, f"{path}.config")
            yield from _mode_faults(volume.mode, f"{path}.mode")
        case EmptyDirVolume():
            if volume.size is not None:
                yield from amount_faults("storage", volume.size, f"{path}.size")
        case GitVolume():
            fault = repository_fault(volume.repository, f"{path}.repository")
            if fault:
                yield fault
            if volume.revision.startswith("-"):
                what = "a revision cannot begin with a dash"
                yield Problem(what=what, path=f"{path}.revision", next="give a branch, tag or commit")


def _config_faults(config: ConfigFile, path: str) -> Iterator[Problem]:
    sources = [field for field in ("text", "base64", "file") if getattr(config, field) is not None]
    if len(sources) != 1:
        given = " and ".join(sources) or "none of text, base64 and file"
        yield Problem(what=f"the content comes from one place, not {given}", path=path, next="keep one of them")
    if config.base64 is not None:
        try:
            base64.b64decode(config.base64, validate=True)
        except binascii.Error:
            yield Problem(
                what="this is not base64", path=f"{path}.base64", next="encode the file again, or use `file:`"
            )
    yield from _mode_faults(config.mode, f"{path}.mode")


def _secret_faults(experiment: Experiment) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    places: set[str] = set()
    source = experiment.secret_source
    if source.source == "external" and not source.store:
        what = "external secrets come from a SecretStore, and none is named"
        yield Problem(
            what=what, path="secret_source.store", next="name it; is_cluster_store: true for a ClusterSecretStore"
        )
    for index, secret in enumerate(experiment.secrets):
        key = key_of(secret)
        yield from _key_faults(key, f"secrets[{index}]", "key of a Secret")
        first = seen.setdefault(key, index)
        if first != index:
            what = f'"{key}" would be the key of two files, "{experiment.secrets[first].file}" and "{secret.file}"'
            yield Problem(what=what, path=f"secrets[{index}]", next="give one of them another `key:`")
        for number, at in enumerate(secret.also_at):
            path = f"secrets[{index}].also_at[{number}]"
            yield from _place_faults(at, path, places)
            if any(f"{at.rstrip('/')}/".startswith(f"{folder}/") for folder in (CONFIG_DIR, SECRETS_DIR)):
                what = f'"{at}" lies in a folder of symph itself'
                yield Problem(what=what, path=path, next="choose another path, or read it where it stands already")


def _key_faults(name: str, path: str, what: str) -> Iterator[Problem]:
    if not FILE_KEY.fullmatch(name) or name in (".", "..") or name.startswith(".."):
        next_step = "use letters, digits, dots, dashes and underscores, 253 at most"
        yield Problem(what=f'"{name}" cannot be a {what}', path=path, next=next_step)


def _mode_faults(mode: str | None, path: str) -> Iterator[Problem]:
    if mode is not None and not _MODE.fullmatch(mode):
        yield Problem(what=f'"{mode}" is no file mode', path=path, next='write it in octal digits, as in "0644"')


def _path_faults(path: str, where: str) -> Iterator[Problem]:
    if not _is_absolute(path):
        yield Problem(what=f'"{path}" is no absolute path', path=where, next="write it from / on, without ..")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in PurePosixPath(path).parts


def _stays_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts
