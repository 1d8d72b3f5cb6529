"""Specs of processes on this machine, with the names that Symphony writes into tmux.

A run uses Kubernetes names (`empty_exp` becomes `empty-exp`); its folder records the names that its launcher wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from symphony_charts.backend.status import Event, ExperimentStatus, InstanceStatus, LogLine, LogQuery, Usage
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.names import sanitize
from symphony_charts.integrations.symphony.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import Run, find_run, live_runs, newest_runs
from symphony_charts.local.status import run_status
from symphony_charts.local.tmux_client import DEFAULT_WINDOW, show
from symphony_charts.spec.builder.experiment import ExperimentSpec as BuilderSpec

__all__ = [
    "LocalExperimentSpec",
    "LocalProcessGroupSpec",
    "LocalProcessSpec",
    "WrittenNames",
    "WrittenWatcher",
    "is_there",
]


_FILE = "written.json"


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """The names that a launcher gave the experiment of a run, its groups (by name in the run) and processes (by path).

    Names that are the same in the run may be omitted. With `is_kept` the experiment exists until it is deleted.
    """

    experiment: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    processes: Mapping[str, str] = field(default_factory=dict)
    is_kept: bool = False

    @classmethod
    def of(cls, run: Run) -> WrittenNames:
        """Return the names of a run; empty maps if a launcher other than Symphony's started it."""
        try:
            data = read_json(run.folder / _FILE)
        except NotFound:
            data = {}
        return cls(**{"experiment": run.experiment, **data})

    @classmethod
    def of_spec(cls, spec: BuilderSpec) -> WrittenNames:
        """Return the names of a spec to launch."""
        groups = {sanitize(group.name): group.name for group in spec.list_process_groups()}
        processes = {
            sanitize(f"{one.group.name}/{one.name}" if one.group else one.name): one.name
            for one in spec.list_all_processes()
        }
        return cls(spec.name, groups, processes)

    def save(self, run: Run, server: str = "") -> None:
        """Save the names with the run, and show the run on the tmux server that the launcher named."""
        write_json(run.folder / _FILE, asdict(self))
        if server:
            show(server, self.experiment, run, self._windows(run))

    def _windows(self, run: Run) -> Iterator[tuple[str, Path]]:
        for planned in run.plan().processes:
            process = self.process(planned.group, planned.process)
            name = process + planned.name.removeprefix(planned.process)
            if process != DEFAULT_WINDOW:
                title = f"{self.group(planned.group)}:{name}" if planned.group else name
                yield title, run.process_dir(planned.slot) / "log"

    def group(self, group: str) -> str:
        """Return the launcher's name of a group of the run."""
        return self.groups.get(group, group)

    def process(self, group: str, process: str) -> str:
        """Return the launcher's name of a process of a group of the run; the group of a lone process is empty."""
        return self.processes.get(f"{group}/{process}" if group else process, process)

    def instance(self, one: InstanceStatus) -> InstanceStatus:
        """Return the instance under these names; a replica's number follows the process name."""
        process = self.process(one.group, one.process)
        return replace(
            one, name=process + one.name.removeprefix(one.process), process=process, group=self.group(one.group)
        )

    def status(self, status: ExperimentStatus) -> ExperimentStatus:
        """Return the status under these names."""
        instances = tuple(map(self.instance, status.instances))
        paths = {old.path: new.path for old, new in zip(status.instances, instances, strict=True)}
        events = tuple(replace(event, about=paths.get(event.about, event.about)) for event in status.events)
        return replace(status, name=self.experiment, experiment=self.experiment, instances=instances, events=events)

    def paths(self, run: Run) -> dict[str, str]:
        """Map paths of the run's instances to paths under these names."""
        every = run_status(run, events=False).instances
        return {one.path: self.instance(one).path for one in every}


def is_there(run: Run) -> bool:
    """Return True if Symphony would have a session for the run: it is live, or not deleted yet."""
    return run.is_live or WrittenNames.of(run).is_kept


