"""The supervisor of one run: it sees every process end, executes the actions of `decisions.transition`, and cleans up.

`SupervisorProcess` starts it and sends it the folder of its run. It waits on pidfds and timers in one `select.poll` and
uses no CPU in between. All its state is on disk: after kill -9 the run continues, and the next command starts a new
supervisor on the same folder. SIGTERM makes it end the run.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.local.machine.gpus import restore_gpu_locks
from symphony_charts.local.run_files import LIVENESS_LOCK, clear_liveness, write_supervisor
from symphony_charts.local.run_state import RunState, write_record
from symphony_charts.local.runs import START_ABORTED, Run
from symphony_charts.local.supervisor import events
from symphony_charts.local.supervisor.decisions import Phase, State, transition
from symphony_charts.local.supervisor.events import Act, Event, Loop, signal_pipe
from symphony_charts.local.supervisor.launcher import StartupChannel, attend_start, log_line, raise_descriptor_limit
from symphony_charts.local.supervisor.logs import LogClock, LogPipes
from symphony_charts.local.supervisor.panes import Panes, Terminals
from symphony_charts.local.supervisor.probes import Checks
from symphony_charts.local.supervisor.requests import requested, withdraw
from symphony_charts.local.supervisor.shutdown import (
    abandon,
    await_server,
    kill_everything,
    remove_mount_points,
    remove_private,
)
from symphony_charts.local.tmux_client import TmuxSilent
from symphony_charts.system.file_locks import hold_liveness_lock
from symphony_charts.system.files import full_disk
from symphony_charts.system.processes import send_signal

# Retry failed writes after this pause, in seconds; the disk may have room again.
_RETRY_S = 1.0
# Retry them for this long at the end of the run, in seconds.
_ROOM_S = 20.0
_UNWRITTEN = "cannot be written"


class Supervisor:
    """One supervised run, from its start or from the state that another supervisor left, to its end.

    `slots` are the states of the processes; `dirty` means that the state must be written again.
    """

    def __init__(self, run: Run, channel: StartupChannel) -> None:
        self.run, self.channel = run, channel
        # Held until this program ends, so that any machine can test if the run is live.
        self.liveness_lock = hold_liveness_lock(run.folder / LIVENESS_LOCK)
        write_supervisor(run.folder)
        self.plan = run.plan()
        self.file = StateFile(run)
        self.old = self.file.old
        self.slots = self.old.processes
        self.phase: Phase = "running"
        self.reason, self.failed, self.cause, self.dirty = "", self.old.failed, self.old.cause, True
        self.loop = Loop()
        self.panes = Panes(run, self.slots, self.loop, self._ended)
        self.terminals = Terminals(self.loop, self._terminal_closed)
        self.checks = Checks(run, self.loop, self._dispatch)
        logs = [run.process_dir(slot) / "log" for slot in range(len(self.slots))]
        self.clock = LogClock(logs, [planned.log_bytes for planned in self.plan.processes])
        raise_descriptor_limit(len(self.slots))
        self.gpus = restore_gpu_locks(run, self.plan)
        self._events: deque[Event] = deque()
        self._is_deciding = False
        self._handlers = {
            "release": self.panes.release,
            "respawn": self._respawn,
            "attend": self._attend,
            "read end": self._ended,
            "grant": self.file.grant,
        }

    def watch(self, *, is_start: bool) -> None:
        """Run until the run is over; with `is_start` its processes are still being started."""
        signals = signal_pipe(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
        self.loop.watch(self.clock.descriptor, LogPipes(self.run, self.loop, self.clock).note)
        is_cut = False
        if is_start:
            self.phase = "starting"
            is_cut = not attend_start(self.loop, self.run.folder / "born", self.channel, self._started, self._save)
            if is_cut:
                await_server(self.run, self.liveness_lock)
            self.phase, self.dirty = "running", True
        else:
            # Resume a server that was stopped by hand: it could not list its panes.
            send_signal(self.old.tmux, signal.SIGCONT)
        # If all panes have been closed, no pane can identify the server.
        self.panes.server = self.old.tmux
        try:
            count = self.panes.adopt()
        except SymphError as error:
            # The programs keep running, and the next command starts another supervisor.
            log_line(str(error))
            self.channel.refuse(error.what)
            return
        gone = events.TmuxGone(START_ABORTED) if is_cut and not count else events.TmuxGone()
        for slot in self.panes.live:
            self._follow_terminal(slot)
        if self.panes.server is not None:
            self.old.tmux = self.panes.server
        if self.old.phase != "stopping":
            self.panes.watch_server(lambda: self._dispatch(gone))
        self._dispatch(events.TakenOver(self.old.reason if self.old.phase == "stopping" else ""))
        self.loop.watch(signals, lambda: self._signalled(os.read(signals, 64)))
        self._take_requests()
        self._save()
        self.channel.send(count)
        self.channel.close()
        while self.phase != "over":
            self._save()
            self.loop.turn()
        self._finish()

    # Events

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._take_requests()
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._dispatch(events.StopAsked())

    def _take_requests(self) -> None:
        self.plan = self.run.plan()
        self._dispatch(events.RestartAsked(requested(self.run)))

    def _started(self, slot: int, pid: int) -> None:
        if self.panes.follow_started(slot, pid):
            self._dispatch(events.Started(slot))

    def _ended(self, slot: int) -> None:
        ended = self.panes.ended_at(slot)
        self.checks.leave(slot)
        status = self.panes.status_of(slot)
        if (
            status != 0
            and self.phase == "running"
            and self.slots[slot].phase == "running"
            and self.panes.has_lost(slot)
        ):
            # The program may have failed because it could not write its output.
            self._dispatch(events.PaneClosed(slot))
        limit = self.panes.limit_of(slot)
        if status != 0 and not limit:
            limit = self._full_disk()
        self._dispatch(events.Ended(slot, status, ended, limit))

    def _full_disk(self) -> str:
        """Return the reason if the disk of the run is full or its state could not be written, else an empty text."""
        why = full_disk(self.run.folder)
        return f"the disk of {self.run.home} is full: {why} (ENOSPC)" if why else self.file.refusal

    def _dispatch(self, event: Event) -> None:
        """Handle `event`; events that occur meanwhile are handled afterwards, in order."""
        self._events.append(event)
        if self._is_deciding:
            return
        self._is_deciding = True
        while self._events:
            self._decide(self._events.popleft())
        self._is_deciding = False

    def _decide(self, event: Event) -> None:
        before = State(list(self.slots), self.panes.live, self.phase, self.reason, self.failed, self.cause)
        after, actions = transition(before, event, self.plan, time.time())
        # During the start it does not matter which processes were released: the saved state may say `waiting`.
        self.dirty = self.dirty or (self.phase != "starting" and after != before)
        self.slots[:] = after.processes
        self.phase, self.reason, self.failed, self.cause = after.phase, after.reason, after.failed, after.cause
        for action in actions:
            if not isinstance(action, Act):
                self.loop.later(action.delay_s, partial(self._dispatch, action.event))
            elif action.do == "end":
                self.checks.leave(action.slot)
                self.panes.end(action.slot, action.grace_s)
            else:
                self._handlers[action.do](action.slot)

    # Actions

    def _respawn(self, slot: int) -> None:
        try:
            self.panes.respawn(self.plan.processes[slot])
        except TmuxSilent:
            self._dispatch(events.Held(slot, "tmux, which does not answer"))
            return
        except ToolFailed as error:
            log_line(str(error))
            self._dispatch(events.Respawned(slot, is_done=False))
            return
        except SymphError as error:
            self._dispatch(events.Held(slot, f"tmux: {error.what}"))
            return
        except OSError as error:
            # For example, the disk is full. This may pass.
            self._dispatch(events.Held(slot, f"its files: {error.strerror} ({error.filename})"))
            return
        self._dispatch(events.Respawned(slot, is_done=True))
        self._follow_terminal(slot)
        if slot not in self.panes:
            # The program ended before it could be watched, so no event follows.
            self._ended(slot)

    def _follow_terminal(self, slot: int) -> None:
        wrapper = self.slots[slot].wrapper
        if wrapper is not None:
            self.terminals.follow(slot, wrapper.pid)

    def _terminal_closed(self, slot: int, pid: int) -> None:
        wrapper = self.slots[slot].wrapper
        if slot in self.panes and wrapper is not None and wrapper.pid == pid:
            self._dispatch(events.PaneClosed(slot))

    def _attend(self, slot: int) -> None:
        process = self.slots[slot]
        self.checks.attend(self.plan.processes[slot], started=process.started or time.time(), is_ready=process.ready)

    def _finish(self) -> None:
        left = kill_everything(self.run, self.panes.sessions, self.old.tmux)
        self.clock.note()
        self.old.stuck = remove_mount_points(self.old.tmux)
        is_saved = self._save(survivors=left)
        remove_private(self.run, len(self.slots))
        deadline = time.monotonic() + _ROOM_S
        # The disk may be full: wait for room. If this fails, the next command that acts on the run writes its end.
        while not (is_saved := is_saved or self._save(survivors=left)) and time.monotonic() < deadline:
            time.sleep(_RETRY_S)
        if is_saved:
            clear_liveness(self.run.folder)

    def _save(self, survivors: list[int] | None = None) -> bool:
        """Write the state if it has changed, with `survivors` for the last time; return False if that fails."""
        if not self.dirty and survivors is None:
            return True
        # A run in phase "over" has not ended yet: its logs are still being written.
        phase = self.reason if survivors is not None else "stopping" if self.phase == "over" else self.phase
        news = replace(self.old, phase=phase, reason=self.reason, failed=self.failed, cause=self.cause)
        self.dirty = False
        if self.file.save(news, survivors):
            return True
        if survivors is None:
            self.loop.later(_RETRY_S, partial(setattr, self, "dirty", True))
        return False


class StateFile:
    """The state file of a run; `old` is the state at startup."""

    def __init__(self, run: Run) -> None:
        self._run, self.old = run, run.state()
        self._granted: list[int] = []
        # The error of the last write, empty if it succeeded.
        self.refusal = ""
        self._phase = ""

    def grant(self, slot: int) -> None:
        """Withdraw the request for this slot once its result is written."""
        self._granted.append(slot)

    def save(self, state: RunState, survivors: list[int] | None = None) -> bool:
        """Write the file, with `survivors` for the last time; return False if that fails, which is logged once."""
        state.ended, state.survivors = None if survivors is None else time.time(), survivors or []
        try:
            # Only changes of the run's phase must survive a power loss; syncing every change would be slow.
            write_record(self._run.folder / "state.json", state, is_safe=state.phase != self._phase)
        except ToolFailed as error:
            self.refusal = f"{error.what} ({error.at})"
            if self._phase != _UNWRITTEN:
                self._phase = _UNWRITTEN
                log_line(str(error))
            return False
        self._phase, self.refusal = state.phase, ""
        # Only after the write: a supervisor that takes over finds either the request or its result.
        held = [slot for slot in self._granted if state.processes[slot].held]
        for slot in set(self._granted) - set(held):
            withdraw(self._run, slot)
        self._granted = held
        return True


def main(*, is_start: bool) -> None:
    """Supervise a run until it is over; with `is_start` its start is still in progress."""
    channel = StartupChannel(0)
    folder = channel.folder()
    if not folder:
        return
    run = Run(Path(folder))
    try:
        if is_start and not channel.wait():
            abandon(run)
            return
        supervisor = Supervisor(run, channel)
    except (SymphError, OSError) as error:
        log_line(str(error))
        channel.refuse(error.what if isinstance(error, SymphError) else f"{error.strerror}: {error.filename}")
    else:
        supervisor.watch(is_start=is_start)


if __name__ == "__main__":
    main(is_start=sys.argv[1:] == ["start"])
