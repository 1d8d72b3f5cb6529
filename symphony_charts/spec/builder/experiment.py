"""The builder of experiments with Symphony's verbs; `finish` creates the frozen, checked record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias, cast

from symphony_charts.errors import SpecError
from symphony_charts.formats.names import prefix_owner, sanitize
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.builder.common import Data, builtins_of, clean_name, flat, known_fields, lines_of
from symphony_charts.spec.builder.keywords import (
    ConfigFields,
    ExperimentFields,
    ExperimentKeywords,
    GroupKeywords,
    ProcessKeywords,
    Unpack,
)
from symphony_charts.spec.builder.overlay_view import alone
from symphony_charts.spec.builder.pods import ProcessGroupSpec, ProcessSpec, find_named
from symphony_charts.spec.data import from_data, to_data, to_json, to_record, to_yaml
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import AnyVolume, ConfigFile

__all__ = ["ExperimentSpec", "ProcessGroupSpec", "ProcessSpec", "Renderer"]

Renderer: TypeAlias = Callable[[Experiment, str], Data]
"""Returns the pod object (``metadata``, ``spec``) of an experiment's pod of that name."""


class ExperimentSpec:
    """An experiment under construction.

    Keywords are the fields of `symphony_charts.spec.model.Experiment`; `preamble_cmds` and `start_dir` belong to the
    local mode. `port_range` is ``(low, high)``, ``"7000-8999"``, or a list or range of consecutive ports.
    """

    process_class: type[ProcessSpec] = ProcessSpec
    group_class: type[ProcessGroupSpec] = ProcessGroupSpec
    renderer: Renderer | None = None

    def __init__(self, name: str, **keywords: Unpack[ExperimentKeywords]) -> None:
        given: dict[str, Any] = dict(keywords)
        port_range, preamble_cmds, start_dir = (
            given.pop(name, None) for name in ("port_range", "preamble_cmds", "start_dir")
        )
        fields = known_fields(given, Experiment, f"experiment {name!r}")
        for field in ("processes", "groups", "order"):
            if field in fields:
                what = f'the constructor of an experiment takes no "{field}"'
                raise SpecError.one(what, field, "add them afterwards, or use load_dict")
        owner = fields.get("owner")
        self.name = prefix_owner(clean_name(name, "an experiment"), sanitize(owner) if isinstance(owner, str) else None)
        self._data: Data = {field: builtins_of(value) for field, value in fields.items()}
        self._processes: dict[str, ProcessSpec] = {}
        self._groups: dict[str, ProcessGroupSpec] = {}
        self._declared: list[ProcessSpec] = []
        if port_range is not None:
            self._data["port_range"] = _range(port_range)
        if preamble_cmds is not None:
            self.set_preamble_cmds(preamble_cmds)
        if start_dir is not None:
            self._local()["cwd"] = start_dir

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def set(self, **fields: Unpack[ExperimentFields]) -> None:
        """Set fields of the experiment by name; None leaves a field as it is."""
        for field, value in known_fields(fields, Experiment, self.name).items():
            self._data[field] = builtins_of(value)

    # --- processes ---------------------------------------------------------------------------------------------------

    def new_process(
        self,
        name: str,
        cmds: str | Iterable[str] | None = None,
        *,
        standalone: bool = True,
        **fields: Unpack[ProcessKeywords],
    ) -> ProcessSpec:
        """Return a new lone process, which is one pod; arguments are those of `ProcessSpec`."""
        process = self.process_class(name, cmds, standalone=standalone, **fields)
        self.add_process(process)
        return process

    def add_process(self, process: ProcessSpec, lone: bool = True) -> None:
        """Add a process that does not belong to a group or experiment yet. `lone` must be True, as in Symphony."""
        if not lone:
            raise SpecError.one(f'process "{process.name}" has lone=False', process.name, "add it to its group instead")
        if process.experiment is not None or process.group is not None:
            raise SpecError.one(
                f'the process "{process.name}" already belongs to an experiment', process.name, "create another one"
            )
        self._check_free(process.name, "process")
        process.standalone = True
        self._processes[process.name] = process
        self._declare(process)

    def add_processes(self, *processes: ProcessSpec | Iterable[ProcessSpec]) -> None:
        """Add several processes, one by one or in lists."""
        for process in flat(processes, ProcessSpec):
            self.add_process(process)

    def new_process_group(
        self, name: str, processes: Iterable[ProcessSpec] = (), **fields: Unpack[GroupKeywords]
    ) -> ProcessGroupSpec:
        """Return a new, empty group; arguments are those of `ProcessGroupSpec`."""
        group = self.group_class(name, processes, **fields)
        self.add_process_group(group)
        return group

    def add_process_group(self, group: ProcessGroupSpec) -> None:
        """Add a group that does not belong to an experiment yet, with its processes."""
        if group.experiment is not None:
            raise SpecError.one(
                f'the group "{group.name}" already belongs to an experiment', group.name, "create another one"
            )
        self._check_free(group.name, "group")
        group.experiment = self
        self._groups[group.name] = group
        for process in group.list_processes():
            self._declare(process)

    def add_process_groups(self, *groups: ProcessGroupSpec | Iterable[ProcessGroupSpec]) -> None:
        """Add several groups, one by one or in lists."""
        for group in flat(groups, ProcessGroupSpec):
            self.add_process_group(group)

    def get_process(self, name: str) -> ProcessSpec:
        """Return the lone process `name`, or ``group/process``. Raises NotFound."""
        group, _, process = name.rpartition("/")
        if group:
            return self.get_process_group(group).get_process(process)
        return find_named(self._processes, name, "lone process")

    def get_process_group(self, name: str) -> ProcessGroupSpec:
        """Return the group `name`. Raises NotFound."""
        return find_named(self._groups, name, "process group")

    def list_processes(self) -> list[ProcessSpec]:
        """Return the lone processes in order of declaration."""
        return list(self._processes.values())

    def list_all_processes(self) -> list[ProcessSpec]:
        """Return all processes, including those in groups, in order of declaration."""
        return list(self._declared)

    def list_process_groups(self) -> list[ProcessGroupSpec]:
        """Return the groups in order of declaration."""
        return list(self._groups.values())

    # --- the experiment as a whole -----------------------------------------------------------------------------------

    def set_preamble_cmds(self, cmds: str | Iterable[str]) -> None:
        """Run shell lines before every process on one machine."""
        self._local()["preamble"] = lines_of(cmds)

    def add_volume(self, name: str, volume: AnyVolume | Mapping[str, object]) -> None:
        """Declare a volume for mounts. Raises SpecError if the name already has other content."""
        volumes = cast("Data", self._data.setdefault("volumes", {}))
        if volumes.setdefault(name, data := builtins_of(volume)) != data:
            raise SpecError.one(
                f'the volume "{name}" has two different contents', f"volumes.{name}", "use another name"
            )

    def add_config(self, name: str, text: str | ConfigFile | None = None, **fields: Unpack[ConfigFields]) -> None:
        """Put a configuration file at /etc/symph/config/`name` of every process.

        The content is `text`, the content of `file` (a path), or `base64`; `mode` is octal text.
        """
        said = {**fields, "text": text} if isinstance(text, str) else fields
        given = builtins_of(text) if isinstance(text, ConfigFile) else known_fields(said, ConfigFile, "add_config")
        cast("Data", self._data.setdefault("configs", {}))[name] = given

    def add_secret(
        self, file: str, key: str | None = None, only: Iterable[str] = (), also_at: Iterable[str] = ()
    ) -> None:
        """Put a local file at /etc/secrets/`key` and `also_at` of every process, or of the processes in `only`."""
        secret: Data = {"file": file, **({"key": key} if key is not None else {}), "only": list(only)}
        secret |= {"also_at": list(also_at)} if also_at else {}
        secrets = self._data.setdefault("secrets", [])
        self._data["secrets"] = [*(secrets if isinstance(secrets, list) else [secrets]), secret]

    # --- record and text ---------------------------------------------------------------------------------------------

    def to_data(self) -> Data:
        """Return the experiment as data that `symphony_charts.spec.data.from_data` reads."""
        data: Data = {"name": self.name, **deepcopy(self._data)}
        if self._groups:
            data["groups"] = {name: group.to_data() for name, group in self._groups.items()}
        if self._processes:
            data["processes"] = {name: process.to_data() for name, process in self._processes.items()}
        order = [_ref(process) for process in self._declared]
        usual = [_ref(process) for group in self._groups.values() for process in group.list_processes()]
        if order != [*usual, *self._processes]:
            data["order"] = order
        return data

    def finish(self, *, for_cluster: bool = False) -> Experiment:
        """Return the frozen record. Raises SpecError with all faults."""
        return from_data(self.to_data(), for_cluster=for_cluster)

    def dump_dict(self) -> dict[str, object]:
        """Return the finished experiment as JSON types; `load_dict` reads it."""
        return to_data(self.finish())

    def dump_yaml_str(self) -> str:
        """Return the finished experiment as YAML."""
        return to_yaml(self.finish())

    def dump_json_str(self) -> str:
        """Return the finished experiment as JSON."""
        return to_json(self.finish())

    @classmethod
    def load_dict(cls, data: Mapping[str, object]) -> ExperimentSpec:
        """Return a builder from `data` (shorthand allowed). Raises SpecError for type faults."""
        return cls.from_experiment(to_record(dict(data)))

    @classmethod
    def load_yaml_str(cls, text: str) -> ExperimentSpec:
        """Return a builder from YAML or JSON `text`."""
        return cls.from_experiment(to_record(load(text)))

    load_json_str = load_yaml_str

    @classmethod
    def from_experiment(cls, experiment: Experiment) -> ExperimentSpec:
        """Return a builder that starts from `experiment`."""
        data: dict[str, Any] = to_data(experiment)
        parts = {field: data.pop(field, {}) for field in ("groups", "processes", "order")}
        spec = cls(str(data.pop("name")), **data)
        for name, fields in parts["groups"].items():
            processes = fields.pop("processes")
            group = spec.new_process_group(name, **fields)
            for process, process_fields in processes.items():
                group.new_process(process, **process_fields)
        for name, fields in parts["processes"].items():
            spec.new_process(name, **fields)
        places = {ref: place for place, ref in enumerate(parts["order"])}
        spec._declared.sort(key=lambda process: places.get(_ref(process), len(places)))
        return spec

    def render_pod(self, name: str) -> Data | None:
        """Return the pod `name` as it will be emitted, or None if it cannot be rendered.

        In an incomplete experiment the pod is rendered as if it were alone.
        """
        render = type(self).renderer
        if render is None:
            return None
        for data in (self.to_data, lambda: alone(self.to_data(), name)):
            try:
                return render(from_data(data()), name)
            except SpecError:
                continue
        return None

    def _declare(self, process: ProcessSpec) -> None:
        process.experiment = self
        self._declared.append(process)

    def _check_free(self, name: str, what: str) -> None:
        taken = "process" if name in self._processes else "group" if name in self._groups else None
        if taken is not None:
            next_step = "give one of them another name"
            raise SpecError.one(f'the experiment already has a {taken} "{name}"', f"{what}.{name}", next_step)

    def _local(self) -> Data:
        return cast("Data", self._data.setdefault("local", {}))


def _ref(process: ProcessSpec) -> str:
    return f"{process.group.name}/{process.name}" if process.group is not None else process.name


def _range(ports: object) -> object:
    """Return a list or range of consecutive ports as (low, high); anything else unchanged."""
    if isinstance(ports, (list, tuple, range)) and len(ports) > 1 and all(isinstance(port, int) for port in ports):
        numbers = sorted(cast("Iterable[int]", ports))
        if numbers == list(range(numbers[0], numbers[-1] + 1)) or len(numbers) == 2:
            return [numbers[0], numbers[-1]]
        raise SpecError.one("the ports must be consecutive", "port_range", "give the lowest and the highest port")
    return ports