class WrittenWatcher(LocalWatcher):
    """This machine's experiments, addressed by the names that a launcher wrote, or by the names of the run.

    With `is_kept`, ended experiments stay until they are deleted, as Symphony's sessions did, if a launcher of such
    sessions started them.
    """

    def __init__(self, *, is_kept: bool = True) -> None:
        super().__init__()
        self._is_kept = is_kept

    def names(self) -> list[str]:
        """Return the names of the existing experiments."""
        return [WrittenNames.of(run).experiment for run in self._there()]

    def experiments(self, *, ended: bool = False) -> list[ExperimentStatus]:
        """Return the existing experiments; with `ended` also the last run of ended ones."""
        runs = newest_runs() if ended else self._there()
        return [WrittenNames.of(run).status(run_status(run)) for run in runs]

    def _there(self) -> list[Run]:
        return [run for run in newest_runs() if is_there(run)] if self._is_kept else live_runs()

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        """Return the status of the newest run of an experiment, also after its end."""
        run = find_run(sanitize(name))
        return WrittenNames.of(run).status(run_status(run, events=events))

    def changes(self, name: str, timeout_s: float | None = None) -> Iterator[ExperimentStatus | None]:
        """Yield its status at once and after each change."""
        for status in super().changes(sanitize(name), timeout_s):
            yield WrittenNames.of(find_run(sanitize(name))).status(status) if status else None

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        """Return the log lines of the newest run (`previous`: of the run before it), merged by time."""
        run = find_run(sanitize(name))
        paths = WrittenNames.of(run).paths(run)
        asked = replace(query, instances=tuple(map(sanitize, query.instances)))
        return (
            replace(line, process=paths.get(line.process, line.process)) for line in super().logs(run.experiment, asked)
        )

    def events(self, name: str, *, follow: bool = False) -> Iterator[Event]:
        """Yield starts, ends and restarts, as the supervisor recorded them."""
        run = find_run(sanitize(name))
        paths = WrittenNames.of(run).paths(run)
        for event in super().events(run.experiment, follow=follow):
            yield replace(event, about=paths.get(event.about, event.about))

    def usage(self, name: str) -> Mapping[str, Usage]:
        """Return CPU use since the last call (at first: since the start) and resident memory, children included."""
        run = find_run(sanitize(name))
        paths = WrittenNames.of(run).paths(run)
        return {paths.get(path, path): used for path, used in super().usage(run.experiment).items()}

    def last_lines(self, name: str) -> Mapping[str, str]:
        """Return the last output line of each process."""
        run = find_run(sanitize(name))
        paths = WrittenNames.of(run).paths(run)
        return {paths.get(path, path): line for path, line in super().last_lines(run.experiment).items()}

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        """Run a command with the environment, folder and files of the process."""
        return super().exec(sanitize(name), _in_run(instance), command, tty=tty, stdin=stdin)

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command with the environment, folder and files of the process, without a terminal."""
        return super().output_of(sanitize(name), _in_run(instance), command)

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        """Copy what the process sees at `path`; after its end, copy the remaining files on this machine."""
        super().copy_out(sanitize(name), _in_run(instance), path, to)

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        """Copy to where the process sees `to`."""
        super().copy_in(sanitize(name), _in_run(instance), source, to)

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        """End the experiment and remove its runs, logs included."""
        return super().delete(sanitize(name), dry_run=dry_run)


def _in_run(one: InstanceStatus) -> InstanceStatus:
    return replace(one, name=sanitize(one.name), process=sanitize(one.process), group=sanitize(one.group))


class LocalProcessSpec(ProcessSpec):
    """A process under its launcher's name."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        self.name = name


class LocalProcessGroupSpec(ProcessGroupSpec):
    """A group under its launcher's name."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        self.name = name


class LocalExperimentSpec(ExperimentSpec):
    """An experiment under its launcher's name, prefixed with the user's."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        written = (name, f"{self._data.get('owner')}-{name}")
        self.name = next((one for one in written if sanitize(one) == self.name), self.name)

    def to_data(self) -> dict[str, object]:
        """Return the experiment as data, with the names of a run."""
        data: dict[str, Any] = super().to_data()
        data["name"] = sanitize(self.name)
        groups = _of_run(data.get("groups", {}), "group")
        for group in groups.values():
            group["processes"] = _of_run(group["processes"], "process")
        processes = _of_run(data.get("processes", {}), "process")
        held = {"groups": groups, "processes": processes, "order": [sanitize(ref) for ref in data.get("order", [])]}
        return {**data, **{key: value for key, value in held.items() if value}}

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> ExperimentSpec:
        """Return the experiment of a dump, under the names in the dump."""
        spec: ExperimentSpec = super().load_dict(di)
        if sanitize(str(di["name"])) == spec.name:
            spec.name = str(di["name"])
        members = _dumped(di, "process_groups")
        _rename(spec._groups, members)
        _rename(spec._processes, _dumped(di, "processes"))
        for group in members:
            _rename(spec.get_process_group(group["name"])._processes, _dumped(group, "processes"))
        return spec


def _of_run(held: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return `held` under the names of the run; raise SpecError if two names become the same."""
    names: dict[str, str] = {}
    for written in held:
        if names.setdefault(sanitize(written), written) != written:
            both = f"{names[sanitize(written)]!r} and {written!r}"
            raise SpecError.one(f"{both} would have the same {what} name", what, "give one of them another name")
    return {name: held[written] for name, written in names.items()}


def _dumped(di: Mapping[str, Any], key: str) -> list[Any]:
    """Return the entries of a Symphony dump under a key; empty for this package's own form."""
    held = di.get(key)
    return held if isinstance(held, list) else []


def _rename(held: dict[str, Any], dumps: Iterable[Mapping[str, Any]]) -> None:
    """Rename the members of `held` to their names in dumps."""
    for name in (one["name"] for one in dumps):
        if sanitize(name) in held:
            held[sanitize(name)].name = name
