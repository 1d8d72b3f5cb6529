"""The draft collects the experiment while a DIJob is being read."""

from __future__ import annotations

from dataclasses import dataclass, field

from symphony_charts.formats.data import sub
from symphony_charts.formats.names import shorten
from symphony_charts.importers.common.names import LONGEST, UniqueNames, Volumes
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.dijob.settings import MAX_TASK

__all__ = ["Draft"]


@dataclass(slots=True, kw_only=True)
class Draft:
    """Collects the data of the experiment, and for each of its paths the place in the input (`origins`)."""

    log: Log
    config_maps: dict[str, Fields] = field(default_factory=dict)
    name: str = "dijob"
    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    workload: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    compat: str | None = None
    containers: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    processes: dict[str, object] = field(default_factory=dict)
    groups: dict[str, object] = field(default_factory=dict)
    prepare: dict[str, object] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    done_when: list[str] = field(default_factory=list)
    image_pull_secrets: list[str] = field(default_factory=list)
    volumes: Volumes = field(default_factory=Volumes)
    origins: dict[str, str] = field(default_factory=dict)
    used_config_maps: set[str] = field(default_factory=set)
    lifted_volumes: set[str] = field(default_factory=set)
    names: UniqueNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = UniqueNames(self.log)

    def say(self, key: str, value: object) -> None:
        """Keep what a DIJob alone has (a field of `workload.dijob`), unless it is None."""
        if value is not None:
            self.settings[key] = value

    @property
    def longest_task(self) -> int:
        """The most characters of the name of a task."""
        return min(LONGEST, MAX_TASK) if self.workload.get("kind") == "dijob" else LONGEST

    def place(self, ref: str, container: str, usual: str) -> None:
        """Keep the next process in order, and what its container is called where that is not as usual."""
        self.order.append(ref)
        if container != usual:
            self.containers[ref] = container

    def add_config(self, name: str, text: str) -> str:
        """Keep a configuration file; its name, numbered where another file has the same."""
        stem, dot, suffix = name.partition(".")
        free, count = name, 2
        while self.configs.setdefault(free, text) != text:
            free, count = f"{stem}-{count}{dot}{suffix}", count + 1
        return free

    def add_step(self, name: str, step: dict[str, object], path: str) -> None:
        """Keep a step that runs before the processes of some pods, under a free name; the same for two pods is one."""
        clean = UniqueNames.label(name)
        for step_so_far in self.prepare.values():
            if isinstance(step_so_far, dict) and {**step_so_far, "groups": []} == {**step, "groups": []}:
                step_so_far["groups"] += [pod for pod in _texts(step["groups"]) if pod not in step_so_far["groups"]]
                return
        free, count = clean, 2
        while free in self.prepare:
            free, count = shorten(f"{clean}-{count}", 60), count + 1
        if free != clean:
            self.log.changed(f"{path}.name", f'another step is called "{clean}"; this one is called "{free}"')
        self.prepare[free] = step
        self.origins[f"prepare.{free}"] = path

    def without_command(self) -> list[str]:
        """The places in the input of processes of several replicas that start the command of their image."""
        members = [
            (f"processes.{name}", sub(self.processes, name), sub(self.processes, name)) for name in self.processes
        ]
        for name in self.groups:
            pod = sub(self.groups, name)
            inner = sub(pod, "processes")
            members += [(f"groups.{name}.processes.{process}", pod, sub(inner, process)) for process in inner]
        return [
            self.origins[path]
            for path, pod, process in members
            if pod.get("replicas", 1) != 1 and not {"command", "cmds"} & set(process)
        ]

    def unused_config_maps(self) -> list[str]:
        """ConfigMaps of the file that no pod mounts."""
        return [name for name in self.config_maps if name not in self.used_config_maps]

    def data(self) -> dict[str, object]:
        """The data of the experiment."""
        data: dict[str, object] = {
            "name": self.name,
            "namespace": self.namespace,
            "groups": self.groups,
            "processes": self.processes,
            "order": self.order if self.order != self._usual_order() else [],
            "volumes": {name: v for name, v in self.volumes.declared.items() if name not in self.lifted_volumes},
            "configs": {name: {"text": text} for name, text in self.configs.items()},
            "prepare": self.prepare,
            "done_when": self.done_when,
            "workload": self._workload(),
            "compat": self.compat,
            "image_pull_secrets": list(dict.fromkeys(self.image_pull_secrets)),
            "labels": self.labels,
            "annotations": self.annotations,
            # DI-engine starts all tasks at once, which look for each other themselves.
            "local": {"start": "together"},
        }
        return {key: value for key, value in data.items() if value not in (None, {}, [])}

    def _usual_order(self) -> list[str]:
        grouped = [f"{name}/{process}" for name, group in self.groups.items() for process in sub(group, "processes")]
        return [*grouped, *self.processes]

    def _workload(self) -> dict[str, object]:
        maps = {"tasks": self.tasks, "containers": self.containers}
        settings = {**self.settings, **{key: value for key, value in maps.items() if value}}
        return {**self.workload, **({"dijob": settings} if settings else {})}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
