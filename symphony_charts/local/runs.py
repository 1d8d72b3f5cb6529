"""Runs on disk: one folder per run with plan, state and logs, which suffice to answer every query.

``<state>/local/<experiment>/<run id>/`` holds ``plan.json`` and ``state.json`` (0600, replaced atomically), its
identity (`run_files`), ``p/<slot>/log`` and, while the run is live, its scripts, files and pipes. The tmux socket is in
the runtime folder. Nothing here starts, ends or writes runs. Imported by `symph ps`: keep it light.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from symphony_charts.backend.protocol import absent_experiment, find_instances
from symphony_charts.errors import NotFound, SymphError, ToolFailed
from symphony_charts.formats.printable import age
from symphony_charts.local.run_files import LIVENESS_LOCK, RunLocation, damaged, run_location, supervisor_of
from symphony_charts.spec import variable_names
from symphony_charts.system import processes
from symphony_charts.system.file_locks import is_liveness_lock_held
from symphony_charts.system.processes import ProcessRecord, identify, is_running, read_stat
from symphony_charts.system.user_folders import refuse_elsewhere, runtime_dir, state_dir

if TYPE_CHECKING:
    from symphony_charts.local.plan.records import LocalPlan
    from symphony_charts.local.run_state import ProcessState, RunState


# Phases in which processes may be running.
LIVE = ("starting", "running", "lingering", "kept", "stopping")


@dataclass(frozen=True, slots=True)
class Run:
    folder: Path

    @property
    def home(self) -> Path:
        """The folder of all runs, with our marker (`remover`)."""
        return self.folder.parents[1]

    @property
    def experiment(self) -> str:
        return self.folder.parent.name

    @property
    def run_id(self) -> str:
        """The run's id; later runs sort later."""
        return self.folder.name

    @property
    def socket(self) -> Path:
        """The socket of its tmux server; a short path, since socket paths are limited to 107 bytes."""
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return runtime_dir() / f"{digest}.sock"

    def process_dir(self, slot: int) -> Path:
        return self.folder / "p" / str(slot)

    def plan(self) -> LocalPlan:
        """Return the plan without environment and secrets. Raises NotFound, and ToolFailed if it is damaged."""
        # Importing msgspec takes 7 ms, which `symph ls` without runs must not spend.
        from symphony_charts.local.run_state import read_plan

        return read_plan(self.folder / "plan.json")

    @property
    def places(self) -> tuple[str, str]:
        """The base folder of the spec's relative paths, and the folder of its start; empty if they are unknown."""
        with contextlib.suppress(NotFound, ToolFailed):
            plan = self.plan()
            return plan.folder, plan.started_in
        return "", ""

    def is_from(self, folder: str) -> bool:
        """Return True if the spec is in `folder`, or the run was started from there."""
        return any(place and is_same_folder(place, folder) for place in self.places)

    def state(self) -> RunState:
        """Return the state that the supervisor wrote last. Raises NotFound, and ToolFailed if it is damaged."""
        from symphony_charts.local.run_state import read_state  # as in `plan`

        path = self.folder / "state.json"
        state = read_state(path)
        if state.experiment not in ("", self.experiment):
            raise damaged(path, f'it belongs to experiment "{state.experiment}"')
        # Another container marks a run as lost if supervisor and tmux are gone: it does not see other processes.
        is_marked = state.phase == "lost" and (self.folder / LIVENESS_LOCK).exists()
        if is_marked and self.location.verdict == "here" and self.members():
            raise damaged(path, "it says that the run is lost, but processes of the run are on this machine")
        return state

    @property
    def is_live(self) -> bool:
        """True if the run has not ended according to its files; its supervisor or machine may be gone."""
        try:
            return self.state().phase in LIVE
        except NotFound:
            return False
        except ToolFailed:
            # The state is unreadable, and processes that outlive tmux and supervisor do not hold the liveness lock.
            return (
                is_liveness_lock_held(self.folder / LIVENESS_LOCK) is not False
                or self.is_supervised
                or bool(self.members())
            )

    @property
    def is_active(self) -> bool:
        """True while the run is live and not lost."""
        return self.is_live and self.location.verdict != "lost"

    @property
    def location(self) -> RunLocation:
        """The place where it lives, if it has not ended."""
        return run_location(self.folder)

    @property
    def supervisor(self) -> ProcessRecord | None:
        """Its supervisor, if it runs and is visible from here."""
        record = supervisor_of(self.folder)
        return record if is_running(record) and self.location.verdict == "here" else None

    @property
    def is_supervised(self) -> bool:
        return self.supervisor is not None

    def members(self, sessions: Iterable[processes.Session] = ()) -> list[ProcessRecord]:
        """Return all processes that provably belong to the run, with tmux and its log writers (`processes.members`)."""
        cookie = f"{variable_names.RUN}={self.run_id}".encode()
        # Processes with their own mount namespace all have this mount, which no other run has. The kernel lists it by
        # its path without links, and the state folder may be behind one.
        return processes.members(str((self.folder / "scratch").resolve()), sessions, cookie)

    def main_process(self, process: ProcessState) -> ProcessRecord | None:
        """Return the user's program of a process, None if it does not run here.

        The wrapper script has written its pid; its parent or session proves that it belongs to the wrapper.
        """
        wrapper = process.wrapper
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.process_dir(process.slot) / "pid").read_text(encoding="ascii"))
            record = identify(pid) if pid > 0 else None
            stat = read_stat(pid) if record else None
            if record and stat and wrapper and wrapper.pid in (stat.parent, stat.session) and is_running(wrapper):
                return record
        return None


