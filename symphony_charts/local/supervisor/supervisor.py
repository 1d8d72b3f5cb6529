"""The supervisor of one run: sees every death at once, starts what may start, decides, and ends the run clean.

Started by `NewSupervisor`, which tells it the folder of its run. It waits on pidfds and timers in one `select.poll`
and does nothing in between. It holds nothing that is not on disk: after kill -9 the run lives on, and the next verb
starts it again on the same folder. SIGTERM to it ends the run.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.local.machine.gpu_locks import hold_again
from symphony_charts.local.plan.records import Check
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.event_loop import signal_pipe
from symphony_charts.local.supervisor.policy import Backoff, Decision, judge
from symphony_charts.local.supervisor.progress import (
    hopeless,
    mark_ended,
    mark_renewed,
    mark_restarted,
    mark_started,
    startable,
    verdict,
)
from symphony_charts.local.supervisor.requests import requested
from symphony_charts.local.supervisor.run_state import WatchedRun
from symphony_charts.local.supervisor.startup import Starter, attend_start, make_room

__all__ = ["Supervisor", "main"]


class Supervisor(WatchedRun):
    """One run under watch, from its start or from where another supervisor left it, to its end."""

    def __init__(self, run: Run, starter: Starter) -> None:
        super().__init__(run)
        self.starter = starter
        make_room(len(self.slots))
        self.gpus = hold_again(run, self.plan)
        self.backoff = Backoff(**self.plan.get("backoff", {}))

    def watch(self, *, is_start: bool) -> None:
        """Run until the run is over; with `is_start` its processes are only being started."""
        signals = signal_pipe(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
        self.loop.watch(self.clock.descriptor, self.clock.note)
        if is_start:
            self.phase = "starting"
            attend_start(self.loop, self.run.folder / "born", self.starter, self._born, self._save)
            self.phase, self.dirty = "running", True
        count = self._adopt()
        self.loop.watch(signals, lambda: self._signalled(os.read(signals, 64)))
        self._take_requests()
        self._advance()
        self._save()
        self.starter.tell(count)
        self.starter.leave()
        while self.phase != "over":
            self._save()
            self.loop.turn()
        self._finish()

    # What others ask for

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._take_requests()
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self.stop("stopped")

    def _take_requests(self) -> None:
        """Read the plan again, and start again the slots that have a file in `again`."""
        self.plan = self.run.plan()
        wanted = [slot for slot in requested(self.run) if not self.slots[slot].get("again")]
        if self.phase != "running" or not wanted:
            return
        for slot in wanted:
            self.slots[slot]["again"] = True
        for slot in wanted:
            if self.slots[slot]["phase"] == "waiting" or slot not in self.panes:
                self._start_afresh(slot)
            else:
                self._end(slot)
        self._advance()

    def _start_afresh(self, slot: int) -> None:
        """Have a slot started because somebody asked for it: its restarts count from the beginning again."""
        process = self.slots[slot]
        process["again"] = False
        if slot not in self.panes:
            mark_renewed(process)
        if self.failed and self.failed["slot"] == slot:
            self.failed = None
        for other in self.slots:
            if other["phase"] == "stopped" and not other.get("started"):
                # It was given up because of this one, perhaps; its program still waits at its gate.
                other["phase"] = "waiting"
        self.file.grant(slot)
        self.dirty = True

    # Taking over

    def _born(self, slot: int, pid: int) -> None:
        """A program runs while others are still being started; unless it waits at its gate, this is its start."""
        if self.panes.born(slot, pid) and not self.plan["processes"][slot]["waits"]:
            self._note_start(slot)

    def _adopt(self) -> int:
        """Take over the panes as they are now, and what a supervisor before this one had not brought to its end."""
        count = self.panes.adopt()
        self.old["tmux"] = self.panes.server or self.old.get("tmux", 0)
        if self.old["phase"] == "stopping":
            self.stop(self.old["reason"])
        for slot, process in enumerate(self.slots):
            # Who was being ended for a restart is asked for again.
            process.pop("again", None)
            if process["phase"] == "backoff":
                self._await_restart(slot)
            elif process.get("is_again"):
                continue
            elif slot not in self.panes and process["phase"] in ("waiting", "starting", "running"):
                self._ended(slot)
            elif slot in self.panes and process["phase"] == "running" and self.phase == "running":
                self._attend(slot)
        return count

    def _await_restart(self, slot: int) -> None:
        process = self.slots[slot]
        if slot in self.panes:
            process["restarts"] += 1
            self._started(slot)
        else:
            self._restart_after(slot, process["ended"] + self.backoff.delay_s(process.get("in_a_row", 0)) - time.time())

    # Deaths and what follows

    def _ended(self, slot: int) -> None:
        process, now = self.slots[slot], self.panes.ended_at(slot)
        self.checks.leave(slot)
        status = self.panes.status_of(slot)
        mark_ended(process, status, now, self.panes.limit_of(slot))
        self.dirty = True
        if self.phase != "running":
            process["phase"] = "done" if status == 0 else "stopped"
            self._stop_when_empty()
        elif process.get("again"):
            self._start_afresh(slot)
            self._advance()
        else:
            if now - (process.get("started") or now) >= self.backoff.forget_s:
                process["in_a_row"] = 0
            self._follow_up(slot, judge(process, self.plan["processes"][slot], status, self.backoff))

    def _follow_up(self, slot: int, decision: Decision) -> None:
        process = self.slots[slot]
        if decision.action == "restart":
            process["phase"] = "backoff"
            self._restart_after(slot, decision.delay_s)
        elif decision.action == "failed":
            process["phase"] = "failed"
            failed = {"name": process["name"], "status": process["status"] or 1, "slot": slot}
            self.failed = self.failed or {**failed, "limit": process.get("limit", "")}
            if decision.stops:
                self.stop("failed")
                return
        self._advance()

    def _restart_after(self, slot: int, delay_s: float) -> None:
        ended = self.slots[slot]["ended"]

        def restart() -> None:
            # Meanwhile somebody may have started it by hand, and it may have ended once more.
            if self.slots[slot]["ended"] == ended:
                self._restart(slot)

        self.loop.later(max(0.0, delay_s), restart)

    def _restart(self, slot: int) -> None:
        process = self.slots[slot]
        if self.phase != "running" or process["phase"] != "backoff":
            return
        try:
            self.panes.start_again(slot)
        except ToolFailed as error:
            # Without tmux nothing can be started any more, and what runs cannot be looked at.
            sys.stderr.write(f"{error}\n")
            self._follow_up(slot, Decision(action="failed", stops=True))
            return
        mark_restarted(process)
        self._started(slot)
        self.panes.follow_again(slot)
        if slot not in self.panes:
            # It was over before it could be watched: nothing else will tell.
            self._ended(slot)

    # Order and health

    def _advance(self) -> None:
        """Start what waits for nothing any more; end the run when what it is for is done."""
        if self.phase != "running":
            return
        planned = self.plan["processes"]
        for slot in startable(self.slots, planned):
            if self.slots[slot].pop("is_again", False):
                self.slots[slot]["phase"] = "backoff"
                self._restart(slot)
            else:
                self._started(slot)
                self.panes.let_go(slot)
        for slot in hopeless(self.slots, planned):
            self.slots[slot]["phase"] = "stopped"
            self.dirty = True
        found = verdict(self.slots, planned, self.plan["done_when"])
        if found is not None:
            self.stop("failed" if self.failed else "finished")

    def _started(self, slot: int) -> None:
        self._note_start(slot)
        self._attend(slot)

    def _note_start(self, slot: int) -> None:
        mark_started(self.slots[slot], self.plan["processes"][slot], time.time())
        # While everything is being started this is no news: `waiting` will do.
        self.dirty = self.dirty or self.phase != "starting"

    def _attend(self, slot: int) -> None:
        """Begin the checks of a process that runs, and its deadline."""
        process, planned = self.slots[slot], self.plan["processes"][slot]
        self.checks.attend(slot, planned, started=process["started"], is_ready=process["ready"])
        if planned["deadline_s"]:
            began = process["began"]
            left = began + planned["deadline_s"] - time.time()
            self.loop.later(max(0.0, left), lambda: self._overdue(slot, began))

    def _changed(self, slot: int, is_ready: bool, why: str) -> None:
        self.slots[slot].update(ready=is_ready, unready=why)
        self.dirty = True
        if is_ready:
            self._advance()

    def _dead(self, slot: int, check: Check, why: str) -> None:
        kind = "startup" if check.role == "started" else "liveness"
        self.slots[slot]["unhealthy"] = f"{kind} probe failed: {why}"
        self.dirty = True
        self._end(slot, check.grace_s)

    def _overdue(self, slot: int, began: float) -> None:
        process, planned = self.slots[slot], self.plan["processes"][slot]
        if self.phase == "running" and process.get("began") == began and process["phase"] in ("running", "backoff"):
            process["is_overdue"] = True
            if slot in self.panes:
                self._end(slot)
            else:
                self._follow_up(slot, judge(process, planned, process["status"], self.backoff))


def main(*, is_start: bool) -> None:
    """Watch a run until it is over; who started this says which, and with `is_start` when there is something to see."""
    starter = Starter(0)
    folder = starter.folder()
    if folder and (not is_start or starter.heard()):
        Supervisor(Run(Path(folder)), starter).watch(is_start=is_start)


if __name__ == "__main__":
    main(is_start=sys.argv[1:] == ["start"])
