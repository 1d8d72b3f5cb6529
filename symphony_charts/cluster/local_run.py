"""Starting and stopping experiments on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

from symphony_charts.adapters import data, processes, tmux
from symphony_charts.adapters.dirs import runtime_dir, state_dir
from symphony_charts.cluster.local_history import save_spec
from symphony_charts.cluster.local_machine import namespace_prefix, plan_here, raise_limits
from symphony_charts.cluster.local_store import Run, runs_of, write_json
from symphony_charts.errors import CheckFailed, Conflict, SymphError, ToolFailed
from symphony_charts.local.records import LocalPlan, PlannedProcess
from symphony_charts.local.scripts import check_path, mounts_script, quote, start_script, tmux_commands
from symphony_charts.network.services import Service, allocate
from symphony_charts.spec.model import Experiment

__all__ = ["down", "ensure_supervised", "launch", "up", "wait"]


def launch(experiment: Experiment, *, force: bool = False, dry_run: bool = False) -> Run | None:
    """Start `experiment` with freshly allocated ports; with `dry_run` print what would be started."""
    return up(experiment, allocate(experiment), folder=Path.cwd(), force=force, dry_run=dry_run)


def up(
    experiment: Experiment,
    services: Sequence[Service],
    *,
    folder: Path,
    force: bool = False,
    dry_run: bool = False,
) -> Run | None:
    """Start `experiment`, whose relative paths count from `folder`; returns once every process has been started.

    Raises Conflict when it runs already (`force` ends that run first), SpecError when it cannot run on one machine,
    ToolMissing without tmux, ToolFailed when the machine refuses.
    """
    if dry_run:
        sys.stdout.write(describe(plan_here(experiment, services, folder, run_id="dry-run")))
        return None
    found = runs_of(experiment.name)
    if found and found[-1].is_live:
        if not force:
            what = f'experiment "{experiment.name}" runs already'
            raise Conflict(what, next=f"symph down {experiment.name}, or start it with --force")
        down(found[-1])
    run_id = _new_run_id()
    plan = plan_here(experiment, services, folder, run_id)
    run = Run(state_dir() / "local" / experiment.name / run_id)
    check_path(str(run.folder))
    raise_limits(len(plan.processes))
    try:
        _lay_out(run, plan, folder)
        save_spec(run, experiment, folder)
        _start(run, plan)
    except BaseException:
        tmux.kill_server(run.socket)
        shutil.rmtree(run.folder, ignore_errors=True)
        raise
    return run


def down(run: Run, timeout_s: float = 120.0) -> None:
    """End a run and wait until nothing of it is left; raises CheckFailed naming what survives."""
    if not run.is_live:
        return
    ensure_supervised(run)
    processes.signal_process([int(run.state()["supervisor"])], signal.SIGTERM)
    _await_end(run, timeout_s)
    left = run.state()["survivors"]
    if left:
        raise CheckFailed(f"processes survived: {', '.join(map(str, left))}", next="look at them: ps -p PID -f")


def wait(run: Run) -> int:
    """Wait until a run is over; its exit status: 0, or the status of the first process that failed."""
    while run.is_live:
        ensure_supervised(run)
        _await_end(run, None)
    state = run.state()
    return int(state["failed"]["status"]) if state.get("failed") else 0


def ensure_supervised(run: Run) -> None:
    """Give a live run whose supervisor is gone a new one."""
    if not run.is_live or run.is_supervised:
        return
    _supervise(run)


def _new_run_id() -> str:
    """The time of the start to the microsecond: ids of later runs sort later."""
    now = time.time_ns()
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime(now // 10**9)) + f"{now % 10**9 // 1000:06d}"


def describe(plan: LocalPlan) -> str:
    """A plan in words, without the values of variables."""
    lines = [f"{plan.experiment}  at {plan.base_address}"]
    for process in plan.processes:
        name = f"{process.group}/{process.name}" if process.group else process.name
        lines.append(f"  {name}: {' '.join(map(quote_if_needed, process.argv))}")
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes)]) + "\n"


def quote_if_needed(word: str) -> str:
    """`word` as one would type it in a shell."""
    return word if word and all(char.isalnum() or char in "-_./=:,@%+" for char in word) else quote(word)


def _lay_out(run: Run, plan: LocalPlan, folder: Path) -> None:
    """Write everything the run needs into its folder, readable by its owner alone."""
    run.folder.mkdir(parents=True, mode=0o700)
    runtime_dir().mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in data.folder("local").items():
        if name.endswith(".sh"):
            _write(run.folder / name, content)
    for file in plan.files:
        _write(run.folder / file.path, file.content, file.mode)
    for place in plan.folders:
        Path(place).mkdir(parents=True, exist_ok=True)
    for process in plan.processes:
        _lay_out_process(run, process)
    if plan.has_namespace:
        _write(run.folder / "enter", mounts_script(str(run.folder), plan.binds).encode())
    _write(run.folder / "up.conf", tmux_commands(plan, str(run.folder)).encode())
    write_json(run.folder / "plan.json", {**_public(plan), "folder": str(folder)})
    write_json(run.folder / "state.json", _first_state(plan))


def _lay_out_process(run: Run, process: PlannedProcess) -> None:
    folder = run.process_dir(process.slot)
    folder.mkdir(parents=True, mode=0o700)
    _write(folder / "start", start_script(process).encode())
    _write(folder / "log", b"")
    if process.binds:
        _write(folder / "mounts", mounts_script(str(run.folder), process.binds).encode())
    if not process.tty:
        _write(folder / "plain", b"")
    if process.waits:
        os.mkfifo(folder / "go", 0o600)


def _start(run: Run, plan: LocalPlan) -> None:
    """One call of tmux starts everything; then what it made is counted."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    prefix = [*namespace_prefix(), "/bin/sh", str(run.folder / "enter")] if plan.has_namespace else []
    tmux.start(run.socket, run.folder / "up.conf", prefix, {**env, "TERM": "tmux-256color"})
    panes = tmux.list_panes(run.socket)
    if len(panes) != len(plan.processes):
        raise ToolFailed(f"tmux started {len(panes)} of {len(plan.processes)} processes")
    _supervise(run)


def _supervise(run: Run) -> None:
    """Start a supervisor and wait until it has written its first state."""
    log = run.folder / "supervisor.log"
    opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # Not a Popen object: the supervisor outlives this program and is nobody's to wait for.
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "symphony_charts.cluster.local_supervisor", str(run.folder)],
        {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), opened, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    deadline = time.monotonic() + 20
    while processes.is_alive(pid) and time.monotonic() < deadline:
        if run.state()["supervisor"] == pid or not run.is_live:
            return
        time.sleep(0.005)
    if run.is_live:
        raise ToolFailed("the supervisor of the run did not start", str(log))


def _await_end(run: Run, timeout_s: float | None) -> None:
    """Sleep until the supervisor of `run` is gone."""
    pid = int(run.state()["supervisor"])
    if not processes.is_alive(pid):
        return
    descriptor = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    if not ready:
        raise SymphError(f'experiment "{run.experiment}" did not end within {timeout_s:g} s')
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _public(plan: LocalPlan) -> dict[str, object]:
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


def _first_state(plan: LocalPlan) -> dict[str, object]:
    names = ("slot", "name", "group", "pod")
    return {
        "experiment": plan.experiment,
        "phase": "starting",
        "supervisor": 0,
        "started": time.time(),
        "processes": [
            {
                **{name: getattr(process, name) for name in names},
                "phase": "waiting",
                "ready": False,
                "restarts": 0,
                "status": None,
            }
            for process in plan.processes
        ],
    }


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    path.chmod(mode)
