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
from symphony_charts.local.run_files import clear_liveness
from symphony_charts.local.run_state import ProcessState, RunPhase, RunState, unstarted, write_record
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.launcher import log_line
from symphony_charts.system import processes, remover
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

# Timeout for the kernel to remove processes after KILL, in seconds.
_KILL_S = 5.0
# Timeout for tmux to read the last output, in seconds.
_READ_S = 10.0
# Timeout for an answer of tmux while a damaged run ends, in seconds.
_ANSWER_S = 3.0
# Timeout for the log writers to write their remaining input, in seconds; long enough for a busy machine.
_WRITE_S = 20.0


def kill_everything(run: Run, sessions: Sequence[Session], server: ProcessRecord | None) -> tuple[list[int], list[str]]:
    """Kill all processes of `run`, its tmux server (at its start: `server`) last, and remove its mount points.

    Return the pids of survivors, and the mount points that could not be removed, with reasons.
    """
    # Resume a server that was stopped by hand: it must read the last output and exit.
    send_signal(server, signal.SIGCONT)
    # 0 without a server, None if it hangs or tmux is not installed any more.
    answer = None
    with contextlib.suppress(SymphError):
        answer = tmux_client.server_pid(run.socket, timeout_s=2.0)
    tmux = identify(answer) if answer else server if is_running(server) else None
    # Log writers keep the server's session after it has ended.
    last_server = tmux or server
    writers = last_server.pid if last_server else 0

    def members() -> list[ProcessRecord]:
        return [record for record in run.members(sessions) if tmux is None or record.pid != tmux.pid]

    _kill(lambda: [record for record in members() if not _writes_logs(record, writers)])
    if answer and tmux is not None:
        await_output(run, tmux)
    tmux_client.kill_server(run.socket)
    send_signal(tmux, signal.SIGKILL)
    deadline = time.monotonic() + _WRITE_S
    while (left := members()) and all(_writes_logs(record, writers) for record in left) and time.monotonic() < deadline:
        time.sleep(0.005)
    if left and all(_writes_logs(record, writers) for record in left):
        log_line(f"could not write the last lines of {len(left)} logs")
    survivors = [record.pid for record in _kill(members)] if left else []
    return survivors, _remove_mount_points(last_server)


def abandon(run: Run) -> None:
    """End and remove a run whose start has failed. Raises OSError."""
    try:
        kill_everything(run, *tmux_programs(run))
    finally:
        left = remover.remove(run.home, run.experiment, run.run_id) if run.folder.exists() else []
        for entry in left:
            log_line(f"not removed: {entry}")


def await_output(run: Run, tmux: ProcessRecord, is_meant: Callable[[int], bool] = lambda _: True) -> None:
    """Wait until tmux has passed on all output of the slots that are meant: only then does it mark a pane as dead."""
    deadline = time.monotonic() + _READ_S
    with contextlib.suppress(SymphError):
        while time.monotonic() < deadline:
            panes = tmux_client.list_panes(run.socket)
            if all(pane.is_dead for pane in panes if is_meant(pane.slot)):
                return
            # Some tmux builds lose SIGCHLD (tmux/tmux #4559); sending it again does no harm.
            send_signal(tmux, signal.SIGCHLD)
            time.sleep(0.005)


