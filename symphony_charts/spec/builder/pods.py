"""Builders of pods with Symphony's verbs and keywords: a process, or a group of processes in one pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar, cast

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.names import hint
from symphony_charts.spec.builder.common import (
    Data,
    MountVerbs,
    PodVerbs,
    builtins_of,
    clean_name,
    flat,
    known_fields,
    lines_of,
)
from symphony_charts.spec.builder.keywords import (
    AssignmentFields,
    GroupKeywords,
    PodFields,
    ProcessFields,
    ProcessKeywords,
    Unpack,
)
from symphony_charts.spec.builder.overlay_view import OverlayView, Viewed
from symphony_charts.spec.model import PodSettings, Process, ProcessGroup
from symphony_charts.spec.sources import Assignment

if TYPE_CHECKING:
    from symphony_charts.spec.builder.experiment import ExperimentSpec

_Item = TypeVar("_Item")


class ProcessSpec(PodVerbs, MountVerbs, Viewed):
    """A process under construction; `ExperimentSpec.finish` checks it and turns it into a record.

    Keywords are the fields of `symphony_charts.spec.model.Process` and Symphony's spellings of them
    (`container_image`, `start_dir`, `preamble_cmds`, `cmd`). If `command` or `args` is one text, it stays one argument.
    `standalone=False` marks a process for a group.
    """

    def __init__(
        self,
        name: str,
        cmds: str | Iterable[str] | None = None,
        *,
        standalone: bool = True,
        **fields: Unpack[ProcessKeywords],
    ):
        self.name = clean_name(name, "a process")
        self.standalone = standalone
        self.group: ProcessGroupSpec | None = None
        self.experiment: ExperimentSpec | None = None
        self._data: Data = {}
        self.set(cmds=list(cmds) if cmds is not None and not isinstance(cmds, str) else cmds, **fields)

    def set(self, **fields: Unpack[ProcessFields]) -> None:
        """Set fields of the process by name; None leaves a field as it is."""
        settings = known_fields(fields, Process, f'process "{self.name}"')
        for field in settings:
            if field in PodSettings.__struct_fields__:
                self._check_pod(field)
        for verb, declare in (("binds", self.binds), ("connects", self.connects), ("exposes", self.exposes)):
            if verb in settings:
                declare(cast("Any", settings.pop(verb)))
        if "env" in settings:
            self.set_envs(cast("Mapping[str, object]", settings.pop("env")))
        for mount in _as_list(settings.pop("mounts", [])):
            self._add_mount({"text": mount} if isinstance(mount, str) else builtins_of(mount))
        self._data.update({field: builtins_of(value) for field, value in settings.items()})

    # --- network -----------------------------------------------------------------------------------------------------

    def binds(self, spec: str | Iterable[str] | Mapping[str, int | None]) -> None:
        """Listen on services: a name, several, or ``{name: fixed port}``."""
        self._map("binds").update(_services(spec, f"{self.name}.binds"))

    def exposes(self, spec: str | Iterable[str] | Mapping[str, int | None]) -> None:
        """Listen on services that are reachable from outside the cluster; arguments as for `binds`."""
        self._map("exposes").update(_services(spec, f"{self.name}.exposes"))

    def connects(self, spec: str | Iterable[str]) -> None:
        """Connect to services that other processes bind."""
        names = self._list("connects")
        for name, port in _services(spec, f"{self.name}.connects").items():
            if port is not None:
                next_step = "set the port in the process that binds the service"
                raise SpecError.one(f'connects to "{name}" on its own port', f"{self.name}.connects", next_step)
            if name not in names:
                names.append(name)

    bind, connect, expose = binds, connects, exposes

    @property
    def binded_services(self) -> dict[str, int | None]:
        """Bound services: name -> fixed port or None."""
        return dict(cast("dict[str, int | None]", self._data.get("binds", {})))

    @property
    def exposed_services(self) -> dict[str, int | None]:
        """Exposed services: name -> fixed port or None."""
        return dict(cast("dict[str, int | None]", self._data.get("exposes", {})))

    @property
    def connected_services(self) -> dict[str, int | None]:
        """Connected services; the values are always None."""
        return dict.fromkeys(cast("list[str]", self._data.get("connects", [])))

    # --- what runs ---------------------------------------------------------------------------------------------------

    def set_command(self, command: str | Iterable[str]) -> None:
        """Replace the entry point of the image."""
        self._data["command"] = lines_of(command)

    def set_args(self, args: str | Iterable[object]) -> None:
        """Set the arguments; one text is one argument."""
        self._data["args"] = lines_of(args)

    def set_cmds(self, cmds: str | Iterable[str]) -> None:
        """Run shell lines instead of a command."""
        self._data["cmds"] = lines_of(cmds)

    def append_cmds(self, cmds: str | Iterable[str]) -> None:
        """Append shell lines."""
        self._data["cmds"] = [*_as_list(self._data.get("cmds", [])), *lines_of(cmds)]

    def set_preamble_cmds(self, cmds: str | Iterable[str]) -> None:
        """Run shell lines before `cmds`."""
        self._data["preamble"] = lines_of(cmds)

    def set_shell(self, shell: str | Iterable[str]) -> None:
        """Set the shell of `cmds` and preamble: ``sh``, ``bash``, or the words before the script."""
        self._data["shell"] = shell if isinstance(shell, str) else list(shell)

    def set_env(self, name: str, value: object) -> None:
        """Set an environment variable; numbers and booleans become text."""
        self._map("env")[name] = builtins_of(value)

    def set_envs(self, envs: Mapping[str, object]) -> None:
        """Set several environment variables."""
        for name, value in envs.items():
            self.set_env(name, value)

    def image_pull_policy(self, policy: str) -> None:
        """Set the pull policy: ``Always``, ``IfNotPresent`` or ``Never``."""
        self._data["image_pull_policy"] = policy

    @property
    def container_image(self) -> str | None:
        """The image of this process; None if it uses the experiment's."""
        return cast("str | None", self._data.get("image"))

    @container_image.setter
    def container_image(self, image: str) -> None:
        self._data["image"] = image

    # --- resources ---------------------------------------------------------------------------------------------------

    def resource_request(
        self, cpu: object = None, memory: object = None, mem: object = None, gpu: int | None = None, **others: object
    ) -> None:
        """Set resource requests: cores, memory (``"2Gi"``), GPUs, or any resource by name."""
        self._resources("requests", cpu, memory if memory is not None else mem, gpu, others)

    def resource_limit(
        self, cpu: object = None, memory: object = None, gpu: int | None = None, mem: object = None, **others: object
    ) -> None:
        """Set resource limits; arguments as for `resource_request`. `gpu` sets requests and limits alike."""
        self._resources("limits", cpu, memory if memory is not None else mem, gpu, others)

    def _resources(
        self, field: str, cpu: object, memory: object, gpu: int | None, others: Mapping[str, object]
    ) -> None:
        amounts = {"cpu": cpu, "memory": memory, **others}
        self._map(field).update({name: amount for name, amount in amounts.items() if amount is not None})
        if gpu is not None:
            self._data["gpus"] = gpu

    def assign_to(self, assign_to: str | Assignment, **settings: Unpack[AssignmentFields]) -> None:
        """Let the dispatcher choose the machine; arguments are those of Symphony's `assign_to`."""
        if isinstance(assign_to, Assignment):
            self._data["assign_to"] = builtins_of(assign_to)
        else:
            given = {"assign_to": assign_to, **settings}
            self._data["assign_to"] = known_fields(given, Assignment, f'assign_to of process "{self.name}"')

    # --- the emitted objects -----------------------------------------------------------------------------------------

    @property
    def pod_yml(self) -> OverlayView:
        """A view of the whole emitted pod that records edits. A process in a group has none: use the group's."""
        self._check_pod("pod_yml")
        return OverlayView(self, "pod")

    @property
    def container_yml(self) -> OverlayView:
        """A view of the whole emitted container that records edits."""
        return OverlayView(self, "container")

    def yml(self) -> str:
        """Return the YAML text of the emitted pod, or of the container for a process in a group."""
        return str(self.container_yml if self.group else self.pod_yml)

    # --- data --------------------------------------------------------------------------------------------------------

    def to_data(self) -> Data:
        """Return the process as data in the form that `symphony_charts.spec.data.from_data` reads in an experiment."""
        return deepcopy(self._data)

    dump_dict = to_data

    @classmethod
    def from_data(cls, name: str, data: Mapping[str, Any]) -> ProcessSpec:
        """Return a builder from `data`."""
        return cls(name, **data)

    def _pod_name(self) -> str:
        return self.group.name if self.group is not None else self.name

    def _check_pod(self, verb: str) -> None:
        if self.group is not None:
            what = f'{verb} is a setting of the pod, and "{self.name}" is in group "{self.group.name}"'
            raise SpecError.one(what, f"groups.{self.group.name}.processes.{self.name}", "set it on the group")
        if not self.standalone:
            what = f'{verb} is a setting of the pod, and "{self.name}" has standalone=False'
            raise SpecError.one(what, self.name, "set it on the group of the process")

    def _add_mount(self, mount: Data) -> None:
        self._list("mounts").append(mount.get("text", mount))


