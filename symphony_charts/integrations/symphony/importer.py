"""Read experiments that Symphony dumped, and dump experiments as it does.

Each of its four backends wrote its own fields: kube (`container_yml`, `pod_yml`), tmux (`cmds`, `start_dir`),
subproc (`cmd`), docker (`service_yml`). Source: SurrealAI/symphony 0.10, symphony/*/{experiment,process}.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import sanitize
from symphony_charts.importers.input_file import Source, from_data
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.integrations.common.fields import Fields, UniqueNames, Volumes
from symphony_charts.integrations.common.pods import PodVolumes, read_process, read_settings
from symphony_charts.spec.builder import experiment as builder
from symphony_charts.spec.data import to_data, to_record
from symphony_charts.spec.model import Experiment

__all__ = [
    "SHELL",
    "as_load_balancers",
    "dump_experiment",
    "dump_group",
    "dump_process",
    "import_legacy",
    "read_dumped_process",
    "read_experiment",
    "read_group",
    "serving",
]


# The shell that ran Symphony's lines; bash continues after a line that fails.
SHELL = ["bash", "-c"]

_RANGE = re.compile(r"(\d{1,5})-(\d{1,5})", re.ASCII)


def import_legacy(source: Source) -> Imported:
    """Return the experiment of a Symphony dump, or of a dump that a launcher made with this package.

    Raises SpecError with every fault.
    """
    log = Log()
    if len(source.documents) > 1:
        log.note(source.prefix(1), "symph reads only the first document")
    dump = _unwrapped(source.documents[0].data)
    root = Fields(dump, source.prefix(0), log)
    if isinstance(dump, dict) and not _is_symphonys(dump) and not {"processes", "groups"}.isdisjoint(dump):
        _check_addresses(root, log)
        log.changed(root.path, "this is already an experiment file of symph", "use it directly: symph validate FILE")
        return build({key: root.get(key) for key in root.keys() if key != "ab"}, log, {})  # noqa: SIM118
    if "processes" not in root and "process_groups" not in root:
        log.fault(
            root.path,
            "this is not a dump of a Symphony experiment",
            "give a file with `process_groups` and `processes`",
        )
    reader = _Reader(root, log)
    data = reader.read()
    data = {key: value for key, value in data.items() if value not in (None, {}, [])}
    return build(data, log, reader.origins)


def _is_symphonys(dump: Mapping[str, object]) -> bool:
    """Return True if `dump` has Symphony's form: lists of groups and processes, where experiment files have maps."""
    return "process_groups" in dump or isinstance(dump.get("processes"), list)


def _unwrapped(value: object) -> object:
    """Return `value` without the wrappers of attribute dictionaries: PyYAML writes their items below `dictitems`."""
    if isinstance(value, dict):
        if "dictitems" in value and set(value) <= {"dictitems", "state", "args"}:
            return _unwrapped(value["dictitems"])
        return {key: _unwrapped(item) for key, item in value.items()}
    return [_unwrapped(item) for item in value] if isinstance(value, list) else value


