"""Decide the next actions of a run's supervisor: a pure function of the run's state and an event.

Processes and planned processes are in slot order.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from symphony_charts.local.plan.records import AtEnd, Backoff, LocalPlan, PlannedProcess
from symphony_charts.local.run_state import Failure, ProcessState
from symphony_charts.local.status import unmet_waits
from symphony_charts.local.supervisor import events
from symphony_charts.local.supervisor.events import Act, Action, Deed, Event, Later

# The status of a process that exited with 0 after its liveness probe had stopped it.
_UNHEALTHY = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`restart` after `delay_s`, `done` (succeeded), `failed` for good, and `stops` if the run stops."""

    action: Literal["restart", "done", "failed"]
    delay_s: float = 0.0
    stops: bool = False


def restart_decision(process: ProcessState, planned: PlannedProcess, status: int | None, backoff: Backoff) -> Decision:
    """Decide how to react to the end of a process with `status` (None: unknown, which is a failure).

    Finite processes that exit with 0 are done. Failures are retried `retries` times under `on-failure` (like a Job's
    backoffLimit, without the first run) and without limit under `always`. A service that must not restart has failed
    when it ends, with any status.
    """
    stops = planned.on_failure == "stop"
    if process.is_overdue:
        # As for a Job past its deadline: it has failed, whatever its status and remaining retries.
        return Decision(action="failed", stops=stops)
    if process.unhealthy and planned.restart != "never" and status == 0:
        # A process that its liveness probe stopped has not succeeded.
        status = _UNHEALTHY
    if planned.restart == "always":
        return Decision(action="restart", delay_s=backoff.delay_s(process.in_a_row))
    if status == 0 and not planned.is_service:
        return Decision(action="done")
    has_retries = planned.is_service or process.restarts < planned.retries
    if planned.restart == "on-failure" and status != 0 and has_retries:
        return Decision(action="restart", delay_s=backoff.delay_s(process.in_a_row))
    return Decision(action="failed", stops=stops)


def describe_status(status: int | None) -> str:
    """Return a status as text: ``exit status 3``, or for a signal ``SIGKILL (137)`` as in a pod; None is unknown."""
    if status is None:
        return "exit status unknown"
    try:
        return f"{signal.Signals(status - 128).name} ({status})"
    except ValueError:
        return f"exit status {status}"


Phase = Literal["starting", "running", "lingering", "kept", "stopping", "over"]
# When a process may run and start again, by its `at_end`.
_GOES_ON: dict[AtEnd, tuple[Phase, ...]] = {
    "stop": ("running",),
    "linger": ("running", "lingering"),
    "stay": ("running", "lingering", "kept"),
}
_ENDED = ("done", "failed", "stopped")
# Retry a blocked start after this pause, in seconds.
_HELD_S = 1.0


@dataclass(frozen=True)
class State:
    """The state of a run. `live` are the slots with running programs, `failed` is the first failure.

    `phase` is ``over`` once nothing runs any more, and `reason` the final phase of the run; `cause` is the reason for
    the end if no process caused it. If services go on after the end of the run, it is first ``lingering`` and then
    ``kept``, since the time `ended`; `is_settled` means that everything else has ended.
    """

    processes: Sequence[ProcessState]
    live: frozenset[int] = frozenset()
    phase: Phase = "running"
    reason: str = ""
    failed: Failure | None = None
    cause: str = ""
    ended: float | None = None
    is_settled: bool = False


def goes_on(phase: Phase, planned: PlannedProcess) -> bool:
    """Return True if a process may run, and start again, in this phase of its run."""
    return phase in _GOES_ON[planned.at_end]


def transition(state: State, event: Event, plan: LocalPlan, now: float) -> tuple[State, list[Action]]:
    """Return the state after `event`, and the actions to take in this order; `state` does not change."""
    step = _Transition(state, plan, now)
    step.handle(event)
    return step.state(), step.actions


