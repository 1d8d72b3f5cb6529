"""Processes see the files and volumes of an experiment in private folders, at the pod's paths where possible."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.local.plan.records import Bind, Checkout, File, Machine
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import ProcessRef, processes_of
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
    SecretFile,
    SecretVolume,
    key_of,
)

__all__ = [
    "DATA",
    "Layout",
    "checkouts_of",
    "config_dir",
    "created_host_paths",
    "layout",
    "lost_writes",
    "mount_binds",
    "process_secrets",
    "relocation_note",
    "secrets_dir",
    "with_local_paths",
]

# What processes see of the folder of a volume that outlives runs; our marker stands beside it.
DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The files in the run's folder, and the paths at which all processes see them."""

    files: tuple[File, ...]
    binds: tuple[Bind, ...]
    notes: tuple[str, ...]


def config_dir(machine: Machine) -> str:
    """Return the folder of the experiment's configuration files, as processes see it."""
    return CONFIG_DIR if machine.has_namespace else f"{machine.run_dir}/files/config"


def secrets_dir(machine: Machine, own: Sequence[Bind]) -> str:
    """Return the folder of the experiment's secret files for a process with the mounts `own`."""
    shared = f"{machine.run_dir}/files/secrets"
    folder = next((bind.source for bind in own if bind.target == SECRETS_DIR), shared)
    return SECRETS_DIR if machine.has_namespace else folder


def layout(experiment: Experiment, machine: Machine) -> Layout:
    """Return the configuration and secret files of `experiment`, at the pod's paths if private mounts work."""
    files = [
        File(path=f"files/config/{name}", content=_content(config), mode=_mode(config.mode))
        for name, config in experiment.configs.items()
    ]
    files += _secret_files(experiment, machine)
    binds, notes = [], []
    for wanted, name, target in (
        (experiment.configs, "config", CONFIG_DIR),
        (machine.secrets, "secrets", SECRETS_DIR),
    ):
        source = f"{machine.run_dir}/files/{name}"
        if wanted or not machine.has_namespace:
            binds.append(Bind(source=source, target=target, read_only=True))
        if wanted and not machine.has_namespace:
            notes.append(f"no private mounts on this machine: {target} is {source} (SYMPH_{name.upper()}_DIR says so)")
    return Layout(files=tuple(files), binds=tuple(binds), notes=tuple(notes))


def mount_binds(experiment: Experiment, mounts: Iterable[Mount], pod: str, machine: Machine) -> Iterator[Bind]:
    """Yield the volumes of one process of the replica `pod`.

    Raises SpecError for a volume that only a cluster has and that names no local stand-in.
    """
    for number, mount in enumerate(mounts):
        volume = experiment.volumes[mount.volume]
        source = _source(volume, mount, pod, machine, f"mounts[{number}]")
        if source is not None:
            sub_path = (mount.sub_path or "").strip("/")
            source = f"{source}/{sub_path}" if sub_path else source
            yield Bind(source=source, target=mount.at, read_only=mount.read_only, sub_path=sub_path)


def created_host_paths(experiment: Experiment) -> set[str]:
    """Return the folders of this machine to create if they are missing."""
    paths = (volume for volume in experiment.volumes.values() if isinstance(volume, HostPathVolume))
    return {volume.path for volume in paths if volume.kind == "DirectoryOrCreate"}


def lost_writes(experiment: Experiment, mounts: Sequence[Mount], machine: Machine) -> Iterator[Problem]:
    """Yield the volumes of a process that it would miss where nothing can be mounted, and lose what it wrote.

    One that outlives the run, in one that does not: a program that goes there through the outer one writes into that.
    """
    if machine.has_namespace or machine.claims_dir.startswith(f"{machine.run_dir}/"):
        return
    for number, mount in enumerate(mounts):
        for outer in mounts:
            is_inside = mount.at.startswith(outer.at.rstrip("/") + "/") and mount.at.rstrip("/") != outer.at.rstrip("/")
            if is_inside and _ends_with_run(experiment, outer) and not _ends_with_run(experiment, mount):
                what = f'"{mount.at}" lies in "{outer.at}", which ends with the run, and this machine allows no mounts'
                step = f"mount it elsewhere, or allow user namespaces: what is written to {mount.at} could be lost"
                yield Problem(what=what, path=f"mounts[{number}]", next=step)


def _ends_with_run(experiment: Experiment, mount: Mount) -> bool:
    return isinstance(experiment.volumes[mount.volume], (EmptyDirVolume, GitVolume))


