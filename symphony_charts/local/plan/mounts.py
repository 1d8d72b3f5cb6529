"""Files and volumes of a run: their sources here, and the mounts shared by all or made by each process.

A process has its own mount namespace only if it sees something that others do not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from symphony_charts.errors import Problem, SpecError
from symphony_charts.local.plan.records import Bind, Checkout, File, LocalPlan, Machine, PlannedProcess
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import ProcessRef, processes_of
from symphony_charts.spec.sources import (
    CONFIG_DIR,
    SECRETS_DIR,
    AnyVolume,
    ClaimVolume,
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

# The part of a persistent volume's folder that processes see; our marker is next to it.
DATA = "data"


class Layout(Struct, frozen=True, kw_only=True):
    """The files in the run's folder, and the paths at which all processes see them."""

    files: tuple[File, ...] = ()
    binds: tuple[Bind, ...] = ()
    notes: tuple[str, ...] = ()


def config_dir(machine: Machine) -> str:
    """Return the folder of the experiment's configuration files, as processes see it."""
    return CONFIG_DIR if machine.has_namespace else f"{machine.run_dir}/files/config"


def secrets_dir(experiment: Experiment, ref: ProcessRef, machine: Machine) -> str:
    """Return the folder of the secrets of a process, as it sees it."""
    return SECRETS_DIR if machine.has_namespace else f"{machine.run_dir}/{_secrets_folder(experiment, ref)}"


def _secrets_folder(experiment: Experiment, ref: ProcessRef) -> str:
    """Return the folder, in that of the run, with the secrets of a process: its own if some secrets are restricted."""
    is_own = any(secret.only for secret in experiment.secrets)
    return f"files/secrets.{ref.pod}.{ref.process}" if is_own else "files/secrets"


