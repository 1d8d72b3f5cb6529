"""The supervisor of one run: it sees every process end, executes the actions of `decisions.Transition`, and cleans up.

`SupervisorProcess` starts it, and it starts tmux and all programs of its run. It waits on pidfds and timers in one
`select.poll` and uses no CPU in between. All its state is on disk: after kill -9 the run continues, and the next
command starts a new supervisor on the same folder. SIGTERM makes it end the run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from symphony_charts.backend.status import Try
from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.run_files import LIVENESS_LOCK, clear_liveness, note_try, write_supervisor
from symphony_charts.local.run_state import RunState, unstarted, write_record
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.decisions import Deed, Event, Later, Transition, goes_on
from symphony_charts.local.supervisor.launcher import (
    Channel,
    log_line,
    log_to,
    raise_descriptor_limit,
    refusal,
    run_beside,
)
from symphony_charts.local.supervisor.logs import RunLogs
from symphony_charts.local.supervisor.loop import Loop, signal_pipe
from symphony_charts.local.supervisor.panes import Panes
from symphony_charts.local.supervisor.probes import Probing
from symphony_charts.local.supervisor.requests import requested, withdraw
from symphony_charts.local.supervisor.shutdown import abandon, await_output, kill_everything, remove_private
from symphony_charts.system.file_locks import hold_liveness_lock
from symphony_charts.system.files import full_disk
from symphony_charts.system.processes import send_signal

# Retry failed writes after this pause, in seconds; the disk may have room again.
_RETRY_S = 1.0
# Retry them for this long at the end of the run, in seconds.
_ROOM_S = 20.0


class Supervisor:
    """One supervised run, from its start or from the state that another supervisor left, to its end.

    `slots` are the states of the processes in `state`; `dirty` means that the state must be written again.
    """

    def __init__(self, run: Run, channel: Channel) -> None:
        self.run, self.channel = run, channel
        write_supervisor(run.folder)
        self.plan = run.plan()
        self.state = run.state().with_added(self.plan)
        self.slots, self.dirty = self.state.processes, True
        # The phase in the file, the error of the last write, and the requests to withdraw after the next one.
        self._written, self._refusal, self._granted = self.state.phase, "", set[int]()
        # The result of an end that another supervisor has begun.
        self._stopping = self.state.reason if self.state.phase == "stopping" else ""
        self._is_starting = self.state.phase == "starting"
        if not self.state.has_result:
            self.state.phase = "running"
        self.loop = Loop()
        self.panes = Panes(run, self.slots, self.loop, self._ended, self._pane_closed)
        self.probing: dict[int, Probing] = {}
        self.logs = RunLogs(run, self.loop)
        raise_descriptor_limit(len(self.slots))
        self._events: deque[Event] = deque()
        self._handlers: dict[Deed, Callable[[int], object]] = {
            "release": self.panes.release,
            "respawn": self._respawn,
            "attend": self._attend,
            "read end": partial(self._ended, is_observed=False),
            "sweep": lambda _: self.panes.kill_leftovers(),
            "grant": self._grant,
        }

    def begin(self, *, is_start: bool) -> None:
        """Watch all processes; with `is_start` start them first. Raises SymphError if tmux refuses."""
        signals = signal_pipe(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
        if is_start:
            run_beside(self.loop, partial(tmux_client.source_file, self.run.socket, self.run.folder / "up.conf"))
        else:
            # Resume a server that was stopped by hand: it could not list its panes.
            send_signal(self.state.tmux, signal.SIGCONT)
        # If all panes have been closed, no pane can identify the server.
        self.panes.server = self.state.tmux
        count = self.panes.adopt()
        self.state.tmux = self.panes.server or self.state.tmux
        if not self._stopping:
            self.panes.watch_server(lambda: self._dispatch(Transition.tmux_gone))
        for slot in range(len(self.slots)) if self._is_starting else ():
            self._dispatch(methodcaller("started", slot, self._time_of("pid", slot)))
        self._dispatch(methodcaller("taken_over", self._stopping))
        self.loop.watch(signals, lambda: self._signalled(os.read(signals, 64)))
        self._take_requests()
        self._save()
        self.channel.send({"count": count})
        self.channel.close()

    def run_to_end(self) -> None:
        while self.state.phase != "over":
            self._save()
            self.loop.turn()
        self._finish()

    # Events

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._take_requests()
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._dispatch(Transition.stop)

    def _take_requests(self) -> None:
        self.plan = self.run.plan()
        added = self.plan.processes[len(self.slots) :]
        self.state.with_added(self.plan)
        for planned in added:
            self.logs.add(self.run.process_dir(planned.slot) / "log", planned.log_bytes)
        raise_descriptor_limit(len(self.slots))
        asked = {slot: action for slot, action in requested(self.run).items() if slot < len(self.slots)}
        running = [slot for slot in asked if slot in self.panes and not self.slots[slot].is_stopped]
        for slot in [slot for slot in running if asked[slot] == "start"]:
            # It runs already.
            del asked[slot]
            self._grant(slot)
        self._dispatch(methodcaller("restart", [slot for slot, action in asked.items() if action != "stop"]))
        self._dispatch(methodcaller("pause", [slot for slot, action in asked.items() if action == "stop"]))

    def _pane_closed(self, slot: int) -> None:
        self._dispatch(methodcaller("pane_closed", slot))

    def _ended(self, slot: int, *, is_observed: bool = True) -> None:
        self._stop_checks(slot)
        status = self.panes.status_of(slot)
        ended = time.time() if is_observed or status is None else self._time_of("exit", slot)
        is_failure = status != 0 and self._goes_on(slot) and self.slots[slot].phase == "running"
        if is_failure and self.panes.was_closed(slot):
            # The program may have failed because it could not write its output.
            self._pane_closed(slot)
        limit = self.panes.limit_of(slot)
        if status != 0 and not limit:
            why = full_disk(self.run.folder)
            limit = f"the disk of {self.run.home} is full: {why} (ENOSPC)" if why else self._refusal
        self._note_try(slot, status, ended, limit)
        self._dispatch(methodcaller("ended", slot, status, ended, limit))

    def _time_of(self, name: str, slot: int) -> float:
        """Return the time when a process wrote a file, if that is plausible: another machine may keep the files."""
        since, now = self.slots[slot].started or self.state.started, time.time()
        with contextlib.suppress(OSError):
            return min(now, max(since, (self.run.process_dir(slot) / name).stat().st_mtime))
        return now

    def _note_try(self, slot: int, status: int | None, ended: float, limit: str) -> None:
        process = replace(self.slots[slot], status=status, limit=limit)
        is_asked = not self._goes_on(slot) or process.is_restart_asked or process.is_stopped
        if process.started is not None:
            cause = process.cause or ("stopped" if status and is_asked else "")
            folder = self.run.process_dir(slot)
            note_try(folder, Try(started=process.started, ended=ended, status=status, cause=cause))

    def _dispatch(self, event: Event) -> None:
        """Handle `event`; events that occur meanwhile are handled afterwards, in order."""
        self._events.append(event)
        if len(self._events) > 1:
            # The call that works on the first one takes this one, too.
            return
        while self._events:
            self._decide(self._events[0])
            self._events.popleft()

    def _decide(self, event: Event) -> None:
        step = Transition(self.state, self.panes.live, self.plan, time.time())
        event(step)
        is_settled = step.state.is_settled and not self.state.is_settled
        self.dirty = self.dirty or step.state != self.state
        self.slots[:] = step.state.processes
        self.state = replace(step.state, processes=self.slots)
        for action in step.actions:
            if isinstance(action, Later):
                due = methodcaller(action.do, action.slot, action.at)
                self.loop.later(action.delay_s, partial(self._dispatch, due))
            elif action.do == "end":
                self._stop_checks(action.slot)
                self.panes.end(action.slot, action.grace_s)
            else:
                self._handlers[action.do](action.slot)
        if is_settled and self.state.has_result and self.panes.server is not None:
            # The last output of what has ended is in the logs.
            await_output(self.run, self.panes.server, lambda slot: slot not in self.panes)

    def _goes_on(self, slot: int) -> bool:
        return goes_on(self.state.phase, self.plan.processes[slot])

    # Actions

    def _grant(self, slot: int) -> None:
        # Requests are withdrawn after a write, even if the state is the same.
        self._granted.add(slot)
        self.dirty = True

    def _respawn(self, slot: int) -> None:
        try:
            self.panes.respawn(self.plan.processes[slot])
        except tmux_client.TmuxSilent:
            held = "tmux, which does not answer"
        except ToolFailed as error:
            log_line(str(error))
            self._dispatch(methodcaller("cannot_respawn", slot))
            return
        except SymphError as error:
            held = f"tmux: {error.what}"
        except OSError as error:
            # For example, the disk is full. This may pass.
            held = f"its files: {error.strerror} ({error.filename})"
        else:
            self._dispatch(methodcaller("respawned", slot))
            if slot not in self.panes:
                # The program ended before it could be watched, so no event follows.
                self._ended(slot)
            return
        self._dispatch(methodcaller("held", slot, held))

    def _attend(self, slot: int) -> None:
        process, planned = self.slots[slot], self.plan.processes[slot]
        checks = [check for check in (*planned.health, *planned.checks) if not (check.automatic and process.ready)]
        if checks:
            folder, started = self.run.process_dir(slot), process.started or time.time()
            self.probing[slot] = Probing(self.loop, slot, checks, folder, started, self._dispatch)

    def _stop_checks(self, slot: int) -> None:
        if slot in self.probing:
            self.probing.pop(slot).is_over = True

    def _finish(self) -> None:
        left, self.state.stuck = kill_everything(self.run, self.panes.sessions, self.state.tmux)
        self.logs.note()
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
        self.dirty = False
        # A run in phase "over" has not ended yet: its logs are still being written.
        state = replace(self.state, phase="stopping" if self.state.phase == "over" else self.state.phase)
        if survivors is not None:
            ended = self.state.ended or time.time()
            state = replace(self.state, phase=self.state.reason, ended=ended, survivors=survivors)
        try:
            # Only changes of the run's phase must survive a power loss; syncing every change would be slow.
            write_record(self.run.folder / "state.json", state, is_safe=state.phase != self._written)
        except ToolFailed as error:
            if not self._refusal:
                log_line(str(error))
            self._refusal = f"{error.what} ({error.at})"
            self.loop.later(_RETRY_S, partial(setattr, self, "dirty", True))
            return False
        self._written, self._refusal = state.phase, ""
        # Only after the write: a supervisor that takes over finds either the request or its result.
        held = {slot for slot in self._granted if self.slots[slot].held}
        for slot in self._granted - held:
            withdraw(self.run, slot)
        self._granted = held
        return True


def main() -> None:
    """Supervise the run that the caller orders until it is over; start it first if that is ordered."""
    # Keeps the number of stdin taken when the channel is closed.
    channel = Channel(socket.socket(fileno=os.dup(0)))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    order = channel.receive()
    if not order:
        return
    run, is_start = Run(Path(order["folder"])), bool(order["count"])
    log_to(run.folder / "supervisor.log")
    try:
        # Held until this program ends, so that any machine can test if the run is live.
        liveness_lock = hold_liveness_lock(run.folder / LIVENESS_LOCK)
        if is_start and not start_server(run, channel, order, [] if liveness_lock is None else [liveness_lock]):
            abandon(run)
            return
        supervisor = Supervisor(run, channel)
        supervisor.begin(is_start=is_start)
    except (SymphError, OSError) as error:
        # Programs that run already keep running, and the next command starts another supervisor.
        log_line(str(error))
        channel.send(refusal(error))
    else:
        supervisor.run_to_end()


def start_server(run: Run, channel: Channel, order: Mapping[str, Any], keep: Sequence[int]) -> bool:
    """Start the tmux server of `run`, and write its first state; return False if `up` has given up before that."""
    raise_descriptor_limit(2 * order["count"])
    # wrapper.sh clears these again; each process has its own exact environment.
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    tmux_client.start(run.socket, order["server"], {**env, "TERM": "tmux-256color"}, keep)
    complete = channel.receive()
    if not complete:
        return False
    plan = run.plan()
    processes = [unstarted(planned) for planned in plan.processes]
    state = RunState(experiment=plan.experiment, phase="starting", started=time.time(), processes=processes)
    write_record(run.folder / "state.json", replace(state, commits=complete["commits"]), is_safe=True)
    return True


if __name__ == "__main__":
    main()
