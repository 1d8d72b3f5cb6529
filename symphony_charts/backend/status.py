"""The status of an experiment, in one layout for every backend. Times are seconds since 1970.

Imported by `symph ps`: keep it light.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from symphony_charts.formats.printable import age, with_gpus

# ``lost``: nothing of the run can be alive any more; ``damaged``: its records are unreadable.
Phase = Literal["queued", "pending", "running", "succeeded", "failed", "stopping", "stopped", "lost", "damaged"]

# Phases without a successor.
FINAL: tuple[Phase, ...] = ("succeeded", "failed", "stopped", "lost", "damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try of a process that has ended; `cause` is known for an end by a limit or probe, or on request."""

    started: float | None
    ended: float
    status: int | None
    cause: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for other types."""
        types = type(self.ended), type(self.cause), type(self.started or 0.0), type(self.status or 0)
        if types != (float, str, float, int):
            raise ValueError("it is not a try")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceStatus:
    """One running copy of a process: a pane here, a container on a cluster.

    `name` is the user's name for it (``agent-1``), `group` its group (empty: none), `index` its replica. `state` is the
    full state as text; `reason` is why it waits or failed, or empty; `status` is the exit status. `place` is the node,
    or the loopback address here; `pod` the pod or window; `is_step` a step before the process; `gpus` the ids of its
    GPUs on this machine. `container` is the name of its container if that differs from the process. `tries` are those
    that have ended on this machine, oldest first.
    """

    name: str
    process: str
    container: str = ""
    group: str = ""
    index: int = 0
    phase: Phase
    state: str
    ready: bool = False
    restarts: int = 0
    status: int | None = None
    reason: str = ""
    place: str = ""
    pod: str = ""
    started: float | None = None
    ended: float | None = None
    is_step: bool = False
    is_service: bool = False
    gpus: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()

    @property
    def path(self) -> str:
        """``group/name``, or the name without a group."""
        return f"{self.group}/{self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """A process with all its replicas: the numbers of `active` (pending or running), `succeeded`, `failed`, `ready`."""

    name: str
    group: str
    phase: Phase
    active: int
    succeeded: int
    failed: int
    ready: int
    restarts: int
    places: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    reason: str
    instances: tuple[InstanceStatus, ...]

    @property
    def path(self) -> str:
        """``group/name``, or the name without a group."""
        return f"{self.group}/{self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """A service: its address inside of the experiment, and its external address (empty: only by `visit`)."""

    name: str
    address: str
    outside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event: `kind` is ``Normal`` or ``Warning``, `about` the object as ``Pod/agent-0``."""

    time: float
    kind: str
    about: str
    reason: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentStatus:
    """One experiment on one backend.

    `name` is the running name (a release may have another name than its `experiment`); `run` distinguishes runs of the
    same name, `chart` is the chart and version in the label of its objects; `held_by` lists its owners: ``tmux``,
    ``Helm release rl, revision 2``, ``Argo CD application rl``; empty means that the objects were applied by hand.
    `still_running` are the services that go on after the end of the run, `ended_with_run` what ended with it.
    `labels` are its own, and on a cluster the labels of its objects. `note` is a remark on the whole status, for
    example that it comes from another machine; usually empty.
    """

    name: str
    experiment: str
    backend: str
    phase: Phase
    started: float
    ended: float | None = None
    run: str = ""
    chart: str = ""
    namespace: str = ""
    held_by: tuple[str, ...] = ()
    instances: tuple[InstanceStatus, ...] = ()
    services: tuple[ServiceStatus, ...] = ()
    still_running: tuple[str, ...] = ()
    ended_with_run: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def phase_text(self) -> str:
        """The phase for people: ``running (1 failed)`` while other processes keep running."""
        failed = sum(instance.phase == "failed" for instance in self.instances)
        return f"{self.phase} ({failed} failed)" if failed and self.phase == "running" else self.phase

    @property
    def seconds(self) -> float | None:
        """The duration so far; None if it ended at an unknown time."""
        return seconds_of(self.phase, self.started, self.ended)

    @property
    def processes(self) -> tuple[ProcessStatus, ...]:
        """The processes with their replicas counted, in order of declaration."""
        return gather(self.instances)

    @property
    def is_final(self) -> bool:
        """True if its phase can no longer change."""
        return self.phase in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a process: `text` with its line end, `process` under the user's name for it."""

    time: float
    process: str
    text: str