def layout(experiment: Experiment, machine: Machine) -> Layout:
    """Return the configuration and secret files of `experiment`, at the pod's paths if private mounts work."""
    files = [
        File(
            path=f"files/config/{name}",
            content=(config.text or "").encode() if config.base64 is None else base64.b64decode(config.base64),
            mode=0o644 if config.mode is None else int(config.mode, 8),
        )
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
            notes.append(f"this machine has no private mounts: {target} is {source} (SYMPH_{name.upper()}_DIR)")
    return Layout(files=tuple(files), binds=tuple(binds), notes=tuple(notes))


def mount_binds(experiment: Experiment, mounts: Iterable[Mount], pod: str, machine: Machine) -> Iterator[Bind]:
    """Yield the volumes of one process of the replica `pod`. Raises SpecError for one that only a cluster has."""
    for number, mount in enumerate(mounts):
        sub_path = ""
        if mount.local is not None:
            source: str | None = str(PurePosixPath(machine.spec_dir) / mount.local)
        else:
            source = _source(experiment.volumes[mount.volume], mount, pod, machine, f"mounts[{number}]")
            sub_path = (mount.sub_path or "").strip("/")
        if source is not None:
            source = f"{source}/{sub_path}" if sub_path else source
            target = mount.at.rstrip("/") or "/"
            yield Bind(source=source, target=target, read_only=mount.read_only, sub_path=sub_path)


def created_host_paths(experiment: Experiment) -> set[str]:
    """Return the host paths to create if they are missing."""
    paths = (volume for volume in experiment.volumes.values() if isinstance(volume, HostPathVolume))
    return {volume.path for volume in paths if volume.kind == "DirectoryOrCreate"}


def lost_writes(experiment: Experiment, mounts: Sequence[Mount], machine: Machine) -> Iterator[Problem]:
    """Yield persistent volumes inside of temporary ones: without mounts, programs would write into the outer ones."""
    if machine.has_namespace or machine.claims_dir.startswith(f"{machine.run_dir}/"):
        return
    for number, mount in enumerate(mounts):
        for outer in mounts:
            is_inside = mount.at.startswith(outer.at.rstrip("/") + "/") and mount.at.rstrip("/") != outer.at.rstrip("/")
            if is_inside and _ends_with_run(experiment, outer) and not _ends_with_run(experiment, mount):
                what = f'"{mount.at}" lies in "{outer.at}", which ends with the run; this machine has no private mounts'
                step = f"mount it at another path, or allow user namespaces; otherwise files in {mount.at} may be lost"
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
    """Return the secrets folder of one process if it has its own, and its files at other places."""
    folder = f"{machine.run_dir}/{_secrets_folder(experiment, ref)}"
    is_own = any(secret.only for secret in experiment.secrets)
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
    """Yield the secrets that all may see, and all that each process may see if some are restricted."""
    secrets = [secret for secret in experiment.secrets if key_of(secret) in machine.secrets]
    places = [("files/secrets", secret) for secret in secrets if not secret.only]
    if len(places) < len(secrets):
        for ref, _ in processes_of(experiment):
            folder = _secrets_folder(experiment, ref)
            places += [(folder, secret) for secret in secrets if _may_see(secret, ref)]
    for folder, secret in places:
        yield File(path=f"{folder}/{key_of(secret)}", content=machine.secrets[key_of(secret)], mode=0o644)


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
    what = f'volume "{mount.volume}" exists only on a cluster'
    step = "set `local: FOLDER`, a folder of this machine to use instead"
    raise SpecError([Problem(what=what, path=path, next=step)])


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


def relocation_note(planned: Sequence[PlannedProcess], machine: Machine) -> tuple[str, ...]:
    """Return a note on volumes that are at other paths than in the pod."""
    binds = [bind for process in planned for bind in process.binds if bind.target != SECRETS_DIR]
    moved = {bind.target: bind.source for bind in binds if bind.source != bind.target}
    if machine.has_namespace or not moved:
        return ()
    places = ", ".join(f"{target} is {source}" for target, source in list(moved.items())[:5])
    more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
    return (f"this machine has no private mounts, so commands and variables use other paths: {places}{more}",)


def _replaced(text: str, moves: dict[str, str]) -> str:
    if not any(path in text for path in moves):
        return text
    # The longest first, so that a folder does not match before a path inside of it.
    choices = "|".join(re.escape(path) for path in sorted(moves, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{choices})(?![\w.-])", lambda match: moves[match[0]], text)


# tmux itself needs these paths and starts its programs from them: a volume there is mounted per process.
_OF_TMUX = ("/bin", "/dev", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var/run")  # noqa: S108


class MountSets(Struct, frozen=True, kw_only=True):
    """`shared` is mounted for the whole run, `own` by each slot itself."""

    shared: tuple[Bind, ...]
    own: Mapping[int, tuple[Bind, ...]]


def mount_sets(plan: LocalPlan, run_dir: str, socket_dir: str) -> MountSets:
    """Divide the mounts of `plan` between the run, with files in `run_dir` and `socket_dir`, and its processes."""
    if not plan.has_namespace:
        return MountSets(shared=(), own={})
    needed = (run_dir, socket_dir, *_OF_TMUX)
    sees = [process.binds for process in plan.processes]
    common = [bind for bind in (sees[0] if sees else ()) if all(bind in binds for binds in sees)]
    while blocked := [bind for bind in common if _is_blocked(bind, common, sees, needed)]:
        common = [bind for bind in common if bind not in blocked]
    replaced = {bind.target for bind in common}
    shared = (*(bind for bind in plan.binds if bind.target not in replaced), *common)
    own = {process.slot: _own(process, shared) for process in plan.processes}
    return MountSets(shared=shared, own={slot: binds for slot, binds in own.items() if binds})


def _is_blocked(bind: Bind, common: Sequence[Bind], sees: Sequence[Sequence[Bind]], needed: Sequence[str]) -> bool:
    """Return True if `bind` would hide paths that tmux or other volumes need, or lies in a volume of some processes."""
    own = [other for binds in sees for other in binds if other not in common]
    if any(_holds(bind, path) for path in needed):
        return True
    return any(_holds(other, bind.target) or _holds(bind, other.source) for other in own)


def _own(process: PlannedProcess, shared: Sequence[Bind]) -> tuple[Bind, ...]:
    own = [bind for bind in process.binds if bind not in shared]
    targets = {bind.target for bind in own}
    # A process's own volume would hide shared mounts below it: mount those once more.
    kept = [bind for bind in shared if bind.target not in targets]
    hidden = [bind for bind in kept if any(_holds(other, bind.target) for other in own)]
    return tuple(sorted([*hidden, *own], key=lambda bind: bind.target.count("/")))


def is_for_mount(binds: Sequence[Bind], run_dir: str) -> bool:
    """Return True if mount(8) can mount `binds`, which is much faster than our own helper.

    It cannot reach a source that is covered, keep a path inside of a volume, or make mounts below a source read-only.
    """
    return not any(
        bind.sub_path
        or (bind.read_only and not bind.source.startswith(f"{run_dir}/"))
        or any(_holds(other, bind.source) or (other != bind and _holds(other, bind.target)) for other in binds)
        for bind in binds
    )


def helper_plan(
    targets: Sequence[Bind],
    run_dir: str,
    *,
    journal: str | None,
    prepare: Sequence[Sequence[Bind]] = (),
    paths: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the input of `local.mounts.mounter`; `paths` maps targets to their places in the experiment."""

    def row(bind: Bind) -> dict[str, object]:
        place = {"source": bind.volume, "sub_path": bind.sub_path, "at": bind.target}
        return {**place, "read_only": bind.read_only, "path": paths.get(bind.target, "")}

    return {
        "scratch": f"{run_dir}/scratch",
        "journal": journal,
        "targets": [row(bind) for bind in targets],
        "prepare": [[row(bind) for bind in binds] for binds in prepare],
    }


def _holds(bind: Bind, path: str) -> bool:
    return path == bind.target or path.startswith(f"{bind.target.rstrip('/')}/")
