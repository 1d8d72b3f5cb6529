"""Experiments as Symphony 0.10 dumped them (``dump_dict``: ``experiment.yaml`` in its experiment folder).

All four of its backends wrote their own fields: kube (`container_yml`, `pod_yml`), tmux (`cmds`, `start_dir`),
subproc (`cmd`), docker (`service_yml`). Source: SurrealAI/symphony 0.10, symphony/*/{experiment,process}.py.
"""

from __future__ import annotations

import re

from symphony_charts.formats.names import sanitize
from symphony_charts.importers.common.field_reader import Fields, show
from symphony_charts.importers.common.input_file import Source
from symphony_charts.importers.common.names import UniqueNames
from symphony_charts.importers.common.report import Imported, Log, build
from symphony_charts.importers.common.volumes import Volumes
from symphony_charts.importers.symphony.kubernetes import read_container, read_pod_settings

__all__ = ["import_legacy"]

_RANGE = re.compile(r"(\d{1,5})-(\d{1,5})", re.ASCII)


def import_legacy(source: Source) -> Imported:
    """The experiment of a legacy dump.

    Raises SpecError with every fault.
    """
    log = Log()
    if len(source.documents) > 1:
        log.note(source.prefix(1), "only the first document is read")
    root = Fields(_unwrapped(source.documents[0].data), source.prefix(0), log)
    if "processes" not in root and "process_groups" not in root:
        log.fault(root.path, "this is no dump of a Symphony experiment", "it has `process_groups` and `processes`")
    reader = _Reader(root, log)
    data = reader.read()
    return build({key: value for key, value in data.items() if value not in (None, {}, [])}, log, reader.origins)


def _unwrapped(value: object) -> object:
    """`value` without the wrapping of attribute dictionaries: PyYAML writes their items below `dictitems`."""
    if isinstance(value, dict):
        if "dictitems" in value and set(value) <= {"dictitems", "state", "args"}:
            return _unwrapped(value["dictitems"])
        return {key: _unwrapped(item) for key, item in value.items()}
    return [_unwrapped(item) for item in value] if isinstance(value, list) else value


class _Reader:
    """Reads one dump; `origins` maps the experiment's paths to the dump's."""

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
            processes[key] = self._read_process(process) | self._lone_pod(process)
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
        settings = read_pod_settings(group.map("pod_yml"), self._volumes) if "pod_yml" in group else {}
        groups[key] = {"processes": inner, **settings}
        group.skip("group_name")
        group.note_unread("of a group is not carried over")

    def _read_process(
        self, process: Fields, preamble: list[str] | None = None, cwd: str | None = None
    ) -> dict[str, object]:
        process.skip("standalone")
        data: dict[str, object] = {
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
        if "container_yml" in process:
            data |= read_container(process.map("container_yml"), self._volumes)
        if "service_yml" in process:
            data |= _compose_service(process.map("service_yml"))
        return {key: value for key, value in data.items() if value not in (None, {}, [])}

    def _lone_pod(self, process: Fields) -> dict[str, object]:
        return read_pod_settings(process.map("pod_yml"), self._volumes) if "pod_yml" in process else {}

    def _port_range(self) -> list[int] | None:
        """The smallest range that holds all ports; Symphony's own text form lost numbers after each gap."""
        text = self._root.text("port_range")
        if text is None:
            return None
        numbers = [int(number) for pair in _RANGE.findall(text) for number in pair]
        if not numbers or _RANGE.sub("", text).strip(", ") or not 0 < min(numbers) <= max(numbers) < 65536:
            what = f"{show(text)} is no range of ports; the usual one is taken"
            self._log.note(self._root.at("port_range"), what)
            return None
        if len(numbers) > 2:
            what = f"{show(text)} has gaps; the range goes from {min(numbers)} to {max(numbers)}"
            self._log.note(self._root.at("port_range"), what)
        return [min(numbers), max(numbers)]

    def _local(self) -> dict[str, object]:
        local: dict[str, object] = {"preamble": self._root.texts("preamble_cmds"), "cwd": _folder(self._root)}
        return {key: value for key, value in local.items() if value not in (None, [])}


def _folder(fields: Fields) -> str | None:
    """The start folder; Symphony's default says nothing."""
    folder = fields.text("start_dir")
    return None if folder in (None, ".", "") else folder


def _ports(process: Fields, key: str) -> dict[str, int | None]:
    """Services as Symphony dumps them: a map of name to port or null, or a list of names."""
    value = process.get(key)
    if isinstance(value, list):
        return dict.fromkeys(process.texts(key))
    inner = process.map(key)
    return {sanitize(name): inner.integer(name, 1, 65535) for name in inner.keys()}  # noqa: SIM118 - not a dict


def _compose_service(service: Fields) -> dict[str, object]:
    """What the docker backend kept of a compose service: image, environment, host name."""
    data = service.map("data") if "data" in service else service
    found: dict[str, object] = {}
    if (image := data.text("image")) is not None:
        found["image"] = image
    value = data.get("environment")
    if isinstance(value, list):
        found["env"] = dict(text.split("=", 1) for text in data.texts("environment") if "=" in text)
    elif value is not None:
        found["env"] = data.text_map("environment")
    service.skip("name")
    data.skip("networks")
    data.note_unread("of a docker service is not carried over")
    return found


def _check_addresses(root: Fields, log: Log) -> None:
    """The address book holds what ports were last; they are given again here, so say when one would differ."""
    book = root.map("ab")
    pinned = []
    for name in book.keys():  # noqa: SIM118 - not a dict
        entry = book.map(name)
        entry.skip("host")
        port = entry.integer("port", 1, 65535)
        entry.note_unread("of an address is not carried over")
        pinned += [f"{name} {port}"] if port is not None else []
    if pinned:
        what = f"ports of the last run ({', '.join(pinned)}) are not fixed; they are given again in the same order"
        log.note(book.path, what, "write `binds: {service: port}` for a port that must stay")
