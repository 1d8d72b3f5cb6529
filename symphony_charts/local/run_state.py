"""The layout of `state.json`: the state of a run and its processes, as the supervisor wrote it last.

Both files of a run are decoded strictly: a damaged file, or one of another version, is an error before it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.run_files import damaged, read_json, write_json
from symphony_charts.system.processes import ProcessRecord
from symphony_charts.system.records import convert

_T = TypeVar("_T")
# ``lingering`` and ``kept``: the run has its result, and services go on, for a while or until `symph down`. ``over``:
# nothing runs any more, and the supervisor is cleaning up; in the file it is ``stopping``.
RunPhase: TypeAlias = Literal[
    "starting", "running", "lingering", "kept", "stopping", "over", "finished", "failed", "stopped", "lost", "damaged"
]
ProcessPhase: TypeAlias = Literal[
    "waiting", "starting", "running", "backoff", "done", "failed", "stopped", "lost", "damaged"
]


class Failure(Struct, frozen=True, kw_only=True):
    """The first process that failed for good."""

    name: str
    status: int | None
    slot: int


class ProcessState(Struct, kw_only=True, omit_defaults=True):
    """One process. Times are in seconds since 1970: `began` its first start, `started` and `ended` its last.

    `wrapper` is the current or last program in its pane. `unready`, `unhealthy` and `held` are reasons: for not being
    ready, for its end, and for a delayed restart. `in_a_row` counts the restarts without a long run in between. A
    process with `is_stopped` was stopped by a command.
    """

    slot: int
    name: str
    group: str
    pod: str
    phase: ProcessPhase
    ready: bool
    restarts: int
    status: int | None
    wrapper: ProcessRecord | None = None
    began: float | None = None
    started: float | None = None
    ended: float | None = None
    unready: str = ""
    unhealthy: str = ""
    limit: str = ""
    held: str = ""
    in_a_row: int = 0
    is_overdue: bool = False
    is_restart_asked: bool = False
    is_fresh_start: bool = False
    is_stopped: bool = False

    @property
    def path(self) -> str:
        """``group/name``, or the name of a process without a group."""
        return f"{self.group}/{self.name}" if self.group else self.name

    @property
    def cause(self) -> str:
        """The known cause of its failure, else empty."""
        overdue = "past its deadline" if self.is_overdue else ""
        # 127 is the status of shells for a missing program.
        return self.limit or self.unhealthy or overdue or ("command not found" if self.status == 127 else "")


class RunState(Struct, kw_only=True):
    """A run. `reason` is its final phase, `cause` the reason for its end if no process caused it.

    `survivors` are processes that could not be killed, `stuck` mount points that could not be removed, `commits` the
    commit of each Git volume; `tmux` is its tmux server. `is_settled`: what ends with the run has ended, and the run
    has its result, while services go on.
    """

    experiment: str = ""
    phase: RunPhase
    started: float
    ended: float | None = None
    processes: list[ProcessState]
    reason: str = ""
    cause: str = ""
    failed: Failure | None = None
    survivors: list[int] = []
    stuck: list[str] = []
    tmux: ProcessRecord | None = None
    commits: dict[str, str] = {}
    is_settled: bool = False

    @property
    def has_result(self) -> bool:
        """True if the run has ended with `reason` while services go on."""
        return self.phase in ("lingering", "kept")

    def __post_init__(self) -> None:
        """Raise ValueError for slots that do not match the processes."""
        for number, process in enumerate(self.processes):
            if process.slot != number:
                raise ValueError(f"processes[{number}].slot is {process.slot}")
        if self.failed is not None and not 0 <= self.failed.slot < len(self.processes):
            raise ValueError("failed names an unknown process")

    def with_added(self, plan: LocalPlan) -> RunState:
        """Return the state after adding the processes with which a change of the run has extended its plan."""
        for planned in plan.processes[len(self.processes) :]:
            self.processes.append(replace(unstarted(planned), is_fresh_start=True, restarts=-1, in_a_row=-1))
        return self


def unstarted(planned: PlannedProcess) -> ProcessState:
    return ProcessState(
        slot=planned.slot,
        name=planned.name,
        group=planned.group,
        pod=planned.pod,
        phase="waiting",
        ready=False,
        restarts=0,
        status=None,
    )


def read_plan(path: Path) -> LocalPlan:
    """Return the plan in a file. Raises as `read_json` does."""
    return _read_record(path, LocalPlan)


def read_state(path: Path) -> RunState:
    """Return the state in a file. Raises as `read_json` does."""
    return _read_record(path, RunState)


def _read_record(path: Path, kind: type[_T]) -> _T:
    try:
        return convert(read_json(path), kind)
    except msgspec.ValidationError as error:
        raise damaged(path, str(error)) from None


def write_record(path: Path, record: LocalPlan | RunState, *, is_safe: bool = False) -> None:
    """Write a plan or state with `write_json`, which unlike msgspec can write paths that are not UTF-8."""
    write_json(path, msgspec.to_builtins(record), is_safe=is_safe)