class _Reader:
    """Read one dump; `origins` maps the experiment's paths to the dump's."""

    def __init__(self, root: Fields, log: Log) -> None:
        self._root = root
        self._log = log
        self._volumes = Volumes()
        self.origins: dict[str, str] = {"name": root.at("name")}

    def read(self) -> dict[str, object]:
        root = self._root
        name = root.required_text("name", "experiment", "give the experiment a name")
        groups: dict[str, object] = {}
        processes: dict[str, object] = {}
        names = UniqueNames(self._log)
        for group in root.maps("process_groups"):
            self._read_group(group, names, groups)
        for process in root.maps("processes"):
            key = names.give(process.required_text("name", "process"), process.at("name"))
            self.origins[f"processes.{key}"] = process.path
            processes[key] = serving(self._read_process(process) | self._lone_pod(process))
            process.note_unread("of a process is not carried over")
        _check_addresses(root, self._log)
        secrets = [{"file": file} for file in root.texts("secrets")]
        data: dict[str, object] = {
            "name": UniqueNames.label(name),
            "groups": groups,
            "processes": processes,
            "volumes": self._volumes.declared,
            "secrets": secrets,
            "port_range": self._port_range(),
            "local": self._local(),
        }
        if not any("cmd" in process for process in root.maps("processes")):
            # A failed process ends no other, except in the subproc backend, which killed them all.
            data["on_failure"] = "continue"
        pods = [*groups.values(), {"processes": processes}]
        members = [process for pod in pods for process in sub(pod, "processes").values()]
        if exposed := [name for process in members for name in sub(process, "exposes")]:
            data["expose"] = as_load_balancers(exposed, {})
        root.note_unread("of an experiment is not carried over")
        return data

    def _read_group(self, group: Fields, names: UniqueNames, groups: dict[str, object]) -> None:
        key = names.give(group.required_text("name", "group"), group.at("name"))
        self.origins[f"groups.{key}"] = group.path
        preamble, cwd = group.texts("preamble_cmds"), _folder(group)
        inner: dict[str, object] = {}
        members = UniqueNames(self._log)
        for process in group.maps("processes"):
            member = members.give(process.required_text("name", "process"), process.at("name"))
            self.origins[f"groups.{key}.processes.{member}"] = process.path
            inner[member] = self._read_process(process, preamble, cwd)
            process.skip("pod_yml")
            process.note_unread("of a process is not carried over")
        settings = _read_pod_settings(group.map("pod_yml"), self._volumes) if "pod_yml" in group else {}
        groups[key] = serving({"processes": inner, **settings})
        group.skip("group_name")
        group.note_unread("of a group is not carried over")

    def _read_process(
        self, process: Fields, preamble: list[str] | None = None, cwd: str | None = None
    ) -> dict[str, object]:
        process.skip("standalone")
        data: dict[str, Any] = {
            "image": process.text("container_image"),
            "binds": _ports(process, "binded_services"),
            "connects": list(_ports(process, "connected_services")),
            "exposes": _ports(process, "exposed_services"),
            "preamble": preamble or [],
            "cwd": _folder(process) or cwd,
        }
        if "cmds" in process:
            data["cmds"] = process.texts("cmds")
        if "cmd" in process:
            data["cmds"] = process.texts("cmd")
        if data.get("cmds"):
            data["shell"] = SHELL
        if "container_yml" in process:
            container_yml = process.map("container_yml")
            _report_ports(container_yml.map("data"), {*data["binds"].values(), *data["exposes"].values()})
            data |= _read_container(container_yml, self._volumes)
        if "service_yml" in process:
            data |= _compose_service(process.map("service_yml"))
        return {key: value for key, value in data.items() if value not in (None, {}, [])}

    def _lone_pod(self, process: Fields) -> dict[str, object]:
        return _read_pod_settings(process.map("pod_yml"), self._volumes) if "pod_yml" in process else {}

    def _port_range(self) -> list[int] | None:
        """Return the smallest range with all ports; Symphony's own text form lost numbers after each gap."""
        text = self._root.text("port_range")
        if text is None:
            return None
        numbers = [int(number) for pair in _RANGE.findall(text) for number in pair]
        if not numbers or _RANGE.sub("", text).strip(", ") or not 0 < min(numbers) <= max(numbers) < 65536:
            what = f"{show(text)} is not a range of ports; the default is used"
            self._log.note(self._root.at("port_range"), what)
            return None
        if len(numbers) > 2:
            what = f"{show(text)} has gaps; the range is now {min(numbers)} to {max(numbers)}"
            self._log.note(self._root.at("port_range"), what)
        return [min(numbers), max(numbers)]

    def _local(self) -> dict[str, object]:
        local: dict[str, object] = {"preamble": self._root.texts("preamble_cmds"), "cwd": _folder(self._root)}
        # Symphony starts everything at once; its programs dial until a server listens.
        local["start"] = "together"
        return {key: value for key, value in local.items() if value not in (None, [])}


