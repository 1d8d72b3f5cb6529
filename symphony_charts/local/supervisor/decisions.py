"""Decide the next state of a run and the actions of its supervisor: a pure function of the state and an event.

Processes and planned processes are in slot order.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from symphony_charts.local.plan.records import AtEnd, LocalPlan, PlannedProcess
from symphony_charts.local.run_state import Failure, ProcessState, RunPhase, RunState
from symphony_charts.local.status import unmet_waits

# The status of a process that exited with 0 after its liveness probe had stopped it.
_UNHEALTHY = 137


# `restart` after a pause, `done` (succeeded), or `failed` for good.
Decision = Literal["restart", "done", "failed"]


def restart_decision(process: ProcessState, planned: PlannedProcess, status: int | None) -> Decision:
    """Decide how to react to the end of a process with `status` (None: unknown, which is a failure).

    Finite processes that exit with 0 are done. Failures are retried `retries` times under `on-failure` (like a Job's
    backoffLimit, without the first run) and without limit under `always`. A service that must not restart has failed
    when it ends, with any status.
    """
    if process.is_overdue:
        # As for a Job past its deadline: it has failed, whatever its status and remaining retries.
        return "failed"
    if process.unhealthy and planned.restart != "never" and status == 0:
        # A process that its liveness probe stopped has not succeeded.
        status = _UNHEALTHY
    if planned.restart == "always":
        return "restart"
    if status == 0 and not planned.is_service:
        return "done"
    has_retries = planned.is_service or process.restarts < planned.retries
    return "restart" if planned.restart == "on-failure" and status != 0 and has_retries else "failed"


def describe_status(status: int | None) -> str:
    """Return a status as text: ``exit status 3``, or for a signal ``SIGKILL (137)`` as in a pod; None is unknown."""
    if status is None:
        return "exit status unknown"
    try:
        return f"{signal.Signals(status - 128).name} ({status})"
    except ValueError:
        return f"exit status {status}"


# When a process may run and start again, by its `at_end`.
_GOES_ON: dict[AtEnd, tuple[RunPhase, ...]] = {
    "stop": ("running",),
    "linger": ("running", "lingering"),
    "stay": ("running", "lingering", "kept"),
}
_ENDED = ("done", "failed", "stopped")
# Retry a blocked start after this pause, in seconds.
_HELD_S = 1.0


Deed = Literal["release", "respawn", "attend", "end", "read end", "sweep", "grant"]
Timer = Literal["restart_due", "overdue", "linger_over"]


class Act(Struct, frozen=True):
    """An action on the program of `slot`.

    ``release`` lets it start where it waits; ``respawn`` restarts it, and reports that to `Transition`; ``attend``
    begins its checks; ``end`` sends TERM, and KILL after `grace_s`; ``read end`` determines an end that was not
    observed; ``sweep`` kills what ended programs have left running; ``grant`` withdraws its restart request once the
    state is written.
    """

    do: Deed
    slot: int
    grace_s: float = 0.0


class Later(Struct, frozen=True):
    """Call this method of a `Transition` after so many seconds; it ignores a process that has moved on since `at`."""

    delay_s: float
    do: Timer
    slot: int = -1
    at: float | None = None


Action = Act | Later


def goes_on(phase: RunPhase, planned: PlannedProcess) -> bool:
    """Return True if a process may run, and start again, in this phase of its run."""
    return phase in _GOES_ON[planned.at_end]


class Transition:
    """The step from `state`, with running programs in the slots `live`, by one event: the call of one public method.

    Afterwards its `state` is the next one, and `actions` are to be taken in this order; the given state does not
    change. The phase is ``over`` once nothing runs any more.
    """

    def __init__(self, state: RunState, live: frozenset[int], plan: LocalPlan, now: float) -> None:
        self._plan, self._planned, self._backoff, self._now, self._live = plan, plan.processes, plan.backoff, now, live
        self._processes = list(state.processes)
        self.state = replace(state, processes=self._processes)
        self.actions: list[Action] = []

    # Events

    def started(self, slot: int, at: float) -> None:
        """Note that a program started with its run, `at` in seconds since 1970; one that waits at its gate has not."""
        if not self._planned[slot].waits:
            self._note_start(slot, at)

    def pane_closed(self, slot: int) -> None:
        """The pane of a program was closed: it has no terminal any more, and its output is not logged."""
        if self._goes_on(slot):
            self._note(slot, unhealthy="its pane was closed")
            if slot in self._live:
                self._end(slot)

    def tmux_gone(self) -> None:
        """All terminals are gone: processes without one are no longer logged and cannot restart."""
        if self.state.phase == "running":
            self.state.cause = "tmux was killed"
        self._stop("failed")

    def readiness(self, slot: int, is_ready: bool, why: str = "") -> None:
        """Checks have found that a process is ready or not."""
        self._note(slot, ready=is_ready, unready=why)
        if is_ready:
            self._advance()

    def probe_failed(self, slot: int, probe: str, why: str, grace_s: float | None = None) -> None:
        """A probe has found that a process must end, within `grace_s` (None: the usual grace period)."""
        self._note(slot, unhealthy=f"{probe} probe failed: {why}")
        self._end(slot, grace_s)

    def restart_due(self, slot: int, ended: float | None) -> None:
        """The pause after the end of a process at that time is over."""
        process = self._processes[slot]
        # A restart on request may have started it in the meantime, and it may have ended again.
        if self._goes_on(slot) and process.phase == "backoff" and process.ended == ended:
            self._act("respawn", slot)

    def held(self, slot: int, why: str) -> None:
        """A program cannot be restarted yet; `why` names the obstacle (``tmux, which does not answer``)."""
        self._later(_HELD_S, "restart_due", slot, self._note(slot, held=why).ended)

    def stop(self) -> None:
        """A command asks to stop the run."""
        self._stop("stopped")

    def linger_over(self, _slot: int = -1, _at: float | None = None) -> None:
        """The services of a run that has ended have lingered for long enough."""
        if self.state.phase == "lingering":
            self.state.phase = "kept"
            self._end_others()

    def ended(self, slot: int, status: int | None, at: float, limit: str = "") -> None:
        """A program has ended `at` a time since 1970; `limit` is the limit that ended it, as text."""
        phase = "done" if status == 0 else "failed"
        process = self._note(slot, status=status, ended=at, ready=False, phase=phase, limit=limit)
        if not self._goes_on(slot):
            self._note(slot, phase="done" if status == 0 else "stopped")
            self._advance()
        elif process.is_stopped:
            self._note(slot, phase="stopped")
            self._act("grant", slot)
            self._advance()
        elif process.is_restart_asked:
            self._start_afresh(slot)
            self._advance()
        else:
            if at - (process.started or at) >= self._backoff.forget_s:
                process = self._note(slot, in_a_row=0)
            self._follow_up(slot, restart_decision(process, self._planned[slot], status))
        # One look at all processes of the machine takes time: not one for each of many.
        is_last = self._planned[slot].gpus or all(self._goes_on(other) for other in self._live)
        if self.state.has_result and not self._goes_on(slot) and is_last:
            self._act("sweep", slot)

    def respawned(self, slot: int) -> None:
        process = self._processes[slot]
        restarts, in_a_row = process.restarts + 1, process.in_a_row + 1
        self._note(slot, restarts=restarts, in_a_row=in_a_row, status=None, ended=None, held="")
        self._start(slot)

    def cannot_respawn(self, slot: int) -> None:
        """Without tmux nothing can start, and running processes cannot be viewed."""
        self._follow_up(slot, "failed", stops=False)
        self._stop("failed")

    def overdue(self, slot: int, began: float | None) -> None:
        """The deadline of a process that began at that time has passed."""
        process = self._processes[slot]
        if not self._goes_on(slot) or process.began != began or process.phase not in ("running", "backoff"):
            return
        self._note(slot, is_overdue=True)
        if slot in self._live:
            self._end(slot)
        else:
            self._follow_up(slot, "failed")

    def restart(self, slots: Sequence[int]) -> None:
        """A command asks to start these processes again."""
        slots = [slot for slot in slots if self._goes_on(slot) and not self._processes[slot].is_restart_asked]
        for slot in slots:
            self._note(slot, is_restart_asked=True, is_stopped=False)
        for slot in slots:
            if self._processes[slot].phase == "waiting" or slot not in self._live:
                self._start_afresh(slot)
            else:
                self._end(slot)
        self._advance()

    def pause(self, slots: Sequence[int]) -> None:
        """A command asks to stop these processes, and to leave them stopped."""
        going = [slot for slot in slots if self._goes_on(slot)]
        slots = [slot for slot in going if not (self._processes[slot].is_stopped and slot in self._live)]
        for slot in slots:
            if slot in self._live:
                self._end(slot)
            else:
                self._act("grant", slot)
                if self._processes[slot].phase in ("done", "failed"):
                    # It has ended by itself, and the run may end without it.
                    continue
                self._note(slot, phase="stopped")
            self._note(slot, is_stopped=True, is_restart_asked=False, is_fresh_start=False, held="")
        self._advance()

    def taken_over(self, stopping: str = "") -> None:
        """The supervisor watches all programs; `stopping` is set if an earlier one was stopping the run."""
        if stopping:
            self._stop(stopping)
        elif self.state.phase != "running":
            self._end_others()
        for slot, process in enumerate(self._processes):
            is_stopping = process.is_stopped and process.phase != "stopped" and slot in self._live
            if process.is_restart_asked or is_stopping:
                # The request is still on disk and is read again.
                self._note(slot, is_restart_asked=False, is_stopped=False)
            if process.phase == "backoff" and slot in self._live:
                self._note(slot, restarts=process.restarts + 1)
                self._start(slot)
            elif process.phase == "backoff":
                due = (process.ended or self._now) + self._backoff.delay_s(process.in_a_row)
                self._later(due - self._now, "restart_due", slot, process.ended)
            elif process.is_fresh_start:
                continue
            elif slot not in self._live and process.phase in ("waiting", "starting", "running"):
                self._act("read end", slot)
            elif slot in self._live and process.phase == "running" and self._goes_on(slot):
                self._attend(slot)

    # Ends and reactions

    def _follow_up(self, slot: int, decision: Decision, *, stops: bool = True) -> None:
        """Carry out a decision; a failure stops the run if the process is planned so, unless `stops` is false."""
        process = self._processes[slot]
        if decision == "restart":
            self._note(slot, phase="backoff")
            self._later(self._backoff.delay_s(process.in_a_row), "restart_due", slot, process.ended)
        elif decision == "failed":
            self._note(slot, phase="failed")
            if stops and self._planned[slot].on_failure == "stop":
                self._conclude("failed")
        self._advance()

    def _conclude(self, reason: str) -> None:
        """Give the run its result, and end what ends with it."""
        if self.state.phase != "running":
            return
        self._note_failure()
        self.state.reason = reason
        later = {self._planned[slot].at_end for slot in range(len(self._processes)) if self._is_active(slot)}
        lingers = self._plan.linger_s > 0 and "linger" in later
        if not lingers and "stay" not in later:
            self._stop(reason)
            return
        self.state.phase, self.state.ended = "lingering" if lingers else "kept", self._now
        self._end_others()

    def _stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace period, KILL to everything."""
        if self.state.phase in ("stopping", "over"):
            return
        # The result of a run does not change with the end of its services.
        self.state.phase, self.state.reason = "stopping", self.state.reason if self.state.ended else reason
        self._end_others()

    def _end_others(self) -> None:
        """End the processes that do not go on in this phase of the run."""
        if self.state.phase == "lingering" and self.state.ended is not None:
            self._later(self.state.ended + self._plan.linger_s - self._now, "linger_over")
        for slot, process in enumerate(self._processes):
            if self._goes_on(slot):
                continue
            if slot in self._live:
                self._end(slot)
            elif process.phase in ("waiting", "backoff"):
                self._note(slot, phase="stopped")
        self._advance()

    def _settle(self) -> None:
        """Note that all that ends with the run has ended; the run is over when nothing runs."""
        if self.state.ended is not None:
            self.state.is_settled = self.state.is_settled or all(self._goes_on(slot) for slot in self._live)
        slots = range(len(self._processes))
        if not self._live and not any(self._goes_on(slot) and self._is_active(slot) for slot in slots):
            self.state.phase = "over"

    def _goes_on(self, slot: int) -> bool:
        return goes_on(self.state.phase, self._planned[slot])

    def _is_active(self, slot: int) -> bool:
        """Return True if a process runs or will start by itself."""
        return slot in self._live or self._processes[slot].phase not in _ENDED

    # Starts

    def _start_afresh(self, slot: int) -> None:
        """Start a process on request; reset its restarts and failures."""
        self._note(slot, is_restart_asked=False, is_stopped=False, held="")
        if slot not in self._live:
            self._note(
                slot, phase="waiting", is_fresh_start=True, restarts=-1, in_a_row=-1, began=None, is_overdue=False
            )
        for other, process in enumerate(self._processes):
            is_given_up = process.phase == "stopped" and not process.started and not process.is_stopped
            if is_given_up and self._goes_on(other) and not self._planned[other].is_removed:
                # It may have been given up because of this process; its program still waits for its release.
                self._note(other, phase="waiting")
        self._act("grant", slot)

    def _note_failure(self) -> None:
        """Note the first process that has failed for good and is still part of the run; keep it while this is true."""
        failed = [one for one in self._processes if one.phase == "failed" and not self._planned[one.slot].is_removed]
        if self.state.failed and any(one.slot == self.state.failed.slot for one in failed):
            return
        self.state.failed = None
        if failed:
            first = min(failed, key=lambda one: one.ended or 0.0)
            # A service that exits with 0 has failed as well.
            status = 1 if first.status == 0 else first.status
            self.state.failed = Failure(name=first.name, status=status, slot=first.slot)

    # Order and readiness

    def _advance(self) -> None:
        """Start the processes whose waits are met; end the run if its aims are reached or unreachable."""
        if self.state.phase in ("stopping", "over"):
            self._settle()
            return
        # A process that is ready at once may unblock others, which may also be ready at once.
        while slots := [slot for slot in startable(self._processes, self._planned) if self._goes_on(slot)]:
            for slot in slots:
                if self._processes[slot].is_fresh_start:
                    self._note(slot, is_fresh_start=False, phase="backoff")
                    self._act("respawn", slot)
                else:
                    self._start(slot)
                    self._act("release", slot)
        while given_up := unreachable(self._processes, self._planned):
            for slot in given_up:
                self._note(slot, phase="stopped")
        if self.state.phase != "running":
            self._settle()
            return
        self._note_failure()
        if has_result(self._processes, self._planned, self._plan.done_when):
            self._conclude("failed" if self.state.failed else "finished")

    def _start(self, slot: int) -> None:
        self._note_start(slot, self._now)
        self._attend(slot)

    def _note_start(self, slot: int, at: float) -> None:
        """Note that a process runs, ready at once unless it has checks; `began` keeps the time of its first start."""
        planned = self._planned[slot]
        is_ready = not planned.checks and not any(check.role == "started" for check in planned.health)
        began = self._processes[slot].began or at
        self._note(slot, phase="running", started=at, ready=is_ready, unready="", unhealthy="", began=began)

    def _attend(self, slot: int) -> None:
        self._act("attend", slot)
        deadline_s, began = self._planned[slot].deadline_s, self._processes[slot].began
        if deadline_s and began:
            self._later(began + deadline_s - self._now, "overdue", slot, began)

    def _end(self, slot: int, grace_s: float | None = None) -> None:
        self._act("end", slot, self._planned[slot].grace_s if grace_s is None else grace_s)

    def _act(self, do: Deed, slot: int, grace_s: float = 0.0) -> None:
        self.actions.append(Act(do, slot, grace_s))

    def _later(self, delay_s: float, do: Timer, slot: int = -1, at: float | None = None) -> None:
        self.actions.append(Later(max(0.0, delay_s), do, slot, at))

    def _note(self, slot: int, **changes: object) -> ProcessState:
        self._processes[slot] = replace(self._processes[slot], **changes)
        return self._processes[slot]