class _Transition:
    def __init__(self, state: State, plan: LocalPlan, now: float) -> None:
        self._plan, self._planned, self._backoff, self._now = plan, plan.processes, plan.backoff, now
        self._processes, self._live = list(state.processes), state.live
        self._phase, self._reason, self._failed, self._cause = state.phase, state.reason, state.failed, state.cause
        self._concluded, self._is_settled = state.ended, state.is_settled
        self.actions: list[Action] = []

    def state(self) -> State:
        result = self._phase, self._reason, self._failed, self._cause, self._concluded, self._is_settled
        return State(self._processes, self._live, *result)

    def handle(self, event: Event) -> None:
        match event:
            case events.Started(slot):
                if not self._planned[slot].waits:
                    self._note_start(slot)
            case events.TakenOver(stopping):
                self._take_over(stopping)
            case events.PaneClosed(slot):
                if self._goes_on(slot):
                    self._note(slot, unhealthy="its pane was closed")
                    if slot in self._live:
                        self._end(slot)
            case events.TmuxGone():
                # Processes without a terminal are no longer logged and cannot restart.
                if self._phase == "running":
                    self._cause = "tmux was killed"
                self._stop("failed")
            case events.Ended():
                self._ended(event)
            case events.Readiness(slot, is_ready, why):
                self._note(slot, ready=is_ready, unready=why)
                if is_ready:
                    self._advance()
            case events.ProbeFailed(slot, probe, why, grace_s):
                self._note(slot, unhealthy=f"{probe} probe failed: {why}")
                self._end(slot, grace_s)
            case events.Overdue(slot, began):
                if self._goes_on(slot) and self._processes[slot].began == began:
                    self._overdue(slot)
            case events.RestartDue(slot, ended):
                process = self._processes[slot]
                # A restart on request may have started it in the meantime, and it may have ended again.
                if self._goes_on(slot) and process.phase == "backoff" and process.ended == ended:
                    self._act("respawn", slot)
            case events.Respawned(slot, is_done):
                self._respawned(slot, is_done=is_done)
            case events.Held(slot, why):
                self._later(_HELD_S, events.RestartDue(slot, self._note(slot, held=why).ended))
            case events.RestartAsked(slots):
                self._restart(
                    [slot for slot in slots if self._goes_on(slot) and not self._processes[slot].is_restart_asked]
                )
            case events.PauseAsked(slots):
                going = [slot for slot in slots if self._goes_on(slot)]
                self._pause([slot for slot in going if not (self._processes[slot].is_stopped and slot in self._live)])
            case events.StopAsked():
                self._stop("stopped")
            case events.LingerOver():
                if self._phase == "lingering":
                    self._phase = "kept"
                    self._end_others()

    # Ends and reactions

    def _ended(self, event: events.Ended) -> None:
        slot, status = event.slot, event.status
        phase = "done" if status == 0 else "failed"
        process = self._note(slot, status=status, ended=event.at, ready=False, phase=phase, limit=event.limit)
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
            if event.at - (process.started or event.at) >= self._backoff.forget_s:
                process = self._note(slot, in_a_row=0)
            self._follow_up(slot, restart_decision(process, self._planned[slot], status, self._backoff))

    def _follow_up(self, slot: int, decision: Decision) -> None:
        process = self._processes[slot]
        if decision.action == "restart":
            self._note(slot, phase="backoff")
            self._later(decision.delay_s, events.RestartDue(slot, process.ended))
        elif decision.action == "failed":
            self._note(slot, phase="failed")
            # A service that exits with 0 has failed as well.
            status = 1 if process.status == 0 else process.status
            if self._phase == "running":
                self._failed = self._failed or Failure(name=process.name, status=status, slot=slot)
            if decision.stops:
                self._conclude("failed")
        self._advance()

    def _respawned(self, slot: int, *, is_done: bool) -> None:
        if is_done:
            process = self._processes[slot]
            restarts, in_a_row = process.restarts + 1, process.in_a_row + 1
            self._note(slot, restarts=restarts, in_a_row=in_a_row, status=None, ended=None, held="")
            self._start(slot)
        else:
            # Without tmux nothing can start, and running processes cannot be viewed.
            self._follow_up(slot, Decision(action="failed"))
            self._stop("failed")

    def _overdue(self, slot: int) -> None:
        if self._processes[slot].phase in ("running", "backoff"):
            process = self._note(slot, is_overdue=True)
            if slot in self._live:
                self._end(slot)
            else:
                self._follow_up(slot, restart_decision(process, self._planned[slot], process.status, self._backoff))

    def _conclude(self, reason: str) -> None:
        """Give the run its result, and end what ends with it."""
        if self._phase != "running":
            return
        self._reason = reason
        later = {self._planned[slot].at_end for slot in range(len(self._processes)) if self._is_active(slot)}
        lingers = self._plan.linger_s > 0 and "linger" in later
        if not lingers and "stay" not in later:
            self._stop(reason)
            return
        self._phase, self._concluded = "lingering" if lingers else "kept", self._now
        self._end_others()

    def _stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace period, KILL to everything."""
        if self._phase in ("stopping", "over"):
            return
        # The result of a run does not change with the end of its services.
        self._phase, self._reason = "stopping", self._reason if self._concluded else reason
        self._end_others()

    def _end_others(self) -> None:
        """End the processes that do not go on in this phase of the run."""
        if self._phase == "lingering" and self._concluded is not None:
            self._later(self._concluded + self._plan.linger_s - self._now, events.LingerOver())
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
        if self._concluded is not None:
            self._is_settled = self._is_settled or all(self._goes_on(slot) for slot in self._live)
        slots = range(len(self._processes))
        if not self._live and not any(self._goes_on(slot) and self._is_active(slot) for slot in slots):
            self._phase = "over"

    def _goes_on(self, slot: int) -> bool:
        return goes_on(self._phase, self._planned[slot])

    def _is_active(self, slot: int) -> bool:
        """Return True if a process runs or will start by itself."""
        return slot in self._live or self._processes[slot].phase not in _ENDED

    # Requests

    def _restart(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self._note(slot, is_restart_asked=True, is_stopped=False)
        for slot in slots:
            if self._processes[slot].phase == "waiting" or slot not in self._live:
                self._start_afresh(slot)
            else:
                self._end(slot)
        self._advance()

    def _pause(self, slots: Sequence[int]) -> None:
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

    def _start_afresh(self, slot: int) -> None:
        """Start a process on request; reset its restarts and failures."""
        self._note(slot, is_restart_asked=False, is_stopped=False, held="")
        if slot not in self._live:
            self._note(
                slot, phase="waiting", is_fresh_start=True, restarts=-1, in_a_row=-1, began=None, is_overdue=False
            )
        if self._phase == "running" and self._failed and self._failed.slot == slot:
            self._failed = self._other_failure()
        for other, process in enumerate(self._processes):
            is_given_up = process.phase == "stopped" and not process.started and not process.is_stopped
            if is_given_up and self._goes_on(other) and not self._planned[other].is_removed:
                # It may have been given up because of this process; its program still waits for its release.
                self._note(other, phase="waiting")
        self._act("grant", slot)

    def _other_failure(self) -> Failure | None:
        """Return the first failure among the processes that have failed for good and are still part of the run."""
        failed = [
            (process.ended or 0.0, slot)
            for slot, process in enumerate(self._processes)
            if process.phase == "failed" and not self._planned[slot].is_removed
        ]
        if not failed:
            return None
        process = self._processes[min(failed)[1]]
        return Failure(name=process.name, status=process.status or 1, slot=min(failed)[1])

    def _take_over(self, stopping: str) -> None:
        """Finish the pending work of an earlier supervisor."""
        if stopping:
            self._stop(stopping)
        elif self._phase != "running":
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
                self._later(due - self._now, events.RestartDue(slot, process.ended))
            elif process.is_fresh_start:
                continue
            elif slot not in self._live and process.phase in ("waiting", "starting", "running"):
                self._act("read end", slot)
            elif slot in self._live and process.phase == "running" and self._goes_on(slot):
                self._attend(slot)

    # Order and readiness

    def _advance(self) -> None:
        """Start the processes whose waits are met; end the run if its aims are reached or unreachable."""
        if self._phase in ("stopping", "over"):
            self._settle()
            return
        # A process that is ready at once may unblock others, which may also be ready at once.
        while slots := [slot for slot in startable(self._processes, self._planned) if self._goes_on(slot)]:
            for slot in slots:
                self._release(slot)
        for slot in unreachable(self._processes, self._planned):
            self._note(slot, phase="stopped")
        if self._phase != "running":
            self._settle()
            return
        if self._failed and self._planned[self._failed.slot].is_removed:
            self._failed = self._other_failure()
        if verdict(self._processes, self._planned, self._plan.done_when) is not None:
            self._conclude("failed" if self._failed else "finished")

    def _release(self, slot: int) -> None:
        if self._processes[slot].is_fresh_start:
            self._note(slot, is_fresh_start=False, phase="backoff")
            self._act("respawn", slot)
        else:
            self._start(slot)
            self._act("release", slot)

    def _start(self, slot: int) -> None:
        self._note_start(slot)
        self._attend(slot)

    def _note_start(self, slot: int) -> None:
        """Note that a process runs, ready at once unless it has checks; `began` keeps the time of its first start."""
        planned = self._planned[slot]
        is_ready = not planned.checks and not any(check.role == "started" for check in planned.health)
        began = self._processes[slot].began or self._now
        self._note(slot, phase="running", started=self._now, ready=is_ready, unready="", unhealthy="", began=began)

    def _attend(self, slot: int) -> None:
        self._act("attend", slot)
        deadline_s, began = self._planned[slot].deadline_s, self._processes[slot].began
        if deadline_s and began:
            self._later(began + deadline_s - self._now, events.Overdue(slot, began))

    def _end(self, slot: int, grace_s: float | None = None) -> None:
        self._act("end", slot, self._planned[slot].grace_s if grace_s is None else grace_s)

    def _act(self, do: Deed, slot: int, grace_s: float = 0.0) -> None:
        self.actions.append(Act(do, slot, grace_s))

    def _later(self, delay_s: float, event: events.RestartDue | events.Overdue | events.LingerOver) -> None:
        self.actions.append(Later(max(0.0, delay_s), event))

    def _note(self, slot: int, **changes: object) -> ProcessState:
        self._processes[slot] = replace(self._processes[slot], **changes)
        return self._processes[slot]


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
    given_up: list[int] = []
    while True:
        more = [
            slot
            for slot, process in enumerate(processes)
            if process.phase == "waiting"
            and not process.is_fresh_start
            and slot not in lost
            and any(wait.slot in lost for wait in planned[slot].waits)
        ]
        if not more:
            return given_up
        given_up += more
        lost.update(more)


def verdict(
    processes: Sequence[ProcessState], planned: Sequence[PlannedProcess], aims: Sequence[int]
) -> Literal["finished", "ended"] | None:
    """Return `finished` if all `aims` have succeeded, `ended` if all finite processes have ended, None before that.

    Services end with the last finite process; a run of services alone ends with the last of them. A run goes on while
    a command has stopped one of these, which another may start again.
    """
    if aims and all(processes[slot].phase == "done" for slot in aims):
        return "finished"
    there = [slot for slot in range(len(processes)) if not planned[slot].is_removed]
    finite = [slot for slot in there if not (planned[slot].is_service or planned[slot].is_step)] or there
    has_ended = all(
        processes[slot].phase in _ENDED
        and not processes[slot].is_stopped
        and not _awaits_restart(processes[slot], planned[slot])
        for slot in finite
    )
    return "ended" if has_ended and finite else None


def _awaits_restart(process: ProcessState, planned: PlannedProcess) -> bool:
    return process.phase == "failed" and planned.on_failure == "wait"