# Groups with a question mark, such as a lookahead, ends of a text, and possessive repeats: they see the next lines.
_LOOKS_AROUND = re.compile(r"\(\?|\\[AZz]|[*+?}]\+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """A query for log lines: instances (paths; empty: all), time span, and number from the end (-1: all).

    `follow` continues, over restarts and new runs, until the experiment has reached a final state; with `is_one_run` it
    does not wait for a new run on this machine. `previous` reads the lines of the previous run (container); `regex`
    keeps only matching lines. With `in_blocks` lines of a process may come together, with the time of the first:
    that is faster.
    """

    instances: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    tail: int = -1
    regex: str = ""
    follow: bool = False
    is_one_run: bool = False
    previous: bool = False
    in_blocks: bool = False

    def __post_init__(self) -> None:
        """Raise re.error for an invalid regular expression, before anything is read."""
        re.compile(self.regex)

    def wants(self, line: LogLine) -> bool:
        """Return True if a line is in the time span and matches the regular expression."""
        return self.is_in_time(line.time) and (not self.regex or re.search(self.regex, line.text) is not None)

    def is_in_time(self, moment: float) -> bool:
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)

    def matching(self, text: str) -> str:
        """Return the lines of `text` in which the regular expression is found, each of them searched by itself.

        A line with a match has one for the whole text as well, unless the expression looks beyond it.
        """
        if not self.regex:
            return text
        found, place, line = [], 0, re.compile(self.regex)
        whole = re.compile(self.regex, re.MULTILINE) if not _LOOKS_AROUND.search(self.regex) else None
        while place < len(text):
            match = whole.search(text, place) if whole else None
            if whole and not match:
                break
            at = match.start() if match else place
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at) + 1 or len(text)
            if line.search(text[begin:end]):
                found.append(text[begin:end])
            place = end
        return "".join(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of an instance: CPUs (1.0: one whole) and bytes of memory; None if nothing measures it.

    `gpu` is the mean load of its GPUs (1.0: fully used), and `gpu_memory` their used bytes.
    """

    cpu: float | None = None
    memory: int | None = None
    gpu: float | None = None
    gpu_memory: int | None = None


def gather(instances: Iterable[InstanceStatus]) -> tuple[ProcessStatus, ...]:
    """Group the instances by process, in order of appearance; steps do not count."""
    together: dict[tuple[str, str], list[InstanceStatus]] = {}
    for instance in instances:
        if not instance.is_step:
            together.setdefault((instance.group, instance.process), []).append(instance)
    return tuple(_process(group, name, members) for (group, name), members in together.items())


def unfinished(instances: Iterable[InstanceStatus], gpus_of: Callable[[InstanceStatus], int]) -> tuple[str, ...]:
    """Return the processes of which an instance has not ended, with the GPUs of these instances."""
    live = gather(one for one in instances if one.phase not in FINAL)
    return tuple(with_gpus(one.path, sum(map(gpus_of, one.instances))) for one in live)


def overall(instances: Iterable[InstanceStatus]) -> Phase:
    """Return the phase of all instances: services aside, succeeded if each has, failed if one has."""
    every = [instance for instance in instances if not instance.is_step]
    finite = [instance.phase for instance in every if not instance.is_service] or [instance.phase for instance in every]
    if not finite:
        return "pending"
    for phase in ("lost", "failed", "stopping"):
        if phase in finite:
            return phase
    if all(phase in FINAL for phase in finite):
        return "stopped" if "stopped" in finite else "succeeded"
    if {"running", "succeeded"} & set(finite):
        return "running"
    return "queued" if set(finite) == {"queued"} else "pending"


def seconds_of(phase: Phase, started: float, ended: float | None) -> float | None:
    """Return the duration of something in `phase`; None if it ended at an unknown time."""
    if ended is None and phase in FINAL:
        return None
    return max(0.0, (time.time() if ended is None else ended) - started)


def time_text(moment: float) -> str:
    """Return a time as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def age_since(moment: float) -> str:
    return age(time.time() - moment)


def _process(group: str, name: str, members: list[InstanceStatus]) -> ProcessStatus:
    phases = [member.phase for member in members]
    return ProcessStatus(
        name=name,
        group=group,
        phase=overall(members),
        active=sum(phase not in FINAL for phase in phases),
        succeeded=phases.count("succeeded"),
        failed=phases.count("failed"),
        ready=sum(member.ready for member in members),
        restarts=sum(member.restarts for member in members),
        places=tuple(dict.fromkeys(member.place for member in members if member.place)),
        gpus=tuple(dict.fromkeys(gpu for member in members for gpu in member.gpus)),
        reason=next((member.reason for member in members if member.reason), ""),
        instances=tuple(members),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """The result of one check of `symph doctor`; `next` is the remedy if it failed."""

    name: str
    status: Literal["ok", "warning", "missing"]
    detail: str
    next: str = ""