def as_load_balancers(services: Iterable[str], expose: Mapping[str, object]) -> dict[str, object]:
    """Return `expose` with settings of all `services`: those without a type are load balancers, as in Symphony."""
    settings = dict(expose)
    for name in services:
        own = settings.get(name)
        if own is None or isinstance(own, Mapping):
            settings[name] = {"type": "LoadBalancer", **(own or {})}
    return settings


def serving(pod: dict[str, object]) -> dict[str, object]:
    """Return a lone process or a group, as a service if it has `restartPolicy: Always`, Symphony's setting for servers.

    Other processes do not run forever: they are restarted only until the experiment is over.
    """
    overlay = pod.get("pod_overlay")
    spec = overlay.get("spec") if isinstance(overlay, dict) else None
    said = spec.get("restartPolicy", pod.get("restart")) if isinstance(spec, dict) else pod.get("restart")
    if said not in ("always", "Always"):
        return pod
    inner = pod.get("processes")
    if not isinstance(inner, dict):
        return {"lifecycle": "service", **pod}
    return {**pod, "processes": {name: {"lifecycle": "service", **process} for name, process in inner.items()}}


def _folder(fields: Fields) -> str | None:
    """Return the start folder; None for Symphony's default."""
    folder = fields.text("start_dir")
    return None if folder in (None, ".", "") else folder


def _ports(process: Fields, key: str) -> dict[str, int | None]:
    """Return services as Symphony dumps them: a map of name to port or null, or a list of names."""
    value = process.get(key)
    if isinstance(value, list):
        return dict.fromkeys(process.texts(key))
    inner = process.map(key)
    return {sanitize(name): inner.integer(name, 1, 65535) for name in inner.keys()}  # noqa: SIM118 - not a dict


def _compose_service(service: Fields) -> dict[str, object]:
    """Return the fields that the docker backend kept of a compose service: image, environment, host name."""
    data = service.map("data") if "data" in service else service
    fields: dict[str, object] = {}
    if (image := data.text("image")) is not None:
        fields["image"] = image
    value = data.get("environment")
    if isinstance(value, list):
        fields["env"] = dict(text.split("=", 1) for text in data.texts("environment") if "=" in text)
    elif value is not None:
        fields["env"] = data.text_map("environment")
    service.skip("name")
    data.skip("networks")
    data.note_unread("of a docker service is not carried over")
    return fields


def _check_addresses(root: Fields, log: Log) -> None:
    """Note the ports of the last run in the address book; ports are assigned again and may differ."""
    book = root.map("ab")
    pinned = []
    for name in book.keys():  # noqa: SIM118 - not a dict
        entry = book.map(name)
        entry.skip("host")
        port = entry.integer("port", 1, 65535)
        entry.note_unread("of an address is not carried over")
        pinned += [f"{name} {port}"] if port is not None else []
    if pinned:
        what = (
            f"ports of the last run ({', '.join(pinned)}) are not fixed; symph chooses ports again, in the same order"
        )
        log.changed(book.path, what, "to fix a port: `binds: {service: port}`")


_SECRETS = "symph-default-secret"
_OWN_ENV = ("SYMPH_", "SYMPHONY_")


def _report_ports(container: Fields, bound: set[object]) -> None:
    """Report the ports that the container declares, unless its process binds or exposes all of them."""
    ports = container.get("ports")
    items = ports if isinstance(ports, list) else []
    if not all(
        isinstance(port, dict) and port.keys() == {"containerPort"} and port["containerPort"] in bound for port in items
    ):
        container.drop("ports", "the container's own `ports` are not carried over", "add them to `binds`")


