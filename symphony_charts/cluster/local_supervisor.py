"""The supervisor of one run: sees every death at once, starts what may start, decides, and ends the run clean.

Started by `symph up` as ``python -m symphony_charts.cluster.local_supervisor RUN_FOLDER``. It waits on pidfds and
timers in one `select.poll` and does nothing in between. It holds nothing that is not on disk: after kill -9 the run
lives on, and the next verb starts it again on the same folder. SIGTERM to it ends the run.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symphony_charts.adapters import processes, tmux
from symphony_charts.cluster.local_checks import is_ready_now
from symphony_charts.cluster.local_logs import LogClock
from symphony_charts.cluster.local_requests import requested, withdraw
from symphony_charts.cluster.local_store import Run, write_json
from symphony_charts.errors import ToolFailed
from symphony_charts.local.policy import Backoff, decide

__all__ = ["Supervisor", "main"]

# A state file rewritten at most this often while many things happen at once, in seconds.
_SETTLE_S = 0.01
# After KILL nothing should live; this long is waited for the kernel to agree, in seconds.
_SWEEP_S = 5.0
_KILLED = 128 + signal.SIGKILL


class Supervisor:
    """One run under watch. `slots` holds for each process what `state.json` says of it."""

    def __init__(self, run: Run) -> None:
        self.run, self.plan = run, run.plan()
        self.old = run.state()
        self.slots: list[dict[str, Any]] = [dict(process) for process in self.old["processes"]]
        self.poll, self.by_fd, self.fds = select.poll(), dict[int, int](), dict[int, int]()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()
        self.phase, self.reason, self.failed = "running", "", self.old.get("failed")
        self.mount = str(run.folder / "scratch") if self.plan["has_namespace"] else ""
        self.sessions: set[int] = set()
        self.dirty = True
        self.backoff = Backoff(**self.plan.get("backoff", {}))
        self.clock = LogClock([run.process_dir(slot) / "log" for slot in range(len(self.slots))])

    def watch(self) -> None:
        """Run until the run is over."""
        signals = _signal_pipe()
        self._adopt()
        self.poll.register(signals, select.POLLIN)
        self.poll.register(self.clock.descriptor, select.POLLIN)
        self._take_requests()
        self._advance()
        while self.phase != "over":
            self._save()
            for descriptor, _ in self.poll.poll(self._pause_ms()):
                if descriptor == signals:
                    self._signalled(os.read(signals, 64))
                elif descriptor == self.clock.descriptor:
                    self.clock.note()
                else:
                    self._died(self.by_fd[descriptor])
            self._run_timers()
        self._finish()

    def stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace, KILL to everything."""
        if self.phase != "running":
            return
        self.phase, self.reason, self.dirty = "stopping", reason, True
        for slot, process in enumerate(self.slots):
            if slot in self.fds:
                self._end(slot)
            elif process["phase"] in ("waiting", "backoff"):
                process["phase"] = "stopped"
        self._stop_when_empty()

    # What others ask for

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._take_requests()
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self.stop("stopped")

    def _take_requests(self) -> None:
        """Read the plan again, and start again the slots that have a file in `again`."""
        self.plan = self.run.plan()
        for slot in requested(self.run):
            process = self.slots[slot]
            if self.phase != "running" or process.get("again"):
                continue
            if process["phase"] == "waiting":
                withdraw(self.run, slot)
                self.dirty = True
            elif slot in self.fds:
                process["again"] = True
                self._end(slot)
            else:
                self._start_afresh(slot)

    def _start_afresh(self, slot: int) -> None:
        """Start a slot because somebody asked for it: its restarts count from the beginning again."""
        self.slots[slot].update(phase="backoff", restarts=-1, again=False)
        if self.failed and self.failed["slot"] == slot:
            self.failed = None
        self._restart(slot)
        withdraw(self.run, slot)

    # Deaths and what follows

    def _adopt(self) -> None:
        """Take over the panes as they are now."""
        for pane in tmux.list_panes(self.run.socket):
            self.slots[pane.slot].update(pane=pane.id)
            self._follow(pane.slot, pane.pid)
        for slot, process in enumerate(self.slots):
            if slot not in self.fds and process["phase"] in ("waiting", "starting", "running"):
                self._ended(slot)

    def _follow(self, slot: int, pid: int) -> None:
        self.slots[slot]["wrapper"] = pid
        self.sessions.add(pid)
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.fds[slot], self.by_fd[descriptor] = descriptor, slot
        self.poll.register(descriptor, select.POLLIN)

    def _died(self, slot: int) -> None:
        descriptor = self.fds.pop(slot)
        self.by_fd.pop(descriptor)
        self.poll.unregister(descriptor)
        os.close(descriptor)
        self._ended(slot)

    def _ended(self, slot: int) -> None:
        process, planned = self.slots[slot], self.plan["processes"][slot]
        status = self._status_of(slot)
        process.update(status=status, ended=time.time(), ready=False, phase="done" if status == 0 else "failed")
        self.dirty = True
        if self.phase != "running":
            process["phase"] = "done" if status == 0 else "stopped"
            self._stop_when_empty()
            return
        if process.get("again"):
            self._start_afresh(slot)
            return
        decision = decide(
            status=status,
            is_service=planned["is_service"],
            restart=planned["restart"],
            retries=planned["retries"],
            on_exit=planned["on_exit"],
            restarts=process["restarts"],
            backoff=self.backoff,
        )
        if decision.action == "restart":
            process["phase"] = "backoff"
            self._later(decision.delay_s, lambda: self._restart(slot))
        elif decision.action == "failed":
            process["phase"] = "failed"
            self.failed = self.failed or {"name": process["name"], "status": status, "slot": slot}
            if decision.stops:
                self.stop("failed")
                return
        self._advance()

    def _status_of(self, slot: int) -> int:
        """What the wrapper wrote. A wrapper that was killed wrote nothing: then what it ran is killed as well."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.run.process_dir(slot) / "exit").read_text(encoding="ascii"))
        session = {self.slots[slot].get("wrapper", 0)} - {0}
        processes.signal_process(processes.members("", session, b"\0"), signal.SIGKILL)
        return _KILLED

    def _restart(self, slot: int) -> None:
        process = self.slots[slot]
        if self.phase != "running" or process["phase"] != "backoff":
            return
        for name in ("exit", "pid"):
            (self.run.process_dir(slot) / name).unlink(missing_ok=True)
        # What the last start left behind in its session must not meet the next one.
        processes.signal_process(processes.members("", {process["wrapper"]} - {0}, b"\0"), signal.SIGKILL)
        process.update(restarts=process["restarts"] + 1, status=None, ended=None)
        tmux.respawn(self.run.socket, process["pane"])
        self._started(slot)
        for pane in tmux.list_panes(self.run.socket):
            if pane.slot == slot:
                self._follow(slot, pane.pid)
        if slot not in self.fds:
            # It was over before it could be watched: nothing else will tell.
            self._ended(slot)

    # Order and readiness

    def _advance(self) -> None:
        """Start what waits for nothing any more; end the run when what it is for is done."""
        if self.phase != "running":
            return
        for slot, process in enumerate(self.slots):
            if process["phase"] == "waiting" and all(
                self._is_met(wait) for wait in self.plan["processes"][slot]["waits"]
            ):
                self._started(slot)
                self._open_gate(slot)
        aims = self.plan["done_when"]
        is_done = bool(aims) and all(self.slots[slot]["phase"] == "done" for slot in aims)
        if is_done or all(process["phase"] in ("done", "failed") for process in self.slots):
            self.stop("failed" if self.failed else "finished")

    def _is_met(self, wait: dict[str, Any]) -> bool:
        other = self.slots[wait["slot"]]
        return other["phase"] == "done" or (wait["until"] == "ready" and bool(other["ready"]))

    def _started(self, slot: int) -> None:
        planned = self.plan["processes"][slot]
        self.slots[slot].update(phase="running", started=time.time(), ready=not planned["checks"])
        self.dirty = True
        for check in planned["checks"]:
            first = 0.01 if check["automatic"] else check["initial_delay_s"]
            self._later(first, functools.partial(self._check, slot, check, 0.03))
        if planned["deadline_s"]:
            started = self.slots[slot]["started"]
            self._later(planned["deadline_s"], lambda: self._deadline(slot, started))

    def _open_gate(self, slot: int) -> None:
        """Let a waiting wrapper go; it may not have reached its pipe yet."""
        gate = self.run.process_dir(slot) / "go"
        try:
            descriptor = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError:
            if slot in self.fds:
                self._later(0.01, lambda: self._open_gate(slot))
            return
        os.write(descriptor, b"\n")
        os.close(descriptor)

    def _check(self, slot: int, check: dict[str, Any], pause_s: float) -> None:
        process = self.slots[slot]
        if self.phase != "running" or process["phase"] != "running" or process["ready"]:
            return
        if is_ready_now(check, self.run.process_dir(slot)):
            remaining = process.setdefault("passed", [])
            remaining.append([check["kind"], check["port"]])
            if len(remaining) >= len(self.plan["processes"][slot]["checks"]):
                process.update(ready=True, passed=[])
                self.dirty = True
                self._advance()
            return
        again = min(pause_s * 1.5, 1.0) if check["automatic"] else check["period_s"]
        self._later(again, lambda: self._check(slot, check, again))

    def _deadline(self, slot: int, started: float) -> None:
        if slot in self.fds and self.slots[slot].get("started") == started:
            self._end(slot)

    # Ending

    def _end(self, slot: int) -> None:
        """TERM to the main process of a slot, KILL to its session after its grace period."""
        planned, pid = self.plan["processes"][slot], self._main_pid(slot)
        wrapper = self.slots[slot]["wrapper"]
        if pid:
            processes.signal_process([pid], signal.SIGTERM)
            self._later(planned["grace_s"], lambda: self._kill(slot, wrapper))
        else:
            self._kill(slot, wrapper)

    def _kill(self, slot: int, wrapper: int) -> None:
        if slot in self.fds and self.slots[slot]["wrapper"] == wrapper:
            processes.signal_process(processes.members("", {wrapper}, b"\0"), signal.SIGKILL)

    def _main_pid(self, slot: int) -> int:
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.run.process_dir(slot) / "pid").read_text(encoding="ascii"))
            return pid if processes.is_alive(pid) else 0
        return 0

    def _stop_when_empty(self) -> None:
        if not self.fds:
            self.phase = "over"

    def _finish(self) -> None:
        """Nothing of the run may be left: what still is gets killed, and what survives that is named."""
        cookie = f"SYMPH_RUN={self.run.run_id}".encode()
        # Where a namespace tells who belongs to the run, sessions need not, and their numbers may be others' by now.
        sessions = set() if self.mount else self.sessions
        tmux_pid = self._server_pid()
        deadline = time.monotonic() + _SWEEP_S
        while left := [pid for pid in processes.members(self.mount, sessions, cookie) if pid != tmux_pid]:
            if time.monotonic() > deadline:
                break
            processes.signal_process(left, signal.SIGKILL)
            time.sleep(0.02)
        self.clock.note()
        tmux.kill_server(self.run.socket)
        processes.signal_process([pid for pid in [tmux_pid] if processes.is_alive(pid)], signal.SIGKILL)
        self.phase = self.reason
        self._save(survivors=left)
        _remove_private(self.run.folder, len(self.slots))

    def _server_pid(self) -> int:
        """The tmux server; a hung one answers nobody and is known from the start of the run."""
        with contextlib.suppress(ToolFailed):
            return tmux.server_pid(self.run.socket, timeout_s=2.0)
        return int(self.old.get("tmux", 0))

    # Time and state

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.timers, (time.monotonic() + delay_s, next(self.numbers), action))

    def _run_timers(self) -> None:
        while self.timers and self.timers[0][0] <= time.monotonic() and self.phase != "over":
            heapq.heappop(self.timers)[2]()

    def _pause_ms(self) -> float | None:
        """How long nothing is due; None without any timer, so that an idle run costs nothing."""
        if not self.timers:
            return None
        return max(0.0, (self.timers[0][0] - time.monotonic()) * 1000) + 0.5

    def _save(self, survivors: list[int] | None = None) -> None:
        if not self.dirty and survivors is None:
            return
        self.dirty = False
        write_json(
            self.run.folder / "state.json",
            {
                **self.old,
                "phase": self.phase,
                "reason": self.reason,
                "supervisor": os.getpid() if survivors is None else 0,
                "ended": None if survivors is None else time.time(),
                "failed": self.failed,
                "survivors": survivors or [],
                "processes": self.slots,
            },
        )


def _signal_pipe() -> int:
    """A descriptor that becomes readable on SIGTERM, SIGINT or SIGHUP."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return reader


def _remove_private(folder: Path, count: int) -> None:
    """Remove what the processes saw, secrets first; plan, state and logs stay as the history of the run."""
    import shutil

    for name in ("files", "volumes", "scratch"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("up.conf", "enter", "bind.sh", "wrapper.sh"):
        (folder / name).unlink(missing_ok=True)
    for slot in range(count):
        for name in ("start", "mounts", "plain", "go", "pid", "exit"):
            (folder / "p" / str(slot) / name).unlink(missing_ok=True)


def main(folder: str) -> None:
    """Watch the run in `folder` until it is over."""
    Supervisor(Run(Path(folder))).watch()


if __name__ == "__main__":
    main(sys.argv[1])
