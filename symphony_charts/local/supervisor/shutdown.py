"""Stop runs: supervised, damaged and lost ones; kill all their programs and remove their private files.

Callers hold the lock of the experiment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal

from symphony_charts.errors import CheckFailed, Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.mounts.helper import points_journal
from symphony_charts.local.mounts.mount_points import remove_points
from symphony_charts.local.run_files import LIVENESS_LOCK, clear_liveness
from symphony_charts.local.run_state import ProcessState, RunState, unstarted, write_record
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.launcher import log_line
from symphony_charts.system import processes, remover
from symphony_charts.system.file_locks import has_other_holders, hold_liveness_lock
from symphony_charts.system.files import full_disk
from symphony_charts.system.processes import (
    ProcessRecord,
    Session,
    has_ended_within,
    identify,
    is_running,
    read_stat,
    send_signal,
    ticks_now,
    verified,
)

# After KILL nothing should live; this long is waited for the kernel to agree, in seconds.
_KILL_S = 5.0
# tmux gets this long to read what was printed last, in seconds.
_READ_S = 10.0
# What writes the logs gets this long to write down what is still on its way, in seconds; a busy machine takes its time.
_WRITE_S = 20.0
# On file systems without locks a server that is being started gets this long to be there, in seconds.
_UNHEARD_S = 5.0


def kill_everything(run: Run, sessions: Sequence[processes.Session], server: ProcessRecord | None) -> list[int]:
    """Kill everything of `run`, its tmux server (at its start: `server`) last; the pids of what survives even that."""
    # One that was stopped by hand has to read what was printed, and to go.
    send_signal(server, signal.SIGCONT)
    answer = _server_pid(run)
    tmux = identify(answer) if answer else server if is_running(server) else None
    # Those that write logs stay in its session when it is gone.
    last_server = tmux or server
    writers = last_server.pid if last_server else 0

    def members() -> list[ProcessRecord]:
        return [record for record in run.members(sessions) if tmux is None or record.pid != tmux.pid]

    _kill(lambda: [record for record in members() if not _writes_logs(record, writers)])
    if answer and tmux is not None:
        _await_output(run, tmux)
    tmux_client.kill_server(run.socket)
    send_signal(tmux, signal.SIGKILL)
    deadline = time.monotonic() + _WRITE_S
    while (left := members()) and all(_writes_logs(record, writers) for record in left) and time.monotonic() < deadline:
        time.sleep(0.005)
    if left and all(_writes_logs(record, writers) for record in left):
        log_line(f"the ends of {len(left)} logs could not be written")
    return [record.pid for record in _kill(members)] if left else []


def await_server(run: Run, liveness_lock: int | None) -> None:
    """Wait until the tmux server of an aborted start answers, or there is none.

    It holds the liveness lock before it can be found; `liveness_lock` is this program's own descriptor of it.
    """
    deadline = time.monotonic() + (_UNHEARD_S if liveness_lock is None else tmux_client.START_S)
    while (
        (liveness_lock is None or has_other_holders(liveness_lock))
        and not _server_pid(run)
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)


def abandon(run: Run) -> None:
    """End and remove a run whose start was cut before it was whole: nothing but its tmux server can have been started.

    Raises OSError where its folder is not to be had.
    """
    await_server(run, hold_liveness_lock(run.folder / LIVENESS_LOCK))
    answer = _server_pid(run)
    server = identify(answer) if answer else None
    kill_everything(run, [], server)
    remove_mount_points(server)
    for entry in remover.remove(run.home, run.experiment, run.run_id):
        log_line(f"not removed: {entry}")


def _await_output(run: Run, tmux: ProcessRecord) -> None:
    """Wait until tmux has passed on all output: only then it marks a pane as dead."""
    deadline = time.monotonic() + _READ_S
    with contextlib.suppress(ToolFailed):
        while not all(pane.is_dead for pane in tmux_client.list_panes(run.socket)) and time.monotonic() < deadline:
            # Some builds lose the signal that tells them of a death (tmux/tmux #4559); once more does no harm.
            send_signal(tmux, signal.SIGCHLD)
            time.sleep(0.005)


def _kill(survivors: Callable[[], list[ProcessRecord]]) -> list[ProcessRecord]:
    """Kill until no process is found; return those that are left after a timeout."""
    deadline = time.monotonic() + _KILL_S
    while (left := survivors()) and time.monotonic() < deadline:
        processes.signal_all(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def _writes_logs(record: ProcessRecord, session: int) -> bool:
    """Return True for a program by which tmux writes a log: it ends by itself at the end of its input."""
    stat = read_stat(record.pid)
    return stat is None or stat.is_dead or stat.session == session


def _server_pid(run: Run) -> int | None:
    """Return the pid of the tmux server, 0 if there is none, None if it hangs."""
    with contextlib.suppress(ToolFailed):
        return tmux_client.server_pid(run.socket, timeout_s=2.0)
    return None


def remove_mount_points(server: ProcessRecord | None) -> list[str]:
    """Remove the mount points that only this run used, whose tmux server was `server`; those that stay, and why."""
    deadline = time.monotonic() + _KILL_S
    # It holds their locks until it is gone.
    while is_running(server) and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        return remove_points(str(points_journal()))
    except OSError as error:
        # A full disk, or one that is read-only by now; they stay noted, and the next run looks again.
        return [f"{points_journal()}: {error.strerror}"]


def remove_private(run: Run, count: int) -> None:
    """Remove what the processes saw, secrets first; plan, state and logs stay as the history of the run."""
    parts = ["files", "volumes", "scratch", "up.conf", "mounts.json", "wrapper.sh"]
    names = ("start", "mounts", "mounts.json", "plain", "limited", "go", "pid", "exit", "limit", "tries")
    parts += [f"p/{slot}/{name}" for slot in range(count) for name in names]
    try:
        left = remover.remove_parts(run.home, (run.experiment, run.run_id), parts)
    except NotFound as error:
        left = [str(error)]
    for entry in left:
        log_line(f"not removed: {entry}")


# Whoever waits for longer than this, in seconds, is told for what.
_PATIENCE_S = 1.5
_MOST_NAMES = 3
# Whoever is asked to end a run says that it ends within so many seconds, or hangs.
_HUNG_S = 10.0


def require_here(run: Run) -> None:
    """Raise Conflict where `run` lives, or may live, where its processes are not to be seen from here."""
    where = run.location
    if where.verdict not in ("elsewhere", "unknown"):
        return
    what = f'experiment "{run.experiment}": {where.words}'
    there = f"there: symph down {run.experiment}"
    if where.verdict == "unknown":
        there += f"; if that is gone for good: symph down {run.experiment} --lost"
    raise Conflict(what, str(run.folder), there)


def damage_of(run: Run) -> SymphError | None:
    """Return the error that keeps a supervisor from taking over `run`, if there is one."""
    try:
        state, plan = run.state(), run.plan()
        if len(plan.processes) != len(state.processes):
            return CheckFailed("state and plan are of different runs")
    except (NotFound, ToolFailed) as error:
        return error
    return None


def stop(run: Run, timeout_s: float) -> None:
    """Stop `run` through its supervisor, and wait for its end; raises CheckFailed after `timeout_s` seconds.

    One that does not even begin to is killed, and said to be; the run lives on, for another supervisor to end it.
    """
    record = run.supervisor
    with verified(record) as descriptor:
        if descriptor is None or record is None:
            return
        # One that was stopped by hand hears nothing until it goes on.
        for number in (signal.SIGTERM, signal.SIGCONT):
            signal.pidfd_send_signal(descriptor, number)
        began = time.monotonic()
        if not has_ended_within(descriptor, min(timeout_s, _PATIENCE_S)):
            sys.stderr.write(f"{run.experiment}: waiting for {_awaited(run, record)}\n")
        if not has_ended_within(descriptor, min(timeout_s, _HUNG_S)) and not _is_ending(run):
            sys.stderr.write(f"{run.experiment}: killed its supervisor (pid {record.pid}), which heard nothing\n")
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        if not has_ended_within(descriptor, timeout_s - (time.monotonic() - began)):
            what = f'experiment "{run.experiment}" did not end within {timeout_s:g} s: {_awaited(run, record)}'
            raise CheckFailed(what, next=f"symph describe {run.experiment}")
    _reap(record)


def _is_ending(run: Run) -> bool:
    """Return True if the supervisor has begun to end `run`, or cannot write that it has."""
    with contextlib.suppress(NotFound, ToolFailed):
        return run.state().phase not in ("starting", "running") or bool(full_disk(run.folder))
    return True


def await_supervisor(run: Run, seconds: float | None) -> None:
    """Wait until the supervisor of `run` has ended, at most `seconds` (None: without limit)."""
    record = run.supervisor
    with verified(record) as descriptor:
        if descriptor is not None and record is not None and has_ended_within(descriptor, seconds):
            _reap(record)


def _reap(record: ProcessRecord) -> None:
    """Reap a supervisor that was a child of this program."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(record.pid, os.WNOHANG)