def _read_container(container_yml: Fields, volumes: Volumes) -> dict[str, object]:
    """Return a process from its `container_yml`: `data` is the container, `mounted_volumes` are Symphony's records."""
    data = container_yml.map("data")
    available = PodVolumes(volumes)
    for record in container_yml.maps("mounted_volumes"):
        _declare(record, available)
    if "volumeMounts" in data:  # every process mounts the experiment's Secret anyway
        mounts = data.get("volumeMounts")
        for mount in mounts if isinstance(mounts, list) else []:
            name = mount.get("name") if isinstance(mount, dict) else None
            if isinstance(name, str) and name == _SECRETS:
                available.names.setdefault(name, "")
    process = read_process(data, available)
    held = process.get("mounts")
    if isinstance(held, list):
        process["mounts"] = [mount for mount in held if isinstance(mount, dict) and mount["volume"]]
    env = process.get("env")
    if isinstance(env, dict):
        process["env"] = {name: value for name, value in env.items() if not name.startswith(_OWN_ENV)}
    container_yml.note_unread("of a container is not carried over")
    return {key: value for key, value in process.items() if value not in (None, {}, [])}


def _read_pod_settings(pod_yml: Fields, volumes: Volumes) -> dict[str, object]:
    data = pod_yml.map("data") if "data" in pod_yml else pod_yml
    data.skip("apiVersion", "kind", "status")
    metadata, spec = data.map("metadata"), data.map("spec")
    settings: dict[str, object] = {}
    labels = {key: value for key, value in metadata.text_map("labels").items() if not _is_own(key)}
    if labels:
        settings["labels"] = labels
    if annotations := metadata.text_map("annotations"):
        settings["annotations"] = annotations
    metadata.skip("name", "namespace")
    metadata.note_unread("of a pod's metadata is not carried over")
    spec.skip("containers")
    for volume in spec.maps("volumes"):
        if UniqueNames.label(volume.text("name") or "") in volumes.declared or volume.text("name") == _SECRETS:
            volume.skip(*volume.keys())  # already read with the container that mounts it
        else:
            volume.log.lost(volume.path, "no record of Symphony mounts this volume of the pod; it is not carried over")
    if (policy := spec.text("restartPolicy")) is not None:
        settings["restart"] = {"Always": "always", "OnFailure": "on-failure", "Never": "never"}.get(policy)
    read_settings(spec, settings, PodVolumes(volumes))
    pod_yml.skip("mounted_volumes")
    data.note_unread("of a pod is not carried over")
    return {key: value for key, value in settings.items() if value is not None}


def _is_own(label: str) -> bool:
    """Return True for labels that Symphony computed: the pod's name, and one for each service."""
    return label == "symphony_pg" or label.startswith("service-")


def _declare(record: Fields, available: PodVolumes) -> None:
    kind = record.text("type") or ""
    name = record.required_text("name", "volume")
    content: dict[str, object] | None = None
    if kind == "KubeNFSVolume":
        content = {
            "type": "nfs",
            "server": record.required_text("server", "nfs"),
            "path": record.required_text("path", "/"),
        }
    elif kind == "KubeHostPathVolume":
        content = {"type": "host_path", "path": record.required_text("path", "/")}
        if hostpath_type := record.text("hostpath_type"):
            content["kind"] = hostpath_type
    elif kind == "KubeSecretVolume":
        content = {"type": "secret", "secret": record.required_text("secret_name", "secret")}
        if (mode := record.integer("defaultMode", 0, 0o777)) is not None:
            content["mode"] = f"0{mode:o}"
    elif kind == "KubeGitVolume":
        content = {"type": "git", "repository": record.required_text("repository", "")}
        if revision := record.text("revision"):
            content["revision"] = revision
    elif kind == "KubeEmptyDirVolume":
        content = {"type": "empty_dir", **({"memory": True} if record.flag("use_memory") else {})}
    if content is None:
        record.log.fault(
            record.at("type"), f"{show(kind)} is not a volume of Symphony", "use a class such as KubeNFSVolume"
        )
        return
    record.note_unread("of a volume is not carried over")
    if content.get("type") == "secret" and content.get("secret") == _SECRETS:
        available.names[name] = ""
        return
    available.names[name] = available.declared.declare(UniqueNames.label(name), content)


# The tmux backend dumps Symphony's form if that form holds all settings. Every other dump has the form of this
# package's experiment files, with the addresses of an experiment under `ab`.

Data = dict[str, Any]
_USUAL_RANGE = ("port_range", "7000-8999")