def current_folder() -> str:
    """Return the current folder, "" if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - a text is compared and written
    except OSError:
        return ""


def is_same_folder(one: str | Path, other: str | Path) -> bool:
    """Return True if both paths lead to one folder, through links or not."""
    return os.path.realpath(one) == os.path.realpath(other)


def home() -> Path:
    return state_dir() / "local"


def runs_of(experiment: str) -> list[Run]:
    """Return all runs of an experiment that are still on disk, oldest first."""
    if not experiment or "/" in experiment or experiment.startswith("."):
        # A name must be a single folder name, so that it cannot lead out of the state folder.
        return []
    return _runs_in(home() / experiment)


def live_runs(experiment: str | None = None) -> list[Run]:
    """Return the runs (of one experiment) that have not ended, sorted by experiment and age.

    If one of an experiment's runs is elsewhere, those on this machine come last.
    """
    everything = runs_of_all() if experiment is None else [runs_of(experiment)]
    return [run for runs in everything for run in _live_of(runs)]


def live_plans() -> list[LocalPlan]:
    """Return the readable plans of runs that have not ended."""
    plans = []
    for run in live_runs():
        with contextlib.suppress(NotFound, ToolFailed):
            plans.append(run.plan())
    return plans


def newest_runs() -> list[Run]:
    """Return the newest run of each experiment, sorted; a live one comes before newer ones that have ended."""
    return [(_live_of(runs) or runs)[-1] for runs in runs_of_all() if runs]


def runs_of_all() -> Iterator[list[Run]]:
    """Yield the runs of each experiment, by experiment, the oldest first."""
    # Compute the folder once: each start scans all runs, which is measurable in large sweeps.
    folder = home()
    return (_runs_in(folder / name) for name in _folders(folder))


def _runs_in(folder: Path) -> list[Run]:
    return [Run(folder / name) for name in _folders(folder)]


def _live_of(runs: list[Run]) -> list[Run]:
    # An ended run has no liveness lock; this avoids reading the states of all past runs.
    live = [run for run in runs if (run is runs[-1] or (run.folder / LIVENESS_LOCK).exists()) and run.is_live]
    return sorted(live, key=lambda run: run.location.verdict == "here") if len(live) > 1 else live


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ToolFailed(f"cannot read the folder of runs: {error.strerror}", str(folder)) from error


def find_run(experiment: str | None, *, live: bool = False) -> Run:
    """Return the newest run of `experiment`, live ones first; for None the only live run.

    Raises NotFound if there is none, or if several match.
    """
    refuse_elsewhere()
    if experiment is None:
        running = live_runs()
        if len({run.experiment for run in running}) == 1:
            return running[-1]
        names = ", ".join(dict.fromkeys(run.experiment for run in running))
        what = f"several experiments are running here: {names}" if running else "no experiment is running here"
        raise NotFound(what, next="name one" if running else "start one: symph up SPEC")
    runs = runs_of(experiment)
    living = _live_of(runs)
    if runs and live and not living:
        step = f"see its logs: symph logs {experiment}; start it again: symph up SPEC"
        raise NotFound(f'experiment "{experiment}" has ended', next=step)
    if not runs:
        raise absent_experiment(experiment, [run.experiment for run in live_runs()])
    return living[-1] if living else runs[-1]


def describe_process(process: ProcessState, state: RunState) -> str:
    """Return the state of a process as text: ``running 4s``, ``failed 3 after 2s``, ``waiting``."""
    phase, started = process.phase, process.started
    if phase == "running" and started:
        return f"running {age(time.time() - started)}"
    took = f" after {age(process.ended - started)}" if started and process.ended else ""
    if phase in ("failed", "backoff"):
        again = ", restarting" if phase == "backoff" else ""
        status = "with unknown exit status" if process.status is None else process.status
        return f"failed {status}{f' ({process.cause})' if process.cause else ''}{took}{again}"
    if phase == "stopped" and started and state.cause:
        return f"stopped{took} ({state.cause})"
    if (phase in ("waiting", "starting") and state.phase not in LIVE) or (phase == "stopped" and not started):
        return "never started"
    return f"{phase}{took}"


def find_slots(plan: LocalPlan, name: str) -> list[int]:
    """Return the slots of the processes that `name` names (`find_instances`). Raises NotFound, listing all."""
    there = [process for process in plan.processes if not process.is_removed]
    slots = [process.slot for process in find_instances(there, name)]
    if not slots:
        there_are = ", ".join(process.path for process in there)
        raise NotFound(f'experiment "{plan.experiment}" has no process "{name}"', next=f"its processes: {there_are}")
    return slots


def experiment_names() -> set[str]:
    """Return the experiments that run or have run here."""
    with contextlib.suppress(ToolFailed):
        return set(_folders(home()))
    return set()


def process_names() -> set[str]:
    """Return the processes of all live runs, those of groups also as ``group/process``."""
    names = set()
    with contextlib.suppress(SymphError, OSError, ValueError):
        for run in live_runs():
            for process in run.state().processes:
                names |= {process.name, process.path}
    return names
