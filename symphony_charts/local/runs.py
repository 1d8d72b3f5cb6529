"""Runs on disk: a folder per run with plan, state and logs, which answer every question without asking anybody.

``<state>/local/<experiment>/<run id>/`` holds ``plan.json`` and ``state.json`` (0600, written beside and renamed),
``p/<slot>/log`` and, while the run lives, its scripts, files and pipes. The tmux socket stands in the runtime folder.
This module is imported by `symph process` and must stay light.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats.age import age
from symphony_charts.system.processes import is_alive
from symphony_charts.system.user_folders import runtime_dir, state_dir

__all__ = [
    "LIVE",
    "Run",
    "describe_process",
    "find_run",
    "find_slots",
    "live_runs",
    "process_items",
    "read_json",
    "runs_of",
    "write_json",
]

# Phases in which processes may be running.
LIVE = ("starting", "running", "stopping")


@dataclass(frozen=True, slots=True)
class Run:
    """One run by its folder."""

    folder: Path

    @property
    def home(self) -> Path:
        """The folder of all runs, whose marker says that it is ours (`remover`)."""
        return self.folder.parents[1]

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.folder.parent.name

    @property
    def run_id(self) -> str:
        """The run's id; later runs sort later."""
        return self.folder.name

    @property
    def socket(self) -> Path:
        """Where its tmux server listens; short, since socket paths are limited to 107 bytes."""
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]
        return runtime_dir() / f"{digest}.sock"

    def process_dir(self, slot: int) -> Path:
        """The folder of one process."""
        return self.folder / "p" / str(slot)

    def plan(self) -> dict[str, Any]:
        """The plan as the supervisor needs it; no environment and no secrets."""
        return read_json(self.folder / "plan.json")

    def state(self) -> dict[str, Any]:
        """What the supervisor wrote last."""
        return read_json(self.folder / "state.json")

    @property
    def is_live(self) -> bool:
        """Whether the run has not ended yet, even when its supervisor is gone."""
        try:
            return self.state().get("phase") in LIVE
        except NotFound:
            return False

    @property
    def is_supervised(self) -> bool:
        """Whether its supervisor is there."""
        return is_alive(int(self.state().get("supervisor", 0)))


def runs_of(experiment: str) -> list[Run]:
    """All runs of an experiment that are still on disk, oldest first."""
    if not experiment or "/" in experiment or experiment.startswith("."):
        # A name is one folder; what else is written there must not lead out of ours.
        return []
    folder = state_dir() / "local" / experiment
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except FileNotFoundError:
        return []
    return [Run(folder / name) for name in names]


def live_runs() -> list[Run]:
    """The runs that have not ended, by experiment."""
    try:
        names = sorted(entry.name for entry in os.scandir(state_dir() / "local") if entry.is_dir())
    except FileNotFoundError:
        return []
    return [run for name in names for run in runs_of(name)[-1:] if run.is_live]


def find_run(experiment: str | None, *, live: bool = False) -> Run:
    """The newest run of `experiment`, or of the only one that lives when None is given.

    Raises NotFound when there is none, or several to choose from.
    """
    if experiment is None:
        running = live_runs()
        if len(running) == 1:
            return running[0]
        names = ", ".join(run.experiment for run in running)
        what = f"several experiments run here: {names}" if running else "no experiment runs here"
        raise NotFound(what, next="name one" if running else "start one: symph up SPEC")
    runs = runs_of(experiment)
    if not runs or (live and not runs[-1].is_live):
        names = ", ".join(run.experiment for run in live_runs()) or "none"
        raise NotFound(f'experiment "{experiment}" does not run here', next=f"running now: {names}")
    return runs[-1]


def write_json(path: Path, data: object) -> None:
    """Write beside, then rename: a reader sees the old or the new text, never half of one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        # Not json.dump, which writes in small pieces and is many times slower.
        file.write(json.dumps(data))
    beside.rename(path)


def read_json(path: Path) -> dict[str, Any]:
    """The map in a file of a run. Raises NotFound where it is not there, and ToolFailed where it is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"the run has no {path.name}", str(path.parent)) from None
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(data, dict):
        raise _damaged(path, "it holds no map")
    return data


def _damaged(path: Path, why: str) -> ToolFailed:
    step = "look whether its processes still run, then move the folder of this run away"
    return ToolFailed(f"{path.name} of a run is damaged: {why}", at=str(path), next=step)


def process_items(run: Run) -> list[dict[str, Any]]:
    """What `symph process` shows of each process, in order of declaration."""
    state = run.state()
    return [
        {
            "name": process["name"],
            "group": process["group"],
            "ready": bool(process["ready"]),
            "restarts": process["restarts"],
            "state": describe_process(process, state),
            "phase": process["phase"],
            "status": process["status"],
            "slot": process["slot"],
            "pod": process["pod"],
        }
        for process in state["processes"]
    ]


def describe_process(process: dict[str, Any], state: dict[str, Any]) -> str:
    """The state of a process in words: ``running 4s``, ``failed 3 after 2s``, ``waiting``."""
    phase, started = process["phase"], process.get("started")
    if phase == "running" and started:
        return f"running {age(time.time() - started)}"
    took = f" after {age(process['ended'] - started)}" if started and process.get("ended") else ""
    if phase in ("failed", "backoff"):
        again = ", restarting" if phase == "backoff" else ""
        cause = (
            process.get("limit")
            or process.get("unhealthy")
            or ("past its deadline" if process.get("is_overdue") else "")
            # What shells end with that find no such program.
            or ("command not found" if process["status"] == 127 else "")
        )
        return f"failed {process['status']}{f' ({cause})' if cause else ''}{took}{again}"
    if phase == "stopped" and started and state.get("cause"):
        return f"stopped{took} ({state['cause']})"
    if (phase in ("waiting", "starting") and state["phase"] not in LIVE) or (phase == "stopped" and not started):
        return "never started"
    return f"{phase}{took}"


def find_slots(run: Run, name: str) -> list[int]:
    """The slots of the processes that `name` means: ``process`` with all its replicas, ``process-K`` or ``process/K``.

    Each may stand after ``group/``, and a process after the name of its pod. A process of exactly that name comes
    first: ``agent-1`` is not replica 1 of ``agent`` then, which is ``agent/1``. Raises NotFound with those there are.
    """
    planned = run.plan()["processes"]
    for names in (_names_of_process, _names_of_replica):
        slots = [item["slot"] for item in planned if name in names(item)]
        if slots:
            return slots
    there_are = ", ".join(f"{item['group']}/{item['name']}" if item["group"] else item["name"] for item in planned)
    raise NotFound(f'experiment "{run.experiment}" has no process "{name}"', next=f"its processes: {there_are}")


def _names_of_process(item: dict[str, Any]) -> tuple[str, ...]:
    return (item["process"], f"{item['group']}/{item['process']}")


def _names_of_replica(item: dict[str, Any]) -> tuple[str, ...]:
    group, process, index, own = item["group"], item["process"], item["index"], item["name"]
    return (own, f"{group}/{own}", f"{item['pod']}/{process}", f"{process}/{index}", f"{group}/{process}/{index}")
