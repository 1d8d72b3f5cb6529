"""Follow the programs in the panes of a run through pidfds and terminals; release, end and restart them."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from symphony_charts.local import tmux_client
from symphony_charts.local.plan.records import PlannedProcess
from symphony_charts.local.plan.scripts import new_pane
from symphony_charts.local.run_files import NO_STATUS
from symphony_charts.local.run_state import ProcessState
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.loop import Loop
from symphony_charts.system import processes
from symphony_charts.system.inotify import DELETE, Inotify
from symphony_charts.system.processes import (
    ProcessRecord,
    has_ended_within,
    identify,
    open_identified,
    open_verified,
    read_stat,
    send_signal,
    ticks_now,
)

# Timeout for a list of all panes, in seconds; after it the loop leaves tmux alone for the same time.
_ANSWER_S = 3.0
# Timeout for a command that is sent right after an answer, in seconds.
_COMMAND_S = 8.0
_KILLED = 128 + signal.SIGKILL
_TERMINALS = Path("/dev/pts")
# A killed tmux closes its terminals shortly before it ends. Wait this long, in seconds, so that its end is reported as
# the cause.
_PAUSE_S = 0.2


class Panes:
    """The panes of `run`; calls `ended` with the slot of a program that has ended, `closed` if its terminal is gone.

    `slots` are the states of the processes; this class updates their `wrapper`. `server` is the tmux server
    once there are panes, `sessions` collects the sessions of all programs so far.
    """

    def __init__(
        self,
        run: Run,
        slots: list[ProcessState],
        loop: Loop,
        ended: Callable[[int], None],
        closed: Callable[[int], None],
    ) -> None:
        self.run, self._slots, self._loop, self._ended, self._closed = run, slots, loop, ended, closed
        self._fds: dict[int, int] = {}
        self._until: dict[ProcessRecord, int] = {}
        self._killed: set[ProcessRecord] = set()
        self._without_terminal: set[ProcessRecord] = set()
        self._asked: dict[int, int] = {}
        self._silent_until = 0.0
        self._look_at_server: Callable[[], None] = lambda: None
        self.server: ProcessRecord | None = None
        self._is_looking = False
        # tmux does not report closed panes, and its programs ignore the hang-up. But the kernel reports removed
        # terminals.
        with contextlib.suppress(OSError):
            self._terminals = Inotify()
            self._terminals.add(_TERMINALS, DELETE)
            loop.watch(self._terminals.descriptor, self._terminal_removed)

    def __contains__(self, slot: int) -> bool:
        """Return True if the program of `slot` runs."""
        return slot in self._fds

    @property
    def live(self) -> frozenset[int]:
        return frozenset(self._fds)

    @property
    def sessions(self) -> list[processes.Session]:
        return [processes.Session(leader=leader, until=until) for leader, until in self._until.items()]

    def adopt(self) -> int:
        """Take over the current panes; return their number."""
        panes = tmux_client.list_panes(self.run.socket)
        for pane in panes:
            if self.server is None or self.server.pid != pane.server:
                self.server = identify(pane.server)
            if pane.slot not in self and not self._is_settled(pane):
                self._follow(pane.slot, pane.pid)
        self._look_at_terminals()
        return len(panes)

    def watch_server(self, gone: Callable[[], None]) -> None:
        """Call `gone` when the tmux server has ended, at once if it already has."""
        descriptor = None if self.server is None else open_verified(self.server)
        if descriptor is None:
            gone()
            return

        def look() -> None:
            if has_ended_within(descriptor, 0.0):
                self._look_at_server = lambda: None
                self._loop.forget(descriptor)
                os.close(descriptor)
                gone()

        self._look_at_server = look
        self._loop.watch(descriptor, look)

    def was_closed(self, slot: int) -> bool:
        """Return True if the pane of a program that has ended was closed before; its wrapper has noted that."""
        return (self.run.process_dir(slot) / "hup").exists()

    def respawn(self, planned: PlannedProcess) -> None:
        """Run a program again and watch it; first kill leftovers of its last session.

        If its pane was closed, it gets a new pane in a new window. A program that has ended already is not watched
        afterwards. Raises TmuxSilent if tmux does not answer: call it again later, since tmux may have started the
        program or not. Raises ToolFailed if tmux refuses, OSError if a file cannot be written.
        """
        slot, panes = planned.slot, self._list()
        pane = next((pane for pane in panes if pane.slot == slot), None)
        before = pane.pid if pane else 0
        # After a silence, another program in the pane shows that tmux has started it.
        if self._asked.pop(slot, before) == before:
            self._prepare(slot)
            self._asked[slot] = before
            if pane is not None:
                tmux_client.respawn(self.run.socket, pane.id, timeout_s=_COMMAND_S)
            else:
                commands = self.run.process_dir(slot) / "pane.conf"
                text = new_pane(planned, str(self.run.folder), has_session=bool(panes))
                commands.write_text(text, encoding="utf-8")
                tmux_client.source_file(self.run.socket, commands, timeout_s=_COMMAND_S)
            panes = self._list()
            del self._asked[slot]
        for started in panes:
            if started.slot == slot:
                self._follow(slot, started.pid)

    def _prepare(self, slot: int) -> None:
        process, folder = self._slots[slot], self.run.process_dir(slot)
        for name in ("limit", "pid", "go", "hup"):
            (folder / name).unlink(missing_ok=True)
        # Overwrite both files in place: that works even on a full disk.
        with (folder / "exit").open("r+b" if (folder / "exit").exists() else "wb") as exit_file:
            exit_file.write(NO_STATUS)
        with contextlib.suppress(FileNotFoundError), (folder / "tries").open("r+") as file:
            file.write(f"{process.restarts + 1}\n")
        self._kill_session(process.wrapper)

    def _list(self) -> list[tmux_client.Pane]:
        """Return all panes. Raises TmuxSilent without a query if tmux was silent a moment ago."""
        if time.monotonic() < self._silent_until:
            raise tmux_client.TmuxSilent("tmux does not answer")
        try:
            return tmux_client.list_panes(self.run.socket, timeout_s=_ANSWER_S)
        except tmux_client.TmuxSilent:
            self._silent_until = time.monotonic() + _ANSWER_S
            raise

    def release(self, slot: int) -> None:
        """Release the program of `slot`, which waits at its pipe ``go``; it may not have opened that yet."""
        gate = self.run.process_dir(slot) / "go"
        try:
            descriptor = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError:
            if slot in self:
                self._loop.later(0.01, lambda: self.release(slot))
            return
        # The pipe must be gone at the next start; the shell that reads it would need a program to remove it.
        gate.unlink()
        os.write(descriptor, b"\n")
        os.close(descriptor)

    def end(self, slot: int, grace_s: float) -> None:
        """Send TERM to the main process of a slot, and KILL to its session after the grace period."""
        wrapper = self._slots[slot].wrapper
        if send_signal(self.run.main_process(self._slots[slot]), signal.SIGTERM):
            self._loop.later(grace_s, lambda: self._kill(slot, wrapper))
        else:
            self._kill(slot, wrapper)

    def status_of(self, slot: int) -> int | None:
        """Return the exit status that the wrapper wrote, None if it is unknown.

        A wrapper that was killed wrote nothing: its program is killed as well. If this supervisor killed it after its
        grace period, the status is 128 + SIGKILL.
        """
        with contextlib.suppress(OSError, ValueError):
            return int((self.run.process_dir(slot) / "exit").read_text(encoding="ascii"))
        wrapper = self._slots[slot].wrapper
        self._kill_session(wrapper)
        return _KILLED if wrapper in self._killed else None

    def kill_leftovers(self) -> None:
        """Kill what programs that have ended have left running, as a container does at its end."""
        live = [self._slots[slot].wrapper for slot in self._fds]
        left = [session for session in self.sessions if session.leader not in live]
        processes.signal_all(processes.members("", left, b"\0"), signal.SIGKILL)

    def limit_of(self, slot: int) -> str:
        """Return the limit that ended the program, as text; empty if none did."""
        try:
            return (self.run.process_dir(slot) / "limit").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""

    def _is_settled(self, pane: tmux_client.Pane) -> bool:
        """Return True if the end of the program in a pane is already handled, although tmux does not report it yet."""
        process = self._slots[pane.slot]
        wrapper, stat = process.wrapper, read_stat(pane.pid)
        is_same = wrapper is not None and wrapper.pid == pane.pid and (stat is None or stat.start == wrapper.start)
        return process.phase == "backoff" and is_same

    def _follow(self, slot: int, pid: int) -> None:
        opened, stat = open_identified(pid), read_stat(pid)
        is_of_tmux = stat is not None and self.server is not None and stat.parent == self.server.pid
        if opened is None or not is_of_tmux:
            # The program has ended, and another one may have its pid by now.
            self._slots[slot].wrapper = None
            if opened is not None:
                os.close(opened[0])
            return
        descriptor, record = opened
        self._slots[slot].wrapper = record
        self._until[record] = record.start
        self._fds[slot] = descriptor
        self._loop.watch(descriptor, functools.partial(self._died, slot, record))

    def _died(self, slot: int, record: ProcessRecord) -> None:
        descriptor = self._fds.pop(slot)
        self._loop.forget(descriptor)
        os.close(descriptor)
        self._until[record] = ticks_now()
        # Programs may end because they have lost their terminal; detect that first.
        self._look_at_server()
        self._ended(slot)

    def _kill(self, slot: int, wrapper: ProcessRecord | None) -> None:
        if slot in self and wrapper is not None and self._slots[slot].wrapper == wrapper:
            self._killed.add(wrapper)
            self._kill_session(wrapper)

    def _kill_session(self, leader: ProcessRecord | None) -> None:
        if leader is not None:
            session = processes.Session(leader=leader, until=self._until.get(leader, leader.start))
            processes.signal_all(processes.members("", [session], b"\0"), signal.SIGKILL)

    # Terminals

    def _terminal_removed(self) -> None:
        for _ in self._terminals.events():
            pass
        if not self._is_looking:
            self._is_looking = True
            self._loop.later(_PAUSE_S, self._look_at_terminals)

    def _look_at_terminals(self) -> None:
        self._is_looking = False
        for slot in self.live:
            wrapper = self._slots[slot].wrapper
            if wrapper is not None and wrapper not in self._without_terminal and _has_lost_terminal(wrapper.pid):
                self._without_terminal.add(wrapper)
                self._closed(slot)


def _has_lost_terminal(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/0").readlink()).endswith(" (deleted)")
    return False