def dump_experiment(exp: builder.ExperimentSpec, backend: str, addresses: Mapping[str, Mapping[str, object]]) -> Data:
    """Return the experiment as `backend` dumps it, with the address book under `ab`."""
    experiment = exp.finish()
    book = {name: dict(entry) for name, entry in addresses.items()}
    low, high = experiment.port_range
    data: Data = {
        "process_groups": [_symphonys_group(group) for group in exp.list_process_groups()],
        "processes": [_symphonys_process(process) for process in exp.list_processes()],
        "name": exp.name,
        "ab": book,
        "port_range": f"{low}-{high}",
        "start_dir": experiment.local.cwd or ".",
        "preamble_cmds": list(experiment.local.preamble),
    }
    if backend == "tmux" and _holds(data, to_data(experiment)):
        return data
    return {**to_data(experiment), "ab": book}


def dump_group(group: builder.ProcessGroupSpec, backend: str) -> Data:
    """Return a group as `backend` dumps it."""
    data, own = _symphonys_group(group), group.to_data()
    if backend == "tmux" and _holds({"process_groups": [data]}, {"groups": {group.name: own}}):
        return data
    return {"name": group.name, **own}


def dump_process(process: builder.ProcessSpec, backend: str) -> Data:
    """Return a process as `backend` dumps it."""
    data, own = _symphonys_process(process), process.to_data()
    if backend == "tmux" and _holds({"processes": [data]}, {"processes": {process.name: own}}):
        return data
    return {"name": process.name, "standalone": process.standalone, **own}


def read_experiment(data: Mapping[str, object]) -> Experiment:
    """Return the experiment of a dump in Symphony's or this package's form. Raises SpecError."""
    plain = {key: value for key, value in data.items() if key != "ab"}
    if not _is_symphonys(plain):
        return to_record(plain)
    # The address book is computed again, and the usual range is the default.
    symphonys = {key: value for key, value in plain.items() if (key, value) != _USUAL_RANGE}
    return import_legacy(from_data(symphonys, str(data.get("name", "dump")))).experiment


def read_dumped_process(data: Mapping[str, object]) -> tuple[str, Data]:
    """Return the name and the fields of a process that was dumped by itself."""
    if "binded_services" in data:
        ((name, fields),) = _alone(processes=[dict(data)])["processes"].items()
        return name, fields
    return str(data["name"]), {key: value for key, value in data.items() if key not in ("name", "standalone")}


def read_group(data: Mapping[str, object]) -> tuple[str, Data, Data]:
    """Return the name of a group that was dumped by itself, the fields of its processes, and its own fields."""
    if isinstance(data.get("processes"), list):
        ((name, fields),) = _alone(process_groups=[dict(data)])["groups"].items()
    else:
        name, fields = str(data["name"]), {key: value for key, value in data.items() if key != "name"}
    return name, fields.pop("processes"), fields


def _symphonys_group(group: builder.ProcessGroupSpec) -> Data:
    processes = [_symphonys_process(process) for process in group.list_processes()]
    folder, lines = getattr(group, "start_dir", "."), list(getattr(group, "preamble_cmds", ()))
    return {"processes": processes, "name": group.name, "start_dir": folder, "preamble_cmds": lines}


def _symphonys_process(process: builder.ProcessSpec) -> Data:
    fields = process.to_data()
    cmds = fields.get("cmds", [])
    return {
        "name": process.name,
        "binded_services": dict(process.binded_services),
        "connected_services": dict(process.connected_services),
        "exposed_services": dict(process.exposed_services),
        "start_dir": fields.get("cwd") or ".",
        "cmds": [cmds] if isinstance(cmds, str) else list(cmds if isinstance(cmds, list) else []),
    }


def _alone(**parts: object) -> Data:
    return to_data(read_experiment({"name": "dump", "process_groups": [], "processes": [], **parts}))


def _holds(dump: Data, own: Data) -> bool:
    """Return True if reading `dump`, in Symphony's form, gives all of `own`."""
    try:
        return _alone(**dump) == to_data(to_record({"name": "dump", **own}))
    except SpecError:
        return False
