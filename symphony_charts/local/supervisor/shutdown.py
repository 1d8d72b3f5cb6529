"""Runs end here that somebody wants to end: supervised ones, damaged ones, and those that are lost already.

Whoever calls this holds the lock of the experiment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Literal

from symphony_charts.errors import CheckFailed, Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.run_identity import clear_liveness
from symphony_charts.local.run_state import ProcessState, RunState, unstarted, write_record
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.cleanup import kill_everything, remove_mount_points, remove_private
from symphony_charts.system.full_disks import full_disk
from symphony_charts.system.process_identity import (
    ProcessRecord,
    has_ended_within,
    identify,
    ticks_now,
    verified,
)
from symphony_charts.system.processes import Session

__all__ = ["await_supervisor", "check_here", "damage_of", "end_damaged", "mark_lost", "stop", "tmux_programs"]

# Whoever waits for longer than this, in seconds, is told for what.
_PATIENCE_S = 1.5
_MOST_NAMES = 3
# Whoever is asked to end a run says that it ends within so many seconds, or hangs.
_HUNG_S = 10.0


def check_here(run: Run) -> None:
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
