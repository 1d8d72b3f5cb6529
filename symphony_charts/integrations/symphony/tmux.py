"""Symphony's `symphony.tmux`: the local mode of this package under Symphony's names and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.clusters.tmux import TmuxCluster as OurCluster
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.formats.names import sanitize
from symphony_charts.integrations.symphony.errors import symphonys
from symphony_charts.integrations.symphony.local_spec import (
    LocalExperimentSpec,
    LocalProcessGroupSpec,
    LocalProcessSpec,
    WrittenNames,
    WrittenWatcher,
    is_there,
)
from symphony_charts.integrations.symphony.spec import CLUSTER, ExperimentSpec, speaks
from symphony_charts.local.logs import LogFile
from symphony_charts.local.runs import Run, describe_process, find_run, find_slots, runs_of
from symphony_charts.local.tmux_client import DEFAULT_WINDOW, check_server, refuse_taken
from symphony_charts.spec.data import to_record
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import processes_of

__all__ = ["TmuxCluster", "TmuxExperimentSpec", "TmuxProcessGroupSpec", "TmuxProcessSpec"]


# The only process of an empty experiment: the shell in Symphony's first window, whose name no process of a run has.
_SHELL = "main"


def check_name(name: object, what: str) -> None:
    """Raise SpecError (a ValueError) for names that tmux cannot have: empty ones, and those with `:` or `.`."""
    if not isinstance(name, str) or not name or set(name) & set(":."):
        raise SpecError.one(f"{name!r} is not a valid name of {what}", "name", "use letters, digits, - and _")


def with_one_script(experiment: Experiment) -> Experiment:
    """Return `experiment` with the common preamble in front of each process's lines, if all processes have lines."""
    lines = experiment.local.preamble
    processes = [process for _, process in processes_of(experiment)]
    if not lines or any(process.cmds is None for process in processes):
        return experiment

    def joined(process: Process) -> Process:
        return msgspec.structs.replace(process, preamble=[*lines, *process.preamble])

    groups = {
        name: msgspec.structs.replace(group, processes={key: joined(each) for key, each in group.processes.items()})
        for name, group in experiment.groups.items()
    }
    return msgspec.structs.replace(
        experiment,
        groups=groups,
        processes={name: joined(process) for name, process in experiment.processes.items()},
        local=msgspec.structs.replace(experiment.local, preamble=[]),
    )


def _with_a_shell(exp: Any) -> Any:
    """Return `exp`, with a shell to attach to if it has no process, as Symphony started then."""
    if not isinstance(exp, ExperimentSpec) or exp.list_all_processes():
        return exp
    # A shell at a terminal ignores TERM, so the grace period is short.
    shell = Process(command=["bash"], lifecycle="service", grace_period=1)
    return msgspec.structs.replace(to_record(exp.to_data()), processes={_SHELL: shell})


class TmuxProcessSpec(LocalProcessSpec):
    """A process in a pane; `cmds` are its shell lines."""

    backend = "tmux"

    def __init__(
        self, name: str, cmds: str | Iterable[str] | None = None, start_dir: str | None = None, **fields: Any
    ) -> None:
        check_name(name, "a process")
        super().__init__(name, cmds, start_dir=start_dir, **fields)


class TmuxProcessGroupSpec(LocalProcessGroupSpec):
    """A group: a window with a pane for each process."""

    backend = "tmux"
    process_class = TmuxProcessSpec

    def __init__(
        self,
        name: str,
        start_dir: str | None = None,
        preamble_cmds: str | Iterable[str] | None = None,
        **fields: Any,
    ) -> None:
        check_name(name, "a process group")
        super().__init__(name, start_dir=start_dir, preamble_cmds=preamble_cmds, **fields)


class TmuxExperimentSpec(LocalExperimentSpec):
    """An experiment on this machine."""

    backend = "tmux"
    process_class = TmuxProcessSpec
    group_class = TmuxProcessGroupSpec

    def __init__(
        self,
        name: str,
        start_dir: str | None = None,
        preamble_cmds: str | Iterable[str] | None = None,
        port_range: object = None,
        **fields: Any,
    ) -> None:
        check_name(name, "an experiment")
        super().__init__(name, start_dir=start_dir, preamble_cmds=preamble_cmds, port_range=port_range, **fields)