def checkouts_of(experiment: Experiment, mounts: Iterable[Mount], pod: str, machine: Machine) -> Iterator[Checkout]:
    """Yield the Git volumes among `mounts`; all processes of the replica `pod` share them."""
    for mount in mounts:
        volume = experiment.volumes[mount.volume]
        if isinstance(volume, GitVolume):
            repository = volume.repository
            if repository.startswith(("./", "../")):
                repository = str(PurePosixPath(machine.spec_dir) / repository)
            folder = f"{machine.run_dir}/volumes/{pod}/{mount.volume}"
            yield Checkout(volume=mount.volume, repository=repository, revision=volume.revision, folder=folder)


def process_secrets(experiment: Experiment, ref: ProcessRef, machine: Machine) -> tuple[Bind, ...]:
    """Return the secrets folder of one process if some secrets are restricted, and its files at other places."""
    is_own = any(secret.only for secret in experiment.secrets)
    folder = f"{machine.run_dir}/files/secrets{f'.{ref.pod}.{ref.process}' if is_own else ''}"
    files = (
        Bind(source=f"{folder}/{key_of(secret)}", target=at.rstrip("/"), read_only=True)
        for secret in experiment.secrets
        if key_of(secret) in machine.secrets and _may_see(secret, ref)
        for at in secret.also_at
    )
    return (*([Bind(source=folder, target=SECRETS_DIR, read_only=True)] if is_own else []), *files)


def _may_see(secret: SecretFile, ref: ProcessRef) -> bool:
    return not secret.only or bool({str(ref), ref.process} & set(secret.only))


def _secret_files(experiment: Experiment, machine: Machine) -> Iterator[File]:
    chosen = {key_of(secret): secret for secret in experiment.secrets if secret.only}
    for key, content in machine.secrets.items():
        if key not in chosen:
            yield File(path=f"files/secrets/{key}", content=content, mode=0o644)
    if chosen:
        for ref, _ in processes_of(experiment):
            for key, content in machine.secrets.items():
                if key not in chosen or _may_see(chosen[key], ref):
                    yield File(path=f"files/secrets.{ref.pod}.{ref.process}/{key}", content=content, mode=0o644)


def _source(volume: AnyVolume, mount: Mount, pod: str, machine: Machine, path: str) -> str | None:
    private = f"{machine.run_dir}/volumes"
    if isinstance(volume, (EmptyDirVolume, GitVolume)):
        return f"{private}/{pod}/{mount.volume}"
    if isinstance(volume, HostPathVolume):
        return volume.path
    if isinstance(volume, DeviceVolume):
        return None if volume.path == mount.at else volume.path
    if isinstance(volume, NfsVolume):
        return f"{machine.claims_dir}/{mount.volume}/{DATA}"
    if isinstance(volume, ClaimVolume):
        return volume.local or f"{machine.claims_dir}/{mount.volume}/{DATA}"
    if isinstance(volume, (SecretVolume, ConfigVolume)) and volume.local:
        return volume.local
    what = f'volume "{mount.volume}" is an object of the cluster'
    raise SpecError([Problem(what=what, path=path, next="give it `local: FOLDER`, whose files stand in for it here")])


def _content(config: ConfigFile) -> bytes:
    if config.base64 is not None:
        return base64.b64decode(config.base64)
    return (config.text or "").encode()


def _mode(text: str | None) -> int:
    return int(text, 8) if text is not None else 0o644


def with_local_paths(process: Process | Step, binds: Sequence[Bind]) -> Process | Step:
    """Replace the targets of `binds` by their sources in command, shell lines, variables and folder of `process`."""
    moves = {bind.target: bind.source for bind in binds}
    if not moves:
        return process

    def words(given: list[str] | None) -> list[str] | None:
        return None if given is None else [_replaced(word, moves) for word in given]

    env = {name: _replaced(value, moves) if isinstance(value, str) else value for name, value in process.env.items()}
    return msgspec.structs.replace(
        process,
        command=words(process.command),
        args=words(process.args),
        cmds=words(process.cmds),
        shell=words(process.shell) if isinstance(process.shell, list) else process.shell,
        env=env,
        cwd=None if process.cwd is None else _replaced(process.cwd, moves),
    )


def relocation_note(binds: Iterable[Bind]) -> tuple[str, ...]:
    """Return a note on volumes that are at other paths than in the pod."""
    moved = {bind.target: bind.source for bind in binds if bind.source != bind.target}
    if not moved:
        return ()
    places = ", ".join(f"{target} is {source}" for target, source in list(moved.items())[:5])
    more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
    return (f"volumes are other folders here, in commands and variables as well: {places}{more}",)


def _replaced(text: str, moves: dict[str, str]) -> str:
    if not any(path in text for path in moves):
        return text
    # The longest first, or a folder would be taken for one above it.
    choices = "|".join(re.escape(path) for path in sorted(moves, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{choices})(?![\w.-])", lambda match: moves[match[0]], text)
