"""The protocol of a backend, the current experiment, and waiting until an experiment reaches a condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from symphony_charts.backend.status import (
    FINAL,
    Event,
    ExperimentStatus,
    InstanceStatus,
    LogLine,
    LogQuery,
    Phase,
    Usage,
    overall,
)
from symphony_charts.errors import CheckFailed, NotFound, ToolFailed, UsageError
from symphony_charts.formats.names import nearest
from symphony_charts.formats.printable import several
from symphony_charts.system.files import replace_file
from symphony_charts.system.user_folders import state_dir


class Watcher(Protocol):
    """The experiments of one backend. Every method with a name raises NotFound for an unknown experiment."""

    @property
    def backend(self) -> str:
        """``tmux`` or ``kube``."""

    @property
    def place(self) -> str:
        """The key of the current experiment: the backend, and for a cluster its context."""

    def names(self) -> list[str]:
        """Return the names of the experiments, sorted."""

    def experiments(self, *, ended: bool = False) -> list[ExperimentStatus]:
        """Return the experiments by name; with `ended` also those with only records left."""

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        """Return the status of the experiment; without `events` a backend may save a request."""

    def changes(self, name: str, timeout_s: float | None = None) -> Iterator[ExperimentStatus | None]:
        """Yield the status at once and after each change; None when it is gone. Stop then, or after `timeout_s`."""

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        """Yield the lines that match `query`, in order of time; lines of one process keep their order."""

    def events(self, name: str, *, follow: bool = False) -> Iterator[Event]:
        """Yield the events, oldest first; with `follow` until it is gone or has reached a final state."""

    def usage(self, name: str) -> Mapping[str, Usage]:
        """Return resource usage per instance path; instances without metrics are missing."""

    def last_lines(self, name: str) -> Mapping[str, str]:
        """Return the last line of each instance by path, without instances that wrote nothing."""

    def unfinished_lines(self, name: str) -> Mapping[str, str]:
        """Return the last line of each instance that has not ended it, as for a prompt; none if they are unknown."""

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        """Run a command beside the instance, on this terminal; return its exit status."""

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command beside the instance; return its exit status, stdout and stderr."""

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        """Copy a file or folder of the instance to `to`. Raises NotFound if it is missing."""

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        """Copy a file or folder of this machine to the path `to` of the instance."""

    def visit(self, name: str, service: str) -> AbstractContextManager[str]:
        """Return ``host:port`` at which the service answers while the context is open."""

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        """End the experiment and forget it; return the removed objects (with `dry_run`, those it would remove).

        Raises Conflict, before anything is touched, for objects that Argo CD manages and in protected namespaces.
        """


# An instance, a process of a local plan, or a name.
_Named = TypeVar("_Named", bound=Any)


def match_names(names: Iterable[str], name: str, prefix: Callable[[str], str] = str) -> tuple[list[str], bool]:
    """Return the names that `name` may mean, in Symphony's order, and True if it is exact; `prefix` adds the user."""
    ordered = sorted(names)
    full = prefix(name)
    for exact in (full, name):
        if exact in ordered:
            return [exact], True
    loose = [*(known for known in ordered if known.startswith(full)), *_like(ordered, str, name)]
    return list(dict.fromkeys(loose)), False


def match_processes(pairs: Iterable[tuple[str | None, str]], name: str) -> tuple[list[tuple[str | None, str]], bool]:
    """Return the (group, process) pairs that ``process`` or ``group/process`` may mean, and True if it is exact."""
    group, _, process = name.rpartition("/")
    ordered = sorted((pair for pair in pairs if group in ("", pair[0])), key=lambda pair: (pair[1], str(pair[0])))
    exact = [pair for pair in ordered if pair[1] == process]
    if exact:
        return exact, True
    return list(dict.fromkeys(_like(ordered, lambda pair: pair[1], process))), False


def _like(ordered: Sequence[_Named], name_of: Callable[[_Named], str], word: str) -> Iterator[_Named]:
    """Yield those whose names begin with `word`, then those that end with it, then those that contain it."""
    for is_like in (str.startswith, str.endswith, str.__contains__):
        yield from (one for one in ordered if is_like(name_of(one), word))


def find_instances(every: Iterable[_Named], name: str) -> list[_Named]:
    """Return those that `name` names exactly: ``process`` with all its replicas, ``process-K`` or ``process/K``.

    Each may follow ``group/``, and a process the name of its pod. An exact process name comes first: ``agent-1`` is
    then not replica 1 of ``agent``, which is ``agent/1``.
    """
    every = list(every)
    exact = [one for one in every if name in (one.process, f"{one.group}/{one.process}")]
    return exact or [
        one
        for one in every
        if name in (one.name, f"{one.group}/{one.name}", f"{one.pod}/{one.process}")
        or name in (f"{one.process}/{one.index}", f"{one.group}/{one.process}/{one.index}")
    ]


