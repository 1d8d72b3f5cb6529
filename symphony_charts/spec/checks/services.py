"""Check services and probes, volumes, mounts and files, and settings of the chart."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.names import FILE_KEY, LABEL_NAME, SERVICE_NAME, address_fault, hint, repository_fault
from symphony_charts.spec.checks.names import object_name_faults
from symphony_charts.spec.checks.pods import ProcessEntry, amount_faults, choice_faults, small_faults
from symphony_charts.spec.model import ChartSettings, Experiment
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
    Probe,
    SecretVolume,
    key_of,
)
from symphony_charts.spec.variable_names import service_variable

# A Service is named `<release>-<service>`, in 63 characters at most.
_SERVICE_LENGTH = 40
_LAST_PORT = 65535
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def network_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    listeners: dict[str, ProcessEntry] = {}
    bound: set[str] = set()
    for entry in entries:
        yield from _listener_faults(entry, listeners)
        bound.update(entry.process.binds)
    for entry in entries:
        yield from _connect_faults(entry, bound, listeners)
        if isinstance(entry.process.ready, Probe):
            yield from _probe_faults(entry.process.ready, entry)
        yield from _overlay_probe_faults(entry)
    yield from _pod_port_faults(entries)
    yield from _variable_faults(listeners)
    yield from _range_faults(experiment, entries)
    exposed = {name for entry in entries for name in entry.process.exposes}
    for name in experiment.expose:
        if name not in exposed:
            next_step = hint(name, exposed, f"add `exposes: {name}` to a process")
            yield Problem(f'no process exposes "{name}"', f"expose.{name}", next_step)


def _listened(entry: ProcessEntry) -> Iterator[tuple[str, str, int | None]]:
    """Yield path, name and fixed port of each service on which a process listens."""
    for verb, services in (("binds", entry.process.binds), ("exposes", entry.process.exposes)):
        for index, (name, port) in enumerate(services.items()):
            yield f"{entry.path}.{verb}[{index}]", name, port


def _listener_faults(entry: ProcessEntry, listeners: dict[str, ProcessEntry]) -> Iterator[Problem]:
    for path, name, port in _listened(entry):
        yield from _name_faults(name, path)
        if port is not None and not 1 <= port <= _LAST_PORT:
            what = f'{port} is not a valid port of "{name}"'
            yield Problem(what, path, f"use 1 to {_LAST_PORT}, or remove it to get a free port")
        other = listeners.setdefault(name, entry)
        if other is not entry:
            what = f'both "{entry.ref}" and "{other.ref}" listen on "{name}"'
            yield Problem(what, path, "use one process with `replicas`, or give each process its own service")
        bound = entry.process.binds.get(name)
        if None not in (bound, port) and bound != port:
            what = f'"{name}" is bound on port {bound} and exposed on port {port}'
            yield Problem(what, path, "set the port in one place: a service has one port")


def _name_faults(name: str, path: str) -> Iterator[Problem]:
    if not SERVICE_NAME.fullmatch(name):
        next_step = "use lower-case letters, digits and dashes; begin with a letter, end with a letter or digit"
        yield Problem(f'"{name}" is not a valid name of a service', path, next_step)
    elif len(name) > _SERVICE_LENGTH:
        what = f'the service "{name}" has {len(name)} characters; at most {_SERVICE_LENGTH} are allowed'
        yield Problem(what, path, "shorten it")


def _connect_faults(entry: ProcessEntry, bound: set[str], listeners: Mapping[str, ProcessEntry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in enumerate(entry.process.connects):
        path = f"{entry.path}.connects[{index}]"
        if name in seen:
            yield Problem(f'"{name}" appears twice in `connects`', path, "remove one of them")
        elif name not in bound:
            meant = hint(name, bound)
            next_step = f"add `binds: {name}` to a process, or correct the name{f' ({meant})' if meant else ''}"
            if name in listeners:
                next_step = f'add `binds: {name}` to "{listeners[name].ref}", which only exposes it'
            yield Problem(f'process "{entry.ref}" connects to "{name}", but no process binds it', path, next_step)
        seen.add(name)


def _pod_port_faults(entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield ports on which two services of one pod would listen."""
    taken: dict[tuple[str, int], tuple[str, ProcessEntry]] = {}
    for entry in entries:
        for path, name, port in _listened(entry):
            other, where = taken.setdefault((entry.ref.pod, port), (name, entry)) if port is not None else (name, entry)
            if other != name:
                what = f'port {port} of pod "{entry.ref.pod}" belongs to both "{name}" and "{other}"'
                yield Problem(what, path, f'"{where.ref}" uses it: set another port, or none')


