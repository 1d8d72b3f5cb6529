"""Symphony's specs: the builders of this package under Symphony's names and keywords."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from symphony_charts.clusters import base as specs
from symphony_charts.clusters.base import AddressBook
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump
from symphony_charts.integrations.symphony.attributes import (
    ExperimentAttributes,
    GroupAttributes,
    ProcessAttributes,
)
from symphony_charts.integrations.symphony.errors import symphonys
from symphony_charts.integrations.symphony.importer import (
    SHELL,
    as_load_balancers,
    dump_experiment,
    dump_group,
    dump_process,
    read_dumped_process,
    read_experiment,
    read_group,
    serving,
)
from symphony_charts.spec.builder.experiment import ProcessGroupSpec as OurGroup
from symphony_charts.spec.builder.experiment import ProcessSpec as OurProcess

__all__ = [
    "ADDED",
    "CLUSTER",
    "POD",
    "SPEC",
    "ExperimentSpec",
    "ProcessGroupSpec",
    "ProcessSpec",
    "respelled",
    "speaks",
]


_Class = TypeVar("_Class", bound=type)
Words = Mapping[str, str]

# Symphony's keyword -> ours, by method.
CLUSTER: Mapping[str, Words] = {
    "describe_process": {"process_group_name": "process_group"},
    "describe_process_group": {"process_group_name": "process_group"},
    "exec_command": {"process_group_name": "process_group"},
    "login": {"process_group_name": "process_group"},
    "external_service": {"service_name": "service"},
    "external_url": {"service_name": "service"},
    "fuzzy_match_process": {"proc_name": "name", "exp_name": "experiment_name"},
    "launch_batch": {"experiment_configs": "exps", "experiment_specs": "exps"},
    "launch": {"experiment_config": "exp", "experiment_spec": "exp", "spec": "exp"},
    "delete_batch": {"experiments": "experiment_names"},
    "transfer_file": {"src": "src_path", "dest": "dest_path"},
    "set_experiment": {"namespace": "experiment_name"},
}
SPEC: Mapping[str, Words] = {
    "add_process_group": {"process_group": "group"},
    "add_process_groups": {"process_groups": "groups"},
    "set_preamble_cmds": {"preamble_cmds": "cmds"},
}
ADDED: Mapping[str, Words] = {"add_processes": {"processes": "processes"}}
POD: Mapping[str, Words] = {
    "set_envs": {"di": "envs", "env": "envs"},
    "mount_volume": {"path": "mount_path"},
}


def speaks(*tables: Mapping[str, Words]) -> Callable[[_Class], _Class]:
    """Return a class decorator that makes methods also accept the keywords of `tables`."""

    def change(cls: _Class) -> _Class:
        for table in tables:
            for name, words in table.items():
                method = inspect.getattr_static(cls, name)
                if isinstance(method, classmethod):
                    setattr(cls, name, classmethod(respelled(method.__func__, words)))
                else:
                    setattr(cls, name, respelled(method, words))
        return cls

    return change


def respelled(method: Callable[..., Any], words: Words) -> Callable[..., Any]:
    """Return `method` with keywords of `words` translated to ours."""
    parameters = inspect.signature(method).parameters
    several = {theirs for theirs, ours in words.items() if parameters[ours].kind is inspect.Parameter.VAR_POSITIONAL}

    @wraps(method)
    def call(*args: Any, **keywords: Any) -> Any:
        args = (*args, *(keywords.pop(theirs) for theirs in several if theirs in keywords))
        return method(*args, **{words.get(name, name): value for name, value in keywords.items()})

    call.__keywords__ = {**getattr(method, "__keywords__", {}), **words}  # type: ignore[attr-defined] # for the tests
    return call


# In the order in which Symphony assigned ports.
_LISTENING = ("exposes", "binds")
_WRITERS = {".json": "dump_json_str", ".yml": "dump_yaml_str", ".yaml": "dump_yaml_str"}


class Dumped:
    """Specs that are written as Symphony wrote them, and read again; the writers' keywords are those of JSON."""

    def dump_dict(self) -> dict[str, Any]:
        """Return the data to write."""
        raise NotImplementedError

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> Any:
        """Return the spec that was dumped as `di`."""
        raise NotImplementedError

    def dump_yaml_str(self, **_: object) -> str:
        """Return the dump as YAML; PyYAML's keywords are accepted and ignored."""
        return dump(self.dump_dict())

    def dump_json_str(self, **dumper_kwargs: Any) -> str:
        """Return the dump as JSON, with the keywords of `json.dumps`."""
        return json.dumps(self.dump_dict(), **{"indent": 2, "ensure_ascii": False, **dumper_kwargs}) + "\n"

    def dump_file(self, file_path: str | Path, **dumper_kwargs: Any) -> None:
        """Write YAML or JSON, by the file's suffix. Raises OSError for another suffix."""
        path = Path(file_path).expanduser()
        if path.suffix not in _WRITERS:
            raise OSError(f"{path}: the name must end in .json, .yml or .yaml")
        path.write_text(getattr(self, _WRITERS[path.suffix])(**dumper_kwargs), encoding="utf-8")

    dump_yaml_file = dump_json_file = dump_file

    @classmethod
    def load_yaml_str(cls, string: str, **_: object) -> Any:
        """Return the spec in YAML or JSON text. Raises SpecError if the text is not a map."""
        data = load(string)
        if not isinstance(data, dict):
            raise SpecError.one("a dump of Symphony must be a map")
        return cls.load_dict(data)

    load_json_str = load_yaml_str

    @classmethod
    def load_file(cls, file_path: str | Path, **_: object) -> Any:
        """Return the spec in a YAML or JSON file."""
        return cls.load_yaml_str(Path(file_path).expanduser().read_text(encoding="utf-8"))

    load_yaml_file = load_json_file = load_file