def _kill(survivors: Callable[[], list[ProcessRecord]]) -> list[ProcessRecord]:
    deadline = time.monotonic() + _KILL_S
    while (left := survivors()) and time.monotonic() < deadline:
        processes.signal_all(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def _writes_logs(record: ProcessRecord, session: int) -> bool:
    """Return True for a log writer of tmux: it ends by itself at the end of its input."""
    stat = read_stat(record.pid)
    return stat is None or stat.is_dead or stat.session == session


def _remove_mount_points(server: ProcessRecord | None) -> list[str]:
    """Remove the mount points that only this run used, with the tmux server `server`; return failures with reasons."""
    deadline = time.monotonic() + _KILL_S
    # The server holds their locks until it ends.
    while is_running(server) and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        return remove_points(str(points_journal()))
    except OSError as error:
        # The disk is full or read-only; the points remain in the journal, and the next run retries.
        return [f"{points_journal()}: {error.strerror}"]


def remove_private(run: Run, count: int) -> None:
    """Remove the files that the processes saw, secrets first; keep plan, state and logs as the history of the run."""
    parts = ["files", "volumes", "scratch", "up.conf", "mounts.json", "wrapper.sh"]
    names = ("start", "mounts", "mounts.json", "plain", "limited", "go", "pid", "exit", "limit", "hup", "tries")
    parts += [f"p/{slot}/{name}" for slot in range(count) for name in names]
    try:
        left = remover.remove_parts(run.home, (run.experiment, run.run_id), parts)
    except NotFound as error:
        left = [str(error)]
    for entry in left:
        log_line(f"not removed: {entry}")


# Report waits that are longer than this, in seconds.
_PATIENCE_S = 1.5
_MOST_NAMES = 3
# A supervisor that has not begun to end its run within this time, in seconds, hangs.
_HUNG_S = 10.0
# Timeout for the end of a run, in seconds.
_STOP_S = 120.0


def require_here(run: Run) -> None:
    """Raise Conflict if the processes of `run` live, or may live, where they are not visible from here."""
    where = run.location
    if where.verdict not in ("elsewhere", "unknown"):
        return
    what = f'experiment "{run.experiment}": {where.words}'
    there = f"run there: symph down {run.experiment}"
    if where.verdict == "unknown":
        there += f"; if that machine is gone: symph down {run.experiment} --lost"
    raise Conflict(what, str(run.folder), there)


def is_damaged(run: Run) -> bool:
    """Return True if a supervisor cannot take over `run`: its files are damaged, or belong to different runs."""
    try:
        return len(run.plan().processes) < len(run.state().processes)
    except (NotFound, ToolFailed):
        return True


def stop(run: Run) -> None:
    """Stop `run` through its supervisor and wait for its end. Raises CheckFailed if that takes too long.

    Kills a supervisor that does not react, and reports that; the run continues until another supervisor ends it.
    """
    record = run.supervisor
    with verified(record) as descriptor:
        if descriptor is None or record is None:
            return
        # A process that was stopped by hand handles signals only after SIGCONT.
        for number in (signal.SIGTERM, signal.SIGCONT):
            signal.pidfd_send_signal(descriptor, number)
        began = time.monotonic()
        if not has_ended_within(descriptor, _PATIENCE_S):
            sys.stderr.write(f"{run.experiment}: waiting for {_awaited(run, record)}\n")
        if not has_ended_within(descriptor, _HUNG_S) and not _is_ending(run):
            sys.stderr.write(f"{run.experiment}: killed its supervisor (pid {record.pid}), which did not react\n")
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        if not has_ended_within(descriptor, _STOP_S - (time.monotonic() - began)):
            what = f'experiment "{run.experiment}" did not end within {_STOP_S:g} s: {_awaited(run, record)}'
            raise CheckFailed(what, next=f"symph status {run.experiment}")
    reap(record)


def _is_ending(run: Run) -> bool:
    """Return True if the supervisor has begun to end `run`, or cannot write that it has."""
    with contextlib.suppress(NotFound, ToolFailed):
        return run.state().phase not in ("starting", "running", "lingering", "kept") or bool(full_disk(run.folder))
    return True


def reap(record: ProcessRecord) -> None:
    """Forget a supervisor that was our child, if it has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(record.pid, os.WNOHANG)


def _awaited(run: Run, supervisor: ProcessRecord) -> str:
    with contextlib.suppress(NotFound, ToolFailed):
        state, plan = run.state(), run.plan()
        if state.phase != "stopping":
            return f"its supervisor (pid {supervisor.pid}) to begin"
        running = [process for process in state.processes if process.phase == "running"]
        if running:
            names = ", ".join(process.name for process in running[:_MOST_NAMES])
            more = f" and {len(running) - _MOST_NAMES} more" if len(running) > _MOST_NAMES else ""
            grace_s = max(plan.processes[process.slot].grace_s for process in running)
            return f"{names}{more} to end, killed after {grace_s:g} s"
    return "the rest of its processes and logs"


def tmux_programs(run: Run) -> tuple[list[Session], ProcessRecord | None]:
    """Return the sessions in the panes of the tmux server of `run`, and that server, if it answers."""
    panes: list[tmux_client.Pane] = []
    # The server answers only after it has executed all pending commands, even from clients that are gone.
    with contextlib.suppress(SymphError):
        panes = tmux_client.list_panes(run.socket, timeout_s=_ANSWER_S)
    now = ticks_now()
    leaders = [identify(pane.pid) for pane in panes]
    sessions = [Session(leader=leader, until=now) for leader in leaders if leader is not None]
    return sessions, identify(panes[0].server) if panes else None


def end_damaged(run: Run) -> list[int]:
    """End a damaged run: all processes that provably belong to it. Return the pids of survivors."""
    left, _ = kill_everything(run, *tmux_programs(run))
    _close(run, "damaged", left)
    return left


def mark_lost(run: Run) -> None:
    """Mark `run`, of which nothing lives, as ended, and remove its private files if none can be in use.

    Sends no signals: other processes may have the pids in its state by now.
    """
    _close(run, "lost", [])


def _close(run: Run, phase: Literal["damaged", "lost"], survivors: list[int]) -> None:
    # Files of a lost run that could be in use stay.
    is_tidying = phase == "damaged" or run.location.is_other_boot
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
    # A run whose services were left keeps its result.
    result: RunPhase = ("failed" if state.reason == "failed" else "finished") if state.has_result else phase
    state.phase, state.reason, state.ended, state.survivors = result, result, state.ended or time.time(), survivors
    write_record(run.folder / "state.json", state, is_safe=True)
    if is_tidying:
        remove_private(run, len(list((run.folder / "p").glob("*"))))
    if phase == "damaged":
        # With the lock of a lost run left, its own machine still looks for processes of it.
        clear_liveness(run.folder)