def _variable_faults(listeners: Mapping[str, ProcessEntry]) -> Iterator[Problem]:
    """Yield services ``x-bind`` whose HOST variable is the BIND_HOST variable of service ``x``."""
    for name, entry in listeners.items():
        if name.endswith("-bind") and name.removesuffix("-bind") in listeners:
            other = name.removesuffix("-bind")
            what = f'the services "{other}" and "{name}" would share a variable, {service_variable(name, "HOST")}'
            yield Problem(what, entry.path, "rename one of them")


def _range_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    low, high = experiment.port_range
    if not 1 <= low <= high <= _LAST_PORT:
        next_step = f"give the lowest and the highest port, 1 to {_LAST_PORT}"
        yield Problem(f"{low} to {high} is not a range of ports", "port_range", next_step)
        return
    listened = [(name, port) for entry in entries for _, name, port in _listened(entry)]
    ports = {name: port for name, port in listened if port is not None}
    fixed = set(ports.values())
    needed = len({name for name, _ in listened} - ports.keys())
    free = high - low + 1 - sum(low <= port <= high for port in fixed)
    if needed > free:
        what = f"{needed} services need a port, and only {free} are free in {low} to {high}"
        yield Problem(what, "port_range", "widen `port_range`")


def _probe_faults(probe: Probe, entry: ProcessEntry) -> Iterator[Problem]:
    path = f"{entry.path}.ready"
    yield from choice_faults(probe, ("tcp", "http", "exec"), path, "a probe must have exactly one kind")
    for kind in ("tcp", "http"):
        asked = getattr(probe, kind)
        if asked is not None:
            yield from _probe_port_faults(asked.port, entry, f"{path}.{kind}.port")
    if probe.exec is not None and not probe.exec.command:
        yield Problem("the probe's command is empty", f"{path}.exec.command", "set the command to run")
    if probe.http is not None and not probe.http.path.startswith("/"):
        yield Problem(f'"{probe.http.path}" is not a path of a URL', f"{path}.http.path", "begin it with /")
    smallest = {"initial_delay": 0, "period": 1, "timeout": 1, "failures": 1, "successes": 1}
    yield from small_faults(probe, smallest, path)


def _overlay_probe_faults(entry: ProcessEntry) -> Iterator[Problem]:
    """Yield probe ports in overlays that are neither numbers nor names of the process's ports."""
    overlay = entry.process.container_overlay
    known = [str(port.get("name")) for port in maps(overlay, "ports")]
    for probe in _PROBES:
        for handler in ("tcpSocket", "httpGet"):
            port = sub(overlay, probe, handler).get("port")
            if isinstance(port, str) and not port.isdecimal() and port not in known:
                yield from _probe_port_faults(port, entry, f"{entry.path}.container_overlay.{probe}.{handler}.port")


def _probe_port_faults(port: int | str, entry: ProcessEntry, path: str) -> Iterator[Problem]:
    if isinstance(port, int):
        if not 1 <= port <= _LAST_PORT:
            yield Problem(f"{port} is not a valid port", path, f"use 1 to {_LAST_PORT}")
        return
    own = [*entry.process.binds, *entry.process.exposes]
    if port not in own:
        next_step = hint(port, own, "use a number, or a service of this process")
        yield Problem(f'process "{entry.ref}" does not listen on a service "{port}"', path, next_step)


_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)
_PERM = re.compile(r"[rwm]{1,3}")
_HOST_PATH_KINDS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")