@speaks(POD)
class ProcessSpec(Dumped, ProcessAttributes):
    """A process. Keywords are those of this package; an unknown one is refused with a suggestion."""

    backend: ClassVar[str] = "kube"

    def to_data(self) -> dict[str, object]:
        """Return the process as data. Its lines run in bash, which continues after a failed line, as in Symphony."""
        self.settle()
        data = super().to_data()
        if data.get("cmds") or data.get("preamble"):
            data.setdefault("shell", SHELL)
        for field in ("command", "args", "env"):
            if field in data:
                data[field] = _as_text(data[field])
        return data if self.group is not None else serving(data)

    def dump_dict(self) -> dict[str, Any]:
        """Return the process as Symphony dumped it."""
        return dump_process(self, self.backend)

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> Any:
        """Return a dumped process, outside of any experiment."""
        name, fields = read_dumped_process(di)
        return cls(name, standalone=bool(di.get("standalone", True)), **fields)


@speaks(POD, ADDED, {"load_dict": {"data": "di"}})
class ProcessGroupSpec(Dumped, GroupAttributes):
    """A process group."""

    backend: ClassVar[str] = "kube"
    process_class: type[OurProcess] = ProcessSpec

    def __init__(
        self,
        name: str,
        processes: Iterable[OurProcess] = (),
        start_dir: str | None = None,
        preamble_cmds: str | Iterable[str] | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(name, processes, **fields)
        self.start_dir, self.preamble_cmds = start_dir or ".", preamble_cmds or []

    def to_data(self) -> dict[str, object]:
        """Return the group as data; its preamble and folder are those of processes that name none."""
        data: dict[str, Any] = super().to_data()
        for process in data["processes"].values():
            if self.start_dir != ".":
                process.setdefault("cwd", self.start_dir)
            if self.preamble_cmds:
                process.setdefault("preamble", list(self.preamble_cmds))
                process.setdefault("shell", SHELL)
        return serving(data)

    def dump_dict(self) -> dict[str, Any]:
        """Return the group as Symphony dumped it."""
        return dump_group(self, self.backend)

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> Any:
        """Return a dumped group with its processes, outside of any experiment."""
        name, processes, fields = read_group(di)
        group = cls(name, **fields)
        for process, process_fields in processes.items():
            group.new_process(process, **process_fields)
        return group

    def new_process(self, name: str, *words: Any, **fields: Any) -> OurProcess:
        """Add and return a new process; `words` are positional arguments of the backend's process class."""
        process = self.process_class(name, *words, standalone=False, **fields)
        self.add_process(process)
        return process

    def get_process(self, name: str) -> OurProcess:
        """Return the process `name`. Raises KeyError."""
        with symphonys():
            return super().get_process(name)


@speaks(SPEC, ADDED)
class ExperimentSpec(Dumped, ExperimentAttributes, specs.ExperimentSpec):  # type: ignore[misc]  # Symphony's keywords
    """An experiment. An experiment from a loader dumps to the same data."""

    backend: ClassVar[str] = "kube"
    process_class: type[OurProcess] = ProcessSpec
    group_class: type[OurGroup] = ProcessGroupSpec

    def __init__(self, name: str, port_range: Any = None, secrets: Any = None, **fields: Any) -> None:
        self._ports, self._usual = list(port_range) if isinstance(port_range, list) else [], []
        if self._ports:
            port_range = (min(self._ports), max(self._ports))
        if self.backend != "subproc":
            # A failed process ended all others in the subproc backend, and none in other backends.
            fields.setdefault("on_failure", "continue")
        super().__init__(name, port_range=port_range, secrets=secrets, **fields)
        # As in Symphony; its programs dial until a server listens.
        self._local().setdefault("start", "together")

    def new_process(self, name: str, *words: Any, **fields: Any) -> OurProcess:
        """Add and return a new lone process; `words` are positional arguments of the backend's process class."""
        process = self.process_class(name, *words, **fields)
        self.add_process(process)
        return process

    def new_process_group(self, name: str, *words: Any, **fields: Any) -> OurGroup:
        """Add and return a new group; `words` are positional arguments of the backend's group class."""
        group = self.group_class(name, *words, **fields)
        self.add_process_group(group)
        return group

    def to_data(self) -> dict[str, object]:
        """Return the experiment as data. Exposed services are load balancers unless `expose` has a type.

        From a list of ports each service gets one, in Symphony's order: exposed services first.
        """
        data: dict[str, Any] = super().to_data()
        held = [process._data for process in self.list_all_processes()]
        if exposed := [name for fields in held for name in _services(fields, "exposes")]:
            data["expose"] = as_load_balancers(exposed, data.get("expose", {}))
        if not self._ports or self._ports == self._usual:
            return data
        data["port_range"] = [min(self._ports), max(self._ports)]
        fixed = {port for fields in held for kind in _LISTENING for port in _services(fields, kind).values()}
        names = dict.fromkeys(
            name for kind in _LISTENING for fields in held for name, port in _services(fields, kind).items() if not port
        )
        free = [port for port in self._ports if port not in fixed]
        if len(names) > len(free):
            what = f"{len(names)} services need a port, and only {len(free)} of the list are free"
            raise SpecError.one(what, "port_range", "give a port per service")
        given = dict(zip(names, free, strict=False))
        holders = [*data.get("groups", {}).values(), data]
        for process in (one for holder in holders for one in holder.get("processes", {}).values()):
            for kind in _LISTENING:
                if services := _services(process, kind):
                    process[kind] = {name: port or given[name] for name, port in services.items()}
        return data

    def get_process(self, name: str) -> OurProcess:
        """Return the lone process `name`, or `group/process`. Raises KeyError."""
        with symphonys():
            return super().get_process(name)

    def get_process_group(self, name: str) -> OurGroup:
        """Return the group `name`. Raises KeyError."""
        with symphonys():
            return super().get_process_group(name)

    def dump_dict(self) -> dict[str, Any]:
        """Return the experiment as Symphony dumped it."""
        return dump_experiment(self, self.backend, self.address_book.entries)

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> ExperimentSpec:
        """Return the experiment of a dump in Symphony's form, this module's form, or this package's form."""
        spec = cls.from_experiment(read_experiment(di))
        assert isinstance(spec, ExperimentSpec)  # noqa: S101 - it is of `cls`
        spec.address_book = AddressBook({name: sub(di, "ab", name) for name in sub(di, "ab")})
        return spec


def _as_text(value: object) -> object:
    """Return `value` with booleans and numbers as Python's text (`True`), as Symphony wrote them."""
    if isinstance(value, dict):
        return {key: _as_text(item) if isinstance(item, bool | float) else item for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return str(value) if isinstance(value, bool | float) else value


def _services(fields: Mapping[str, Any], kind: str) -> Mapping[str, int | None]:
    services: Mapping[str, int | None] = fields.get(kind, {})
    return services
