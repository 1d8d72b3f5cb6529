"""The builder of a process group: processes that share one pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.paths import nearest
from symphony_charts.spec.builder.common import Data, MountVerbs, PodVerbs, clean_name, known_fields
from symphony_charts.spec.builder.overlay_view import OverlayView
from symphony_charts.spec.builder.process import ProcessSpec
from symphony_charts.spec.builder.views import Viewed
from symphony_charts.spec.model import ProcessGroup

if TYPE_CHECKING:
    from symphony_charts.spec.builder.experiment import ExperimentSpec

__all__ = ["ProcessGroupSpec", "find_named"]


class ProcessGroupSpec(PodVerbs, MountVerbs, Viewed):
    """A group while it is described. Pod-level verbs and keywords stand here, not on its processes.

    What is said once for all processes (`set_env`, `mount_*`, `image_pull_policy`, a preamble) counts for those
    that come later, too.
    """

    process_class: type[ProcessSpec] = ProcessSpec

    def __init__(self, name: str, processes: Iterable[ProcessSpec] = (), **fields: Any) -> None:
        self.name = clean_name(name, "a process group")
        self.experiment: ExperimentSpec | None = None
        self._processes: dict[str, ProcessSpec] = {}
        self._for_all: list[Callable[[ProcessSpec], None]] = []
        self._data: Data = {}
        preamble, start_dir = fields.pop("preamble_cmds", None), fields.pop("start_dir", None)
        self.set(**fields)
        if preamble is not None or start_dir is not None:
            self._each(lambda process: process.set(preamble=preamble, cwd=start_dir))
        self.add_processes(processes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def set(self, **fields: Any) -> None:
        """Set pod-level fields by name; None leaves a field as it is."""
        if "processes" in fields:
            raise SpecError.one("processes are added by new_process or add_process", self.name)
        self._data.update(deepcopy(known_fields(fields, ProcessGroup, f'process group "{self.name}"')))

    def new_process(self, name: str, *args: Any, **fields: Any) -> ProcessSpec:
        """A new process in this group; arguments are those of `ProcessSpec`."""
        process = self.process_class(name, *args, standalone=False, **fields)
        self.add_process(process)
        return process

    def add_process(self, process: ProcessSpec) -> None:
        """Take a process that belongs nowhere yet into the group."""
        path = f"groups.{self.name}.processes.{process.name}"
        if process.group is not None or process.experiment is not None:
            raise SpecError.one(f'the process "{process.name}" already has its place', path, "make another one")
        if process.name in self._processes:
            raise SpecError.one(f'the group has a process "{process.name}" already', path, "give it another name")
        if settings := process._pod_fields():
            what = f'{", ".join(settings)} of process "{process.name}" belong to the pod, which is the group\'s'
            raise SpecError.one(what, path, f'set them on the group "{self.name}"')
        process.group, process.standalone = self, False
        self._processes[process.name] = process
        for change in self._for_all:
            change(process)
        if self.experiment is not None:
            self.experiment._declare(process)

    def add_processes(self, *processes: ProcessSpec | Iterable[ProcessSpec]) -> None:
        """Take several processes, given one by one or in lists."""
        for item in processes:
            for process in [item] if isinstance(item, ProcessSpec) else item:
                self.add_process(process)

    def get_process(self, name: str) -> ProcessSpec:
        """The process `name`; raises NotFound."""
        process: ProcessSpec = find_named(self._processes, name, f'process in group "{self.name}"')
        return process

    def list_processes(self) -> list[ProcessSpec]:
        """The processes in order of declaration."""
        return list(self._processes.values())

    def set_env(self, name: str, value: object) -> None:
        """Set an environment variable of every process."""
        self._each(lambda process: process.set_env(name, value))

    def set_envs(self, envs: Mapping[str, object]) -> None:
        """Set environment variables of every process."""
        self._each(lambda process: process.set_envs(envs))

    def image_pull_policy(self, policy: str) -> None:
        """Set the pull policy of every process."""
        self._each(lambda process: process.image_pull_policy(policy))

    def set_preamble_cmds(self, cmds: str | Iterable[str]) -> None:
        """Run shell lines before those of every process."""
        lines = [cmds] if isinstance(cmds, str) else list(cmds)
        self._each(lambda process: process.set_preamble_cmds(lines))

    @property
    def pod_yml(self) -> OverlayView:
        """The whole pod that will be emitted; edits are recorded."""
        return OverlayView(self, "pod")

    def yml(self) -> str:
        """The text of the pod that will be emitted."""
        return str(self.pod_yml)

    def to_data(self) -> Data:
        """The group as data that `symphony_charts.spec.data.from_data` reads inside an experiment."""
        processes = {name: process.to_data() for name, process in self._processes.items()}
        return {**deepcopy(self._data), "processes": processes}

    dump_dict = to_data

    def _pod_name(self) -> str:
        return self.name

    def _add_mount(self, mount: Data) -> None:
        self._each(lambda process: process._add_mount(deepcopy(mount)))

    def _each(self, change: Callable[[ProcessSpec], None]) -> None:
        """Do `change` to every process, now and later."""
        self._for_all.append(change)
        for process in self._processes.values():
            change(process)


def find_named(named: Mapping[str, Any], name: str, what: str) -> Any:
    """The entry `name`; raises NotFound with the nearest name."""
    if name in named:
        return named[name]
    meant = nearest(name, named)
    next_step = f'did you mean "{meant}"?' if meant else f"there are: {', '.join(named) or 'none'}"
    raise NotFound(f'no {what} is called "{name}"', next=next_step)
