"""The supervisor of one run: sees every death at once, starts what may start, decides, and ends the run clean.

Started by `symph up` as ``python -m symphony_charts.cluster.local_supervisor RUN_FOLDER``. It waits on pidfds and
timers in one `select.poll` and does nothing in between. It holds nothing that is not on disk: after kill -9 the run
lives on, and the next verb starts it again on the same folder. SIGTERM to it ends the run.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from symphony_charts.cluster.local_checks import is_ready_now
from symphony_charts.cluster.local_gpu_locks import hold_again
from symphony_charts.cluster.local_logs import LogClock
from symphony_charts.cluster.local_loop import Loop
from symphony_charts.cluster.local_panes import Panes
from symphony_charts.cluster.local_requests import requested, withdraw
from symphony_charts.cluster.local_store import Run, write_json
from symphony_charts.cluster.local_sweep import remove_private, sweep
from symphony_charts.local.policy import Backoff, decide

__all__ = ["Supervisor", "main"]


class Supervisor:
    """One run under watch. `slots` holds for each process what `state.json` says of it."""

    def __init__(self, run: Run) -> None:
        self.run, self.plan = run, run.plan()
        self.old = run.state()
        self.slots: list[dict[str, Any]] = [dict(process) for process in self.old["processes"]]
        self.loop = Loop()
        self.panes = Panes(run, self.slots, self.loop, self._ended)
        self.phase, self.reason, self.failed = "running", "", self.old.get("failed")
        self.dirty = True
        # Held open until this process ends.
        self.gpus = hold_again(run, self.plan)
        self.backoff = Backoff(**self.plan.get("backoff", {}))
        self.clock = LogClock([run.process_dir(slot) / "log" for slot in range(len(self.slots))])

    def watch(self) -> None:
        """Run until the run is over."""
        signals = _signal_pipe()
        self._adopt()
        self.loop.watch(signals, lambda: self._signalled(os.read(signals, 64)))
        self.loop.watch(self.clock.descriptor, self.clock.note)
        self._take_requests()
        self._advance()
        while self.phase != "over":
            self._save()
            self.loop.turn()
        self._finish()

    def stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace, KILL to everything."""
        if self.phase != "running":
            return
        self.phase, self.reason, self.dirty = "stopping", reason, True
        for slot, process in enumerate(self.slots):
            if slot in self.panes:
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
            elif slot in self.panes:
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
        self.panes.adopt()
        for slot, process in enumerate(self.slots):
            if slot not in self.panes and process["phase"] in ("waiting", "starting", "running"):
                self._ended(slot)

    def _ended(self, slot: int) -> None:
        process, planned = self.slots[slot], self.plan["processes"][slot]
        status = self.panes.status_of(slot)
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
            self.loop.later(decision.delay_s, lambda: self._restart(slot))
        elif decision.action == "failed":
            process["phase"] = "failed"
            self.failed = self.failed or {"name": process["name"], "status": status, "slot": slot}
            if decision.stops:
                self.stop("failed")
                return
        self._advance()

    def _restart(self, slot: int) -> None:
        process = self.slots[slot]
        if self.phase != "running" or process["phase"] != "backoff":
            return
        self.panes.start_again(slot)
        process.update(restarts=process["restarts"] + 1, status=None, ended=None)
        self._started(slot)
        self.panes.follow_again(slot)
        if slot not in self.panes:
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
                self.panes.let_go(slot)
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
            self.loop.later(first, functools.partial(self._check, slot, check, 0.03))
        if planned["deadline_s"]:
            started = self.slots[slot]["started"]
            self.loop.later(planned["deadline_s"], lambda: self._deadline(slot, started))

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
        self.loop.later(again, lambda: self._check(slot, check, again))

    def _deadline(self, slot: int, started: float) -> None:
        if slot in self.panes and self.slots[slot].get("started") == started:
            self._end(slot)

    # Ending

    def _end(self, slot: int) -> None:
        self.panes.end(slot, self.plan["processes"][slot]["grace_s"])

    def _stop_when_empty(self) -> None:
        if not self.panes:
            self.phase = "over"

    def _finish(self) -> None:
        """Nothing of the run may be left: what still is gets killed, and what survives that is named."""
        left = sweep(
            self.run,
            self.panes.sessions,
            has_namespace=self.plan["has_namespace"],
            server=int(self.old.get("tmux", 0)),
        )
        self.clock.note()
        self.phase = self.reason
        self._save(survivors=left)
        remove_private(self.run.folder, len(self.slots))

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


def main(folder: str) -> None:
    """Watch the run in `folder` until it is over."""
    Supervisor(Run(Path(folder))).watch()


if __name__ == "__main__":
    main(sys.argv[1])
