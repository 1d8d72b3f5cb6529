"""Symphony's documented methods of a cluster, on top of the backend's `Watcher`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from symphony_charts.backend.protocol import (
    Watcher,
    current_of,
    find_instances,
    match_names,
    match_processes,
    set_current,
    wait_until,
)
from symphony_charts.backend.status import Event, ExperimentStatus, InstanceStatus, LogLine, LogQuery
from symphony_charts.errors import NotFound, SymphError, UsageError

__all__ = ["LOGIN_SHELL", "Watched"]

Statuses = list[ExperimentStatus]
Names = list[str]
Groups = list[str | None]
Matches = tuple[list[str], bool]
Pairs = tuple[list[tuple[str | None, str]], bool]

# A login shell if there is bash; many current images only have `sh`.
LOGIN_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l")


class Watched:
    """The methods of a cluster that watch experiments; a backend supplies `watcher`, or overrides methods."""

    @property
    def watcher(self) -> Watcher:
        """The watcher behind all other methods; a backend provides it, or overrides the methods it supports."""
        what = f"{type(self).__name__} cannot say what runs there"
        raise SymphError(what, next="this backend has no such operation")

    def list(self, *, ended: bool = False) -> Statuses:
        """Return the user's experiments by name; with `ended` also those of which only records are left."""
        return self.watcher.experiments(ended=ended)

    def describe(self, experiment_name: str) -> ExperimentStatus | None:
        """Return the status of an experiment, in one layout for every backend; None if it does not exist."""
        try:
            return self.watcher.describe(experiment_name)
        except NotFound:
            return None

    def logs(self, experiment_name: str, query: LogQuery | None = None) -> Iterator[LogLine]:
        """Yield the output of processes in order of time; see `LogQuery`."""
        return self.watcher.logs(experiment_name, query or LogQuery())

    def log_iter(
        self,
        experiment_name: str,
        process_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: str | None = None,
    ) -> Iterator[str]:
        """Return the lines of replica `k` of a process, with whitespace and line ends unchanged: TorchX's contract.

        Every call reads from the start. With `should_tail` it continues until the experiment reaches a final state.
        Raises ValueError for a stream other than ``combined``: terminals and containers keep only one.
        """
        if streams not in (None, "combined"):
            raise ValueError(f"only the combined stream is kept, not {streams}")
        name = self.choose(experiment_name)
        instances = self._instances(name, f"{process_name}/{k}")
        query = LogQuery(
            instances=tuple(instance.path for instance in instances),
            regex=regex or "",
            since=since.timestamp() if since else None,
            until=until.timestamp() if until else None,
            follow=should_tail,
        )
        return (line.text for line in self.watcher.logs(name, query))

    def events(self, experiment_name: str, *, follow: bool = False) -> Iterator[Event]:
        """Yield the events of an experiment, oldest first."""
        return self.watcher.events(experiment_name, follow=follow)

    def wait(
        self, experiment_name: str, condition: str = "succeeded", *, timeout_s: float | None = None
    ) -> ExperimentStatus | None:
        """Wait until `condition` holds (see `backend.wait`); return the status, None if it is gone.

        Raises CheckFailed if that cannot happen any more, ToolFailed after `timeout_s`.
        """
        return wait_until(self.watcher, experiment_name, condition, timeout_s=timeout_s)

    def exec_command(
        self, experiment_name: str, process_name: str, command: Sequence[str], process_group: str | None = None
    ) -> int:
        """Run a command in the environment of a process, on this terminal; return its exit status."""
        return self.watcher.exec(
            experiment_name, self._instance(experiment_name, process_name, process_group), command, tty=_has_terminal()
        )

    def login(self, experiment_name: str, process_name: str, process_group: str | None = None) -> int:
        """Open a shell in the environment of a process, on this terminal; return its exit status."""
        return self.exec_command(experiment_name, process_name, LOGIN_SHELL, process_group)

    def transfer_file(
        self,
        experiment_name: str,
        src_path: str,
        dest_path: str,
        src_process: str | None = None,
        src_process_group: str | None = None,
        dest_process: str | None = None,
        dest_process_group: str | None = None,
    ) -> None:
        """Copy a file or folder to or from a process; exactly one side names a process."""
        if (src_process is None) == (dest_process is None):
            raise UsageError("exactly one side of a copy is a process", next="name src_process or dest_process")
        if src_process is not None:
            instance = self._instance(experiment_name, src_process, src_process_group)
            self.watcher.copy_out(experiment_name, instance, src_path, Path(dest_path))
        else:
            instance = self._instance(experiment_name, str(dest_process), dest_process_group)
            self.watcher.copy_in(experiment_name, instance, Path(src_path), dest_path)

    def visit(self, experiment_name: str, service: str) -> AbstractContextManager[str]:
        """Return a context that yields ``host:port`` of a service, reachable while the context is open."""
        return self.watcher.visit(experiment_name, service)

    def external_url(self, experiment_name: str, service: str) -> str | None:
        """Return the permanent external ``host:port`` of a service; None while it has none."""
        # Without events the watcher does not ask a cluster for services.
        status = self.watcher.describe(experiment_name)
        for service_status in status.services:
            if service_status.name == service:
                return service_status.outside or None
        names = ", ".join(service_status.name for service_status in status.services) or "none"
        raise NotFound(f'experiment "{experiment_name}" has no service "{service}"', next=f"its services: {names}")

    external_service = external_url

    def delete(self, experiment_name: str) -> None:
        """Delete an experiment. Raises NotFound if it is missing or not ours, Conflict if something else manages it."""
        self.watcher.delete(experiment_name)

    def delete_batch(self, experiment_names: Iterable[str]) -> None:
        """Delete several experiments, in order."""
        for name in experiment_names:
            self.delete(name)

    def set_experiment(self, experiment_name: str) -> None:
        """Make this experiment the default of verbs without a name; raises NotFound."""
        self.watcher.describe(experiment_name, events=False)
        set_current(self.watcher.place, experiment_name)

    def current_experiment(self) -> str:
        """Return the experiment that `set_experiment` chose, or the only one there is; raises NotFound."""
        return self.choose(None)

    def choose(self, experiment_name: str | None) -> str:
        """Return `experiment_name`, or the current experiment for None; raises NotFound."""
        return experiment_name or current_of(self.watcher)

    def get_log(
        self,
        experiment_name: str,
        process_name: str,
        process_group: str | None = None,
        follow: bool = False,
        since: float = 0,
        tail: int = -1,
        print_logs: bool = False,
    ) -> str:
        """Return the output of a process: its last `tail` lines (-1: all) of the last `since` seconds (0: all)."""
        instances = self._instances(experiment_name, process_name, process_group)
        query = LogQuery(
            instances=tuple(instance.path for instance in instances),
            since=time.time() - since if since else None,
            tail=tail,
            follow=follow,
        )
        lines = []
        for line in self.watcher.logs(experiment_name, query):
            lines.append(line.text)
            if print_logs:
                sys.stdout.write(line.text)
        return "".join(lines)

    def list_experiments(self) -> Names:
        """Return the names of the user's experiments that run here."""
        return self.watcher.names()

    def describe_experiment(self, experiment_name: str) -> Mapping[str | None, Mapping[str, Mapping[str, str]]]:
        """Return the state of an experiment: group (None for lone processes) -> process -> Ready, Restarts, State."""
        described: dict[str | None, dict[str, dict[str, str]]] = {}
        for instance in self.watcher.describe(experiment_name, events=False).instances:
            described.setdefault(instance.group or None, {})[instance.name] = {
                "Ready": "1" if instance.ready else "0",
                "Restarts": str(instance.restarts),
                "State": instance.state,
            }
        return described

    def describe_process(
        self, experiment_name: str, process_name: str, process_group: str | None = None
    ) -> Mapping[str, str]:
        """Return the state of one process; raises NotFound."""
        state = self.describe_experiment(experiment_name).get(process_group, {})
        if process_name not in state:
            raise NotFound(f'experiment "{experiment_name}" has no process "{process_name}"')
        return state[process_name]

    def describe_process_group(
        self, experiment_name: str, process_group: str | None
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the state of one group, or with None of the lone processes."""
        return self.describe_experiment(experiment_name).get(process_group, {})

    def find_process(self, experiment_name: str, process_name: str) -> Groups:
        """Return the groups (None for a lone process) that hold a process of this name."""
        state = self.describe_experiment(experiment_name)
        return [group for group, processes in state.items() if process_name in processes]

    def prefix_username(self, name: str) -> str:
        """Return `name` with the prefix of the configured user."""
        return name

    def fuzzy_match_experiment(self, name: str) -> Matches:
        """Return the experiments that `name` may mean, best first, and True if it is exact."""
        return match_names(self.list_experiments(), name, self.prefix_username)

    def fuzzy_match_process(self, name: str, experiment_name: str) -> Pairs:
        """Return the (group, process) pairs that `name` or ``group/name`` may mean, and True if it is exact."""
        state = self.describe_experiment(experiment_name)
        return match_processes(((group, each) for group, processes in state.items() for each in processes), name)

    def _instances(
        self, experiment_name: str, process_name: str, process_group: str | None = None
    ) -> Sequence[InstanceStatus]:
        name = f"{process_group}/{process_name}" if process_group else process_name
        instances = find_instances(self.watcher.describe(experiment_name, events=False).instances, name)
        if not instances:
            raise NotFound(f'experiment "{experiment_name}" has no process "{name}"')
        return instances

    def _instance(self, experiment_name: str, process_name: str, process_group: str | None) -> InstanceStatus:
        instances = self._instances(experiment_name, process_name, process_group)
        return next((instance for instance in instances if instance.phase == "running"), instances[0])


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