def chosen_at(place: str) -> str | None:
    """Return the chosen name for a place (see `Watcher.place`), even if it no longer runs."""
    name = _read().get(place)
    return name if isinstance(name, str) else None


def set_current(place: str, name: str | None) -> None:
    """Choose an experiment for a place; None clears the choice."""
    chosen = {key: value for key, value in {**_read(), place: name}.items() if value}
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, json.dumps(chosen).encode())


def current_of(watcher: Watcher) -> str:
    """Return the chosen experiment if it exists, else the only one. Raises NotFound, listing all."""
    names = watcher.names()
    chosen = chosen_at(watcher.place)
    if chosen in names:
        return chosen
    if len(names) == 1:
        return names[0]
    if names:
        raise NotFound(f"several experiments run here: {', '.join(names)}", next="name one, or symph use")
    if ended := watcher.experiments(ended=True):
        last = max(ended, key=lambda status: status.ended or 0.0).name
        what = f"no experiment runs here; {last} was the last one to end"
        raise NotFound(what, next=f"symph ps {last}, or start one: symph up SPEC")
    raise NotFound("no experiment runs here", next="start one: symph up SPEC")


def absent_experiment(name: str, running: Sequence[str]) -> NotFound:
    """Return the error for a name that does not run: it detects spec files and lists running experiments."""
    known = f"running now: {', '.join(dict.fromkeys(running))}" if running else "nothing runs; symph up SPEC starts it"
    if near := nearest(name, running):
        known = f"did you mean {near}? {known}"
    return NotFound(f'experiment "{name}" does not run here', next=known)


def _path() -> Path:
    return state_dir() / "current.json"


def _read() -> dict[str, object]:
    with suppress(OSError, ValueError):
        data = json.loads(_path().read_text(encoding="utf-8"))
        return data if isinstance(data, dict) else {}
    return {}


# Values of `symph wait --for=`.
CONDITIONS = ("running", "ready", "succeeded", "failed", "ended", "deleted")


def wait_until(
    watcher: Watcher, name: str, condition: str, *, process: str = "", timeout_s: float | None = None
) -> ExperimentStatus | None:
    """Return the status once `condition` holds (of `process`, if given); None when the experiment is gone.

    Raises UsageError for an unknown condition, CheckFailed when it cannot hold any more, ToolFailed after `timeout_s`.
    """
    if condition not in CONDITIONS:
        raise UsageError(f'nothing waits for "{condition}"', next=f"one of {', '.join(CONDITIONS)}")
    last: ExperimentStatus | None = None
    try:
        for status in watcher.changes(name, timeout_s):
            if status is None:
                break
            last = status
            phase, ready = _state_of(status, process, condition)
            if _holds(phase, ready, condition):
                return status
            if phase in FINAL and condition != "deleted":
                reasons = _reasons(status, process) or status.note or "no process says why"
                verb = "is" if phase in ("damaged", "lost") else "has"
                what = f'"{process or name}" {verb} {phase} and will not be {condition}: {reasons}'
                raise CheckFailed(what, next=f"symph logs {name}")
        else:
            reasons = _reasons(last, process) if last else ""
            how = f"{_state_of(last, process)[0]}{reasons and f': {reasons}'}" if last else "silent"
            what = f'"{process or name}" is not {condition} after {timeout_s or 0:g} s, but {how}'
            raise ToolFailed(what, next=f"wait longer with --timeout, or look: symph status {name}")
    except NotFound:
        if condition != "deleted":
            raise
    if condition != "deleted":
        raise CheckFailed(f'"{name}" is gone; it will never be {condition}')
    return None


def _state_of(status: ExperimentStatus, process: str, condition: str = "ended") -> tuple[Phase, bool]:
    every = [instance for instance in status.instances if not instance.is_step]
    chosen = find_instances(status.instances, process) if process else every
    if process and not chosen:
        raise NotFound(f'experiment "{status.name}" has no process "{process}"')
    ready = bool(chosen) and all(instance.ready or instance.phase == "succeeded" for instance in chosen)
    # While some processes run on after others failed here, the experiment cannot succeed any more. On a cluster its
    # controller may try again.
    is_partial = status.backend == "tmux" and status.phase == "running" and condition not in ("running", "ended")
    return overall(chosen) if process or is_partial else status.phase, ready


def _holds(phase: Phase, ready: bool, condition: str) -> bool:
    if condition == "ready":
        return ready
    if condition == "running":
        return phase in ("running", "succeeded")
    return phase in FINAL if condition == "ended" else phase == condition


def _reasons(status: ExperimentStatus, process: str) -> str:
    chosen = find_instances(status.instances, process) if process else status.instances
    together: dict[str, list[str]] = {}
    for instance in chosen:
        if instance.phase in ("failed", "pending", "queued"):
            together.setdefault(instance.state, []).append(instance.path)
    return "; ".join(f"{several(paths)} {state}" for state, paths in together.items())
