"""`Watcher` is the protocol of a backend: what can be asked of, and done to, its experiments by all watching verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from symphony_charts.backend.status import Event, ExperimentStatus, InstanceStatus, LogLine, LogQuery, Usage
from symphony_charts.errors import NotFound

__all__ = ["Watcher", "find_instances", "match_names", "match_processes"]


class Watcher(Protocol):
    """The experiments of one backend. Everything that takes a name raises NotFound unless it is one of ours."""

    @property
    def backend(self) -> str:
        """``tmux`` or ``kube``."""

    @property
    def place(self) -> str:
        """The key of the current experiment: the backend, and for a cluster its context."""

    def names(self) -> list[str]:
        """Return the names of the experiments, sorted."""

    def experiments(self, *, ended: bool = False) -> list[ExperimentStatus]:
        """Return the experiments by name; with `ended` also those of which only records are left."""

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        """Return the status of the experiment; `events` may be left out where they cost a request."""

    def changes(self, name: str, timeout_s: float | None = None) -> Iterator[ExperimentStatus | None]:
        """Yield the status at once and after each change; None when it is gone. Stop then, or after `timeout_s`."""

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        """Yield the lines that `query` asks for, in order of time; those of one process in their own order."""

    def events(self, name: str, *, follow: bool = False) -> Iterator[Event]:
        """Yield the events, oldest first; with `follow` until it is gone or has reached a final state."""

    def usage(self, name: str) -> Mapping[str, Usage]:
        """Return resource usage per instance path; instances without metrics are missing."""

    def last_lines(self, name: str) -> Mapping[str, str]:
        """Return the last line that each instance wrote, by its path; those that wrote nothing are absent."""

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        """Run a command where the instance runs, on this terminal; its exit status."""

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command where the instance runs: its exit status, and what it wrote to stdout and stderr."""

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        """Copy a file or folder of the instance to `to`; raises NotFound where it is not there."""

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        """Copy a file or folder of this machine to the path `to` of the instance."""

    def visit(self, name: str, service: str) -> AbstractContextManager[str]:
        """Return ``host:port`` at which the service answers as long as the context is open."""

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        """End the experiment and forget it; what was (or would be) removed.

        Raises Conflict, before anything is touched, for what Argo CD manages and in protected namespaces.
        """


def match_names(names: Iterable[str], name: str, prefix: Callable[[str], str] = str) -> tuple[list[str], bool]:
    """Return the names that `name` may mean, in Symphony's order, and True if it is exact; `prefix` adds the user."""
    ordered = sorted(names)
    full = prefix(name)
    for exact in (full, name):
        if exact in ordered:
            return [exact], True
    loose = [
        *(known for known in ordered if known.startswith(full)),
        *(known for known in ordered if known.startswith(name)),
        *(known for known in ordered if known.endswith(name)),
        *(known for known in ordered if name in known),
    ]
    return list(dict.fromkeys(loose)), False


def match_processes(pairs: Iterable[tuple[str | None, str]], name: str) -> tuple[list[tuple[str | None, str]], bool]:
    """Return the (group, process) pairs that ``process`` or ``group/process`` may mean, and True if it is exact."""
    group, _, process = name.rpartition("/")
    ordered = sorted((pair for pair in pairs if group in ("", pair[0])), key=lambda pair: (pair[1], str(pair[0])))
    exact = [pair for pair in ordered if pair[1] == process]
    if exact:
        return exact, True
    loose = [pair for pair in ordered if pair[1].startswith(process)]
    loose += [pair for pair in ordered if pair[1].endswith(process)]
    return list(dict.fromkeys([*loose, *(pair for pair in ordered if process in pair[1])])), False


def find_instances(status: ExperimentStatus, name: str) -> list[InstanceStatus]:
    """Return the instances that `word` means exactly: ``process``, ``process/K``, ``process-K``, each after ``group/``.

    A process means all its replicas. Empty where nothing fits exactly.
    """
    every = status.instances
    # The whole name of a process comes first: "agent-1" is the process of that name, not replica 1 of "agent".
    replicas = [instance for instance in every if name in (instance.process, f"{instance.group}/{instance.process}")]
    if replicas:
        return replicas
    exact = [instance for instance in every if name in (instance.name, instance.path)]
    if exact:
        return exact
    process, _, index = name.rpartition("/")
    if index.isascii() and index.isdigit():
        matching = [
            instance for instance in every if process in (instance.process, f"{instance.group}/{instance.process}")
        ]
        numbered = [instance for instance in matching if instance.index == int(index)]
        if matching and not numbered:
            indexes = ", ".join(str(instance.index) for instance in matching)
            raise NotFound(f'process "{process}" has no replica {index}', next=f"it has {indexes}")
        return numbered
    return []