def _awaited(run: Run, supervisor: ProcessRecord) -> str:
    with contextlib.suppress(NotFound, ToolFailed):
        state, plan = run.state(), run.plan()
        if state.phase != "stopping":
            return f"its supervisor (pid {supervisor.pid}), which has not begun to end it"
        running = [process for process in state.processes if process.phase == "running"]
        if running:
            names = ", ".join(process.name for process in running[:_MOST_NAMES])
            more = f" and {len(running) - _MOST_NAMES} more" if len(running) > _MOST_NAMES else ""
            grace_s = max(plan.processes[process.slot].grace_s for process in running)
            return f"{names}{more} to end, killed after {grace_s:g} s"
    return "what is left of its processes and logs"


def tmux_programs(run: Run) -> tuple[list[Session], ProcessRecord | None]:
    """Return the sessions in the panes of the tmux server of `run`, and that server, if it answers."""
    panes: list[tmux_client.Pane] = []
    # It answers when it has started all it was told to, also what nobody waits for any more.
    with contextlib.suppress(SymphError):
        panes = tmux_client.list_panes(run.socket)
    now = ticks_now()
    leaders = [identify(pane.pid) for pane in panes]
    sessions = [Session(leader=leader, until=now) for leader in leaders if leader is not None]
    return sessions, identify(panes[0].server) if panes else None


