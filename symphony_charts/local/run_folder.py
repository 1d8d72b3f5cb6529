"""The folder of a run: made, filled with scripts, files and pipes before anything starts, and removed."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

from symphony_charts.local.plan.limits import verdict_script
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import enter_script, mounts_script, start_script, tmux_commands
from symphony_charts.local.runs import Run, write_json
from symphony_charts.system import package_data, remover
from symphony_charts.system.user_folders import make_runtime_dir

__all__ = [
    "UNSTARTED_NAMES",
    "first_state",
    "lay_out",
    "lay_out_shared",
    "make_folder",
    "public",
    "remove_folder",
    "unstarted",
    "write_private",
]

# By what a process is called in plan and state.
UNSTARTED_NAMES = ("slot", "name", "group", "pod")


def make_folder(run: Run) -> None:
    """Make the folder of a run that is to be started. Raises NotOurs where the state folder is somebody else's."""
    remover.make(run.home, run.experiment, run.run_id)


def remove_folder(run: Run) -> None:
    """Remove the folder of a run that could not be started; what could not be removed is said on stderr."""
    left = remover.remove(run.home, run.experiment, run.run_id)
    sys.stderr.write("".join(f"not removed: {entry}\n" for entry in left))


def lay_out_shared(run: Run, plan: LocalPlan) -> None:
    """Write what all processes see into the folder of the run, readable by its owner alone."""
    make_runtime_dir()
    for name, content in package_data.folder("local").items():
        if name.endswith(".sh"):
            write_private(run.folder / name, content)
    for file in plan.files:
        write_private(run.folder / file.path, file.content, file.mode)
    for path in plan.folders:
        Path(path).mkdir(parents=True, exist_ok=True)
    if plan.has_namespace:
        write_private(run.folder / "enter", enter_script(plan, str(run.folder)).encode())


def lay_out(run: Run, plan: LocalPlan, folder: Path, **facts: object) -> None:
    """Write everything else the run needs, and with what is `known` its first state."""
    (run.folder / "p").mkdir(mode=0o700)
    for process in plan.processes:
        _lay_out_process(run, process, is_mounting=plan.has_namespace)
    write_private(run.folder / "up.conf", tmux_commands(plan, str(run.folder)).encode())
    write_json(run.folder / "plan.json", {**public(plan), "folder": str(folder)})
    os.mkfifo(run.folder / "born", 0o600)
    write_json(run.folder / "state.json", {**first_state(plan), **facts}, is_safe=True)


def _lay_out_process(run: Run, process: PlannedProcess, *, is_mounting: bool) -> None:
    folder = run.process_dir(process.slot)
    folder.mkdir(mode=0o700)
    write_private(folder / "start", start_script(process).encode())
    write_private(folder / "log", b"")
    if process.binds and is_mounting:
        write_private(folder / "mounts", mounts_script(str(run.folder), process.binds).encode())
    if process.limits:
        write_private(folder / "limited", verdict_script(process.limits).encode())
    if not process.tty:
        write_private(folder / "plain", b"")
    if process.waits:
        os.mkfifo(folder / "go", 0o600)


def public(plan: LocalPlan) -> dict[str, object]:
    """The plan without environment, content of files and start scripts: what any verb may read."""
    listed = [_shown(process, {"env", "preamble"}) for process in plan.processes]
    return {**_shown(plan, {"processes", "files"}), "processes": listed}


def _shown(record: PlannedProcess | LocalPlan, hidden: set[str]) -> dict[str, object]:
    """The fields of `record` as JSON types; `asdict` copies deeply what is then written anyway, which shows at 500."""
    values = {field.name: getattr(record, field.name) for field in fields(record) if field.name not in hidden}
    return {
        name: [asdict(item) if is_dataclass(item) and not isinstance(item, type) else item for item in value]
        if isinstance(value, tuple)
        else value
        for name, value in values.items()
    }


def unstarted(**names: object) -> dict[str, object]:
    """What `state.json` says of a process of these names before it has started."""
    return {**names, "phase": "waiting", "ready": False, "restarts": 0, "status": None}


def first_state(plan: LocalPlan) -> dict[str, object]:
    """What `state.json` says before anything has started."""
    return {
        "experiment": plan.experiment,
        "phase": "starting",
        "started": time.time(),
        "processes": [
            unstarted(**{name: getattr(process, name) for name in UNSTARTED_NAMES}) for process in plan.processes
        ],
    }


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file that was not there, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    path.chmod(mode)