@speaks(CLUSTER)
class TmuxBackend(OurCluster):
    """This machine. A dead process is never reported as live, and a failed start is an error."""

    experiment_class: type[ExperimentSpec] = TmuxExperimentSpec
    # Like Symphony's sessions, an experiment exists until it is deleted, even after its end.
    is_kept = True

    def __init__(self, server_name: str | None = None, *, preamble_cmds: str | Iterable[str] | None = None) -> None:
        super().__init__(server_name, preamble_cmds=preamble_cmds)
        if server_name:
            check_server(server_name)
        # Names of experiments launched here, by name of the run.
        self._written: dict[str, WrittenNames] = {}

    @property
    def watcher(self) -> WrittenWatcher:
        """The runs of this machine under the names that launchers wrote."""
        return WrittenWatcher(is_kept=self.is_kept)

    def new_experiment(self, name: str, **fields: Any) -> ExperimentSpec:
        """Return a new experiment; `preamble_cmds` of the cluster apply unless it has its own."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return self.experiment_class(name, **fields)

    def launch(  # type: ignore[override]  # in Symphony's order
        self, exp: Any, dry_run: bool = False, verbose: bool = True, *, force: bool = False
    ) -> object:
        """Start an experiment; raise ResourceExistsError if one of that name exists. `verbose` has no effect."""
        if isinstance(exp, ExperimentSpec):
            names = WrittenNames.of_spec(exp)
            if not exp.list_all_processes():
                names = replace(names, processes={_SHELL: DEFAULT_WINDOW})
            self._written[sanitize(exp.name)] = names
        with symphonys():
            return super().launch(_with_a_shell(exp), force=force, dry_run=dry_run)

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Start it; all preambles and a process's own lines form one script, as if typed into one shell."""
        joined = with_one_script(experiment)
        names = self._written.get(experiment.name) or WrittenNames(experiment.name)
        taken = [run for run in runs_of(experiment.name) if (is_there(run) if self.is_kept else run.is_live)]
        if taken and not dry_run and not force:
            what = f'experiment "{names.experiment}" is there already'
            raise Conflict(what, next=f"symph rm {experiment.name}, or launch(exp, force=True)")
        if self.server_name and not dry_run:
            refuse_taken(self.server_name, names.experiment)
        started = super().start(joined, folder=folder, pins=pins, force=force, dry_run=dry_run)
        if isinstance(started, Run):
            replace(names, is_kept=self.is_kept).save(started, self.server_name or "")
        return started

    def note_server(self, experiment: Experiment) -> None:
        """Print nothing: the server shows the experiment."""

    def list_experiments(self) -> list[str]:
        """Return the names of all experiments started here and not deleted, like Symphony's sessions."""
        return [status.name for status in self.watcher.experiments(ended=not self.is_kept)]

    def delete(self, experiment_name: str, **_: Any) -> None:
        """End an experiment and remove its runs and logs. Raises ValueError if it does not exist."""
        with symphonys():
            self.watcher.delete(experiment_name)

    def describe_experiment(self, experiment_name: str) -> Mapping[str | None, Mapping[str, Mapping[str, str]]]:
        """Return group (None: lone processes) -> process -> `{"status": "live"}`, or a description of its end."""
        described: dict[str | None, dict[str, dict[str, str]]] = {}
        with symphonys():
            run = find_run(sanitize(experiment_name))
            names, state = WrittenNames.of(run), run.state()
        for process in state.processes:
            status = "live" if process.phase in ("starting", "running") else describe_process(process, state)
            name = names.process(process.group, process.name)
            if name != DEFAULT_WINDOW:
                described.setdefault(names.group(process.group) or None, {})[name] = {"status": status}
        return described

    def describe_process_group(
        self, experiment_name: str, process_group: str | None
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the status of one group's processes (None: the lone ones), by name."""
        return self.describe_experiment(experiment_name).get(process_group, {})

    def describe_process(
        self, experiment_name: str, process_name: str, process_group: str | None = None
    ) -> Mapping[str, str]:
        """Return the status of one process. Raises ValueError."""
        processes = self.describe_process_group(experiment_name, process_group)
        if process_name not in processes:
            raise ValueError(f'experiment "{experiment_name}" has no process "{process_name}"')
        return processes[process_name]

    def get_log(  # type: ignore[override]  # Symphony's tmux gave lines where every other backend gave text
        self,
        experiment_name: str,
        process_name: str,
        process_group: str | None = None,
        follow: bool = False,
        since: float = 0,
        tail: int = -1,
        print_logs: bool = False,
    ) -> list[str]:
        """Return the lines that a process has printed: the last `tail`, or all; other arguments are ignored here."""
        with symphonys():
            run = find_run(sanitize(experiment_name))
            name = f"{process_group}/{process_name}" if process_group else process_name
            logs = [LogFile(run.process_dir(index) / "log") for index in find_slots(run.plan(), sanitize(name))]
        lines = [line for log in logs for _, text in log.lines() for line in text.splitlines() or [""]]
        return lines if tail < 0 else lines[-tail:] if tail else []


TmuxCluster = TmuxBackend