def end_damaged(run: Run) -> list[int]:
    """End a run of which nobody knows what it was: all that can be proven to be of it; the pids of what survives."""
    sessions, server = tmux_programs(run)
    left = kill_everything(run, sessions, server)
    remove_mount_points(server)
    _close(run, "damaged", left)
    return left


def mark_lost(run: Run) -> None:
    """Mark `run`, of which nothing lives, as ended, and remove its private files if none can be in use.

    Nothing is signalled: the numbers in its state are others' by now.
    """
    where = run.location
    _close(run, "lost", [], is_tidying=where.is_other_boot)


def _close(run: Run, phase: Literal["damaged", "lost"], survivors: list[int], *, is_tidying: bool = True) -> None:
    try:
        state = run.state()
    except (NotFound, ToolFailed):
        processes: list[ProcessState] = []
        with contextlib.suppress(NotFound, ToolFailed):
            processes = [unstarted(planned) for planned in run.plan().processes]
        started = run.folder.stat().st_mtime
        state = RunState(experiment=run.experiment, phase=phase, started=started, processes=processes)
    for process in state.processes:
        if process.phase in ("running", "starting", "waiting", "backoff"):
            process.phase, process.ready = phase, False
    state.phase, state.reason, state.ended, state.survivors = phase, phase, time.time(), survivors
    write_record(run.folder / "state.json", state, is_safe=True)
    if is_tidying:
        remove_private(run, len(list((run.folder / "p").glob("*"))))
    clear_liveness(run.folder)