Event: TypeAlias = Callable[[Transition], None]
"""The call of a public method of `Transition`."""


def startable(processes: Sequence[ProcessState], planned: Sequence[PlannedProcess]) -> list[int]:
    return [
        slot
        for slot, process in enumerate(processes)
        if process.phase == "waiting" and not planned[slot].is_removed and not unmet_waits(slot, processes, planned)
    ]


def unreachable(processes: Sequence[ProcessState], planned: Sequence[PlannedProcess]) -> list[int]:
    """Return the slots of waiting processes that depend on one which failed for good or will not start by itself."""
    lost = {
        slot
        for slot, process in enumerate(processes)
        if (process.phase == "failed" and not _awaits_restart(process, planned[slot]))
        or (process.phase == "stopped" and not process.is_stopped)
    }
    return [
        slot
        for slot, process in enumerate(processes)
        if process.phase == "waiting"
        and not process.is_fresh_start
        and any(wait.slot in lost for wait in planned[slot].waits)
    ]


def has_result(processes: Sequence[ProcessState], planned: Sequence[PlannedProcess], aims: Sequence[int]) -> bool:
    """Return True if all `aims` have succeeded, or all finite processes have ended.

    Services end with the last finite process; a run of services alone ends with the last of them. A run goes on while
    a command has stopped one of these, which another may start again.
    """
    if aims and all(processes[slot].phase == "done" for slot in aims):
        return True
    there = [slot for slot in range(len(processes)) if not planned[slot].is_removed]
    finite = [slot for slot in there if not (planned[slot].is_service or planned[slot].is_step)] or there
    return bool(finite) and all(
        processes[slot].phase in _ENDED
        and not processes[slot].is_stopped
        and not _awaits_restart(processes[slot], planned[slot])
        for slot in finite
    )


def _awaits_restart(process: ProcessState, planned: PlannedProcess) -> bool:
    return process.phase == "failed" and planned.on_failure == "wait"