def _services(spec: object, path: str) -> dict[str, int | None]:
    if isinstance(spec, str):
        return {spec: None}
    if isinstance(spec, Mapping):
        return dict(spec)
    if isinstance(spec, Iterable):
        services: dict[str, int | None] = {}
        for item in spec:
            services.update(_services(item, path))
        return services
    raise SpecError.one(f"{spec!r} is not a service", path, "give a name, a list of names, or {name: port}")


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class ProcessGroupSpec(PodVerbs, MountVerbs, Viewed):
    """A group under construction. Pod-level verbs and keywords belong here, not on its processes.

    Settings for all processes (`set_env`, `mount_*`, `image_pull_policy`, a preamble) also apply to processes that
    are added later.
    """

    process_class: type[ProcessSpec] = ProcessSpec

    def __init__(self, name: str, processes: Iterable[ProcessSpec] = (), **fields: Unpack[GroupKeywords]) -> None:
        self.name = clean_name(name, "a process group")
        self.experiment: ExperimentSpec | None = None
        self._processes: dict[str, ProcessSpec] = {}
        self._for_all: list[Callable[[ProcessSpec], None]] = []
        self._data: Data = {}
        given: dict[str, Any] = dict(fields)
        preamble, start_dir = given.pop("preamble_cmds", None), given.pop("start_dir", None)
        self.set(**given)
        if preamble is not None or start_dir is not None:
            self._each(lambda process: process.set(preamble=preamble, cwd=start_dir))
        self.add_processes(processes)

    def set(self, **fields: Unpack[PodFields]) -> None:
        """Set pod-level fields by name; None leaves a field as it is."""
        if "processes" in fields:
            raise SpecError.one("add processes with new_process or add_process", self.name)
        self._data.update(deepcopy(known_fields(fields, ProcessGroup, f'process group "{self.name}"')))

    def new_process(
        self, name: str, cmds: str | Iterable[str] | None = None, **fields: Unpack[ProcessKeywords]
    ) -> ProcessSpec:
        """Return a new process in this group; arguments are those of `ProcessSpec`."""
        process = self.process_class(name, cmds, standalone=False, **fields)
        self.add_process(process)
        return process

    def add_process(self, process: ProcessSpec) -> None:
        """Add a process that does not belong to a group or experiment yet."""
        path = f"groups.{self.name}.processes.{process.name}"
        if process.group is not None or process.experiment is not None:
            what = f'the process "{process.name}" already belongs to a group or an experiment'
            raise SpecError.one(what, path, "create another one")
        if process.name in self._processes:
            raise SpecError.one(f'the group already has a process "{process.name}"', path, "give it another name")
        if settings := process._pod_fields():
            what = (
                f'{", ".join(settings)} of process "{process.name}" are settings of the pod, which belongs to the group'
            )
            raise SpecError.one(what, path, f'set them on the group "{self.name}"')
        process.group, process.standalone = self, False
        self._processes[process.name] = process
        for change in self._for_all:
            change(process)
        if self.experiment is not None:
            self.experiment._declare(process)

    def add_processes(self, *processes: ProcessSpec | Iterable[ProcessSpec]) -> None:
        """Add several processes, one by one or in lists."""
        for process in flat(processes, ProcessSpec):
            self.add_process(process)

    def get_process(self, name: str) -> ProcessSpec:
        """Return the process `name`. Raises NotFound."""
        return find_named(self._processes, name, f'process in group "{self.name}"')

    def list_processes(self) -> list[ProcessSpec]:
        """Return the processes in order of declaration."""
        return list(self._processes.values())

    def set_env(self, name: str, value: object) -> None:
        """Set an environment variable on every process."""
        self._each(lambda process: process.set_env(name, value))

    def set_envs(self, envs: Mapping[str, object]) -> None:
        """Set environment variables on every process."""
        self._each(lambda process: process.set_envs(envs))

    def image_pull_policy(self, policy: str) -> None:
        """Set the pull policy of every process."""
        self._each(lambda process: process.image_pull_policy(policy))

    def set_preamble_cmds(self, cmds: str | Iterable[str]) -> None:
        """Run shell lines before those of every process."""
        lines = lines_of(cmds)
        self._each(lambda process: process.set_preamble_cmds(lines))

    @property
    def pod_yml(self) -> OverlayView:
        """A view of the whole emitted pod that records edits."""
        return OverlayView(self, "pod")

    def yml(self) -> str:
        """Return the YAML text of the emitted pod."""
        return str(self.pod_yml)

    def to_data(self) -> Data:
        """Return the group as data in the form that `symphony_charts.spec.data.from_data` reads in an experiment."""
        processes = {name: process.to_data() for name, process in self._processes.items()}
        return {**deepcopy(self._data), "processes": processes}

    dump_dict = to_data

    def _pod_name(self) -> str:
        return self.name

    def _add_mount(self, mount: Data) -> None:
        self._each(lambda process: process._add_mount(deepcopy(mount)))

    def _each(self, change: Callable[[ProcessSpec], None]) -> None:
        """Apply `change` to every process, present and future."""
        self._for_all.append(change)
        for process in self._processes.values():
            change(process)


def find_named(named: Mapping[str, _Item], name: str, what: str) -> _Item:
    """Return the entry `name`. Raises NotFound with the nearest name."""
    if name in named:
        return named[name]
    raise NotFound(f'unknown {what} "{name}"', next=hint(name, named, f"there are: {', '.join(named) or 'none'}"))