def storage_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of volumes, mounts, configs and secrets."""
    for name, volume in experiment.volumes.items():
        yield from _volume_faults(volume, f"volumes.{name}")
    ours = {CONFIG_DIR} if experiment.configs else set()
    ours |= {SECRETS_DIR} if experiment.secrets else set()
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
            next_step = hint(mount.volume, volumes, "declare it under `volumes:`, or describe it in the mount")
            yield Problem(f'unknown volume "{mount.volume}"', f"{here}.volume", next_step)
        yield from _place_faults(mount.at, f"{here}.at", seen, ours)
        sub_path = PurePosixPath(mount.sub_path or "")
        if sub_path.is_absolute() or ".." in sub_path.parts:
            next_step = "use a path relative to the volume, without .."
            yield Problem(f'"{mount.sub_path}" leads out of the volume', f"{here}.sub_path", next_step)


def _place_faults(place: str, path: str, seen: set[str], ours: Collection[str] = ()) -> Iterator[Problem]:
    """Yield faults of the mount path `place` and add it to `seen`."""
    at = place.rstrip("/")
    if not _is_absolute(place) or ":" in place:
        yield Problem(f'"{place}" is not an absolute path', path, "write the whole path, from /, without .. and colons")
    elif not at:
        yield Problem("a volume cannot be the root folder of a machine", path, "mount it at a folder below /")
    elif at in seen:
        owner = " of symph" if at in ours else ""
        yield Problem(f'"{at}" is already a mount point{owner}', path, "choose another path")
    seen.add(at)


def _volume_faults(volume: AnyVolume, path: str) -> Iterator[Problem]:
    match volume:
        case NfsVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if not volume.server:
                yield Problem("the server has no name", f"{path}.server", "name the host that exports it")
        case HostPathVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if volume.kind not in _HOST_PATH_KINDS:
                next_step = hint(volume.kind, _HOST_PATH_KINDS, f"use one of: {', '.join(_HOST_PATH_KINDS[1:])}")
                yield Problem(f'"{volume.kind}" is not a kind of host path', f"{path}.kind", next_step)
        case DeviceVolume():
            yield from _path_faults(volume.path, f"{path}.path")
            if not _PERM.fullmatch(volume.perm):
                yield Problem(f'"{volume.perm}" is not a permission', f"{path}.perm", "use letters of rwm")
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
            if fault := repository_fault(volume.repository, f"{path}.repository"):
                yield fault
            if volume.revision.startswith("-"):
                yield Problem("a revision cannot begin with a dash", f"{path}.revision", "give a branch, tag or commit")


def _config_faults(config: ConfigFile, path: str) -> Iterator[Problem]:
    yield from choice_faults(config, ("text", "base64", "file"), path, "the content needs exactly one source")
    if config.base64 is not None:
        try:
            base64.b64decode(config.base64, validate=True)
        except binascii.Error:
            yield Problem("the content is not base64", f"{path}.base64", "encode the file again, or use `file:`")
    yield from _mode_faults(config.mode, f"{path}.mode")


def _secret_faults(experiment: Experiment) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    places: set[str] = set()
    source = experiment.secret_source
    if source.source == "external" and not source.store:
        what = "external secrets need the name of a SecretStore"
        yield Problem(what, "secret_source.store", "set it; for a ClusterSecretStore, also is_cluster_store: true")
    for index, secret in enumerate(experiment.secrets):
        key = key_of(secret)
        yield from _key_faults(key, f"secrets[{index}]", "key of a Secret")
        first = seen.setdefault(key, index)
        if first != index:
            what = f'"{key}" would be the key of two files, "{experiment.secrets[first].file}" and "{secret.file}"'
            yield Problem(what, f"secrets[{index}]", "give one of them another `key:`")
        for number, at in enumerate(secret.also_at):
            path = f"secrets[{index}].also_at[{number}]"
            yield from _place_faults(at, path, places)
            if any(f"{at.rstrip('/')}/".startswith(f"{folder}/") for folder in (CONFIG_DIR, SECRETS_DIR)):
                what = f'"{at}" is in a folder that symph uses'
                yield Problem(what, path, "choose another path, or use the file at its default path")


def _key_faults(name: str, path: str, what: str) -> Iterator[Problem]:
    if not FILE_KEY.fullmatch(name) or name == "." or name.startswith(".."):
        next_step = "use at most 253 letters, digits, dots, dashes and underscores"
        yield Problem(f'"{name}" is not a valid {what}', path, next_step)


def _mode_faults(mode: str | None, path: str) -> Iterator[Problem]:
    if mode is not None and not _MODE.fullmatch(mode):
        yield Problem(f'"{mode}" is not a file mode', path, 'write it in octal digits, as in "0644"')


def _path_faults(path: str, where: str) -> Iterator[Problem]:
    if not _is_absolute(path):
        yield Problem(f'"{path}" is not an absolute path', where, "write the whole path, from /, without ..")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in PurePosixPath(path).parts


_ADDRESS = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_MAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def chart_faults(experiment: Experiment, _: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield `chart` settings that helm, chart-testing, Artifact Hub or a label value would refuse."""
    about = experiment.chart
    version = about.app_version
    if version is not None and not LABEL_NAME.fullmatch(version.replace("+", "_")):
        next_step = "use at most 63 letters, digits, dashes, dots, underscores and plus signs"
        yield Problem(f'"{version}" is not a valid version', "chart.app_version", next_step)
    for path, address in _addresses(about):
        if not _ADDRESS.fullmatch(address):
            yield Problem(f'"{address}" is not an address', path, "begin with https://")
        elif (fault := address_fault(address, path)) is not None:
            yield fault
    for number, maintainer in enumerate(about.maintainers):
        path = f"chart.maintainers[{number}]"
        if not maintainer.name.strip():
            yield Problem("a maintainer has no name", f"{path}.name", "give it")
        if maintainer.email is not None and not _MAIL.fullmatch(maintainer.email):
            yield Problem(f'"{maintainer.email}" is not an email address', f"{path}.email", "write name@example.org")


def _addresses(about: ChartSettings) -> Iterator[tuple[str, str]]:
    for field, address in (("home", about.home), ("icon", about.icon)):
        if address is not None:
            yield f"chart.{field}", address
    yield from ((f"chart.sources[{number}]", address) for number, address in enumerate(about.sources))
    for number, maintainer in enumerate(about.maintainers):
        if maintainer.url is not None:
            yield f"chart.maintainers[{number}].url", maintainer.url
