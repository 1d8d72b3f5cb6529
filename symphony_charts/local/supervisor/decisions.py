"""`step` decides what the supervisor of a run does next: a pure function of the run's state and of what has happened.

Processes are what `state.json` says of them and planned what `plan.json` says; both are in slot order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symphony_charts.local.supervisor import events
from symphony_charts.local.supervisor.events import Act, Action, Deed, Event, Later
from symphony_charts.local.supervisor.policy import Backoff, Decision, judge
from symphony_charts.local.waiting import unmet

__all__ = ["Phase", "State", "hopeless", "startable", "step", "verdict"]

Phase = Literal["starting", "running", "stopping", "over"]
Process = dict[str, Any]
_ENDED = ("done", "failed", "stopped")
# A start that is held up is tried again after this pause, in seconds.
_HELD_S = 1.0


@dataclass(frozen=True)
class State:
    """How a run is. `live` are the slots whose programs run; `failed` is what `state.json` says of the first failure.

    `phase` is ``over`` once nothing runs any more, and `reason` what the run is called from then on; `cause` is what
    ended it when that was none of its processes.
    """

    processes: Sequence[Process]
    live: frozenset[int] = frozenset()
    phase: Phase = "running"
    reason: str = ""
    failed: Mapping[str, Any] | None = None
    cause: str = ""


def step(
    state: State, event: Event, plan: Mapping[str, Any], backoff: Backoff, now: float
) -> tuple[State, list[Action]]:
    """The state after `event`, and what is to be done, in this order; `state` is left as it is."""
    turn = _Turn(state, plan, backoff, now)
    turn.take(event)
    return turn.state(), turn.actions


class _Turn:
    """One step: a copy of the state that changes, and the actions that it leads to."""

    def __init__(self, state: State, plan: Mapping[str, Any], backoff: Backoff, now: float) -> None:
        self._planned, self._aims, self._backoff, self._now = plan["processes"], plan["done_when"], backoff, now
        self._processes, self._live = list(state.processes), state.live
        self._phase, self._reason, self._failed, self._cause = state.phase, state.reason, state.failed, state.cause
        self.actions: list[Action] = []

    def state(self) -> State:
        """The state as it is now."""
        return State(self._processes, self._live, self._phase, self._reason, self._failed, self._cause)

    def take(self, event: Event) -> None:
        """Do what `event` asks for."""
        match event:
            case events.Started(slot):
                if not self._planned[slot]["waits"]:
                    self._note_start(slot)
            case events.TakenOver(stopping):
                self._take_over(stopping)
            case events.PaneClosed(slot):
                if self._phase == "running":
                    self._note(slot, unhealthy="its pane was closed", pane="")
                    if slot in self._live:
                        self._end(slot)
            case events.TmuxGone(cause):
                self._lose_tmux(cause)
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
                if self._phase == "running" and self._processes[slot].get("began") == began:
                    self._overdue(slot)
            case events.RestartDue(slot, ended):
                process = self._processes[slot]
                # Meanwhile somebody may have started it by hand, and it may have ended once more.
                if self._phase == "running" and process["phase"] == "backoff" and process.get("ended") == ended:
                    self._act("respawn", slot)
            case events.Respawned(slot, is_done):
                self._respawned(slot, is_done=is_done)
            case events.Held(slot, why):
                self._later(_HELD_S, events.RestartDue(slot, self._note(slot, held=why).get("ended")))
            case events.RestartAsked(slots):
                self._restart([slot for slot in slots if not self._processes[slot].get("is_restart_asked")])
            case events.StopAsked():
                self._stop("stopped")

    # Deaths and what follows

    def _ended(self, event: events.Ended) -> None:
        slot, status = event.slot, event.status
        phase = "done" if status == 0 else "failed"
        process = self._note(slot, status=status, ended=event.at, ready=False, phase=phase, limit=event.limit)
        if self._phase != "running":
            self._note(slot, phase="done" if status == 0 else "stopped")
            self._stop_when_empty()
        elif process.get("is_restart_asked"):
            self._start_afresh(slot)
            self._advance()
        else:
            if event.at - (process.get("started") or event.at) >= self._backoff.forget_s:
                process = self._note(slot, in_a_row=0)
            self._follow_up(slot, judge(process, self._planned[slot], status, self._backoff))

    def _follow_up(self, slot: int, decision: Decision) -> None:
        process = self._processes[slot]
        if decision.action == "restart":
            self._note(slot, phase="backoff")
            self._later(decision.delay_s, events.RestartDue(slot, process["ended"]))
        elif decision.action == "failed":
            self._note(slot, phase="failed")
            # A service that ends well has failed as well.
            status = 1 if process["status"] == 0 else process["status"]
            failed = {"name": process["name"], "status": status, "slot": slot}
            self._failed = self._failed or {**failed, "limit": process.get("limit", "")}
            if decision.stops:
                self._stop("failed")
                return
        self._advance()

    def _respawned(self, slot: int, *, is_done: bool) -> None:
        if is_done:
            process = self._processes[slot]
            restarts, in_a_row = process["restarts"] + 1, process.get("in_a_row", 0) + 1
            self._note(slot, restarts=restarts, in_a_row=in_a_row, status=None, ended=None, held="")
            self._start(slot)
        else:
            # Without tmux nothing can be started any more, and what runs cannot be looked at.
            self._follow_up(slot, Decision(action="failed", stops=True))

    def _overdue(self, slot: int) -> None:
        if self._processes[slot]["phase"] in ("running", "backoff"):
            process = self._note(slot, is_overdue=True)
            if slot in self._live:
                self._end(slot)
            else:
                self._follow_up(slot, judge(process, self._planned[slot], process["status"], self._backoff))

    def _lose_tmux(self, cause: str) -> None:
        """End what has lost its terminal: nothing of it is logged any more, and nothing can be started again."""
        if self._phase == "running":
            self._cause = cause
            self._stop("failed")

    def _stop(self, reason: str) -> None:
        """End the run as the kubelet ends a pod: TERM to the main processes, grace, KILL to everything."""
        if self._phase != "running":
            return
        self._phase, self._reason = "stopping", reason
        for slot, process in enumerate(self._processes):
            if slot in self._live:
                self._end(slot)
            elif process["phase"] in ("waiting", "backoff"):
                self._note(slot, phase="stopped")
        self._stop_when_empty()

    def _stop_when_empty(self) -> None:
        if not self._live:
            self._phase = "over"

    # What others ask for

    def _restart(self, slots: Sequence[int]) -> None:
        if self._phase != "running":
            return
        for slot in slots:
            self._note(slot, is_restart_asked=True)
        for slot in slots:
            if self._processes[slot]["phase"] == "waiting" or slot not in self._live:
                self._start_afresh(slot)
            else:
                self._end(slot)
        self._advance()

    def _start_afresh(self, slot: int) -> None:
        """Start a process because somebody asked for it: nothing that was before counts any more."""
        self._note(slot, is_restart_asked=False, held="")
        if slot not in self._live:
            self._note(
                slot, phase="waiting", is_fresh_start=True, restarts=-1, in_a_row=-1, began=None, is_overdue=False
            )
        if self._failed and self._failed["slot"] == slot:
            self._failed = None
        for other, process in enumerate(self._processes):
            if process["phase"] == "stopped" and not process.get("started"):
                # It was given up because of this one, perhaps; its program still waits at its gate.
                self._note(other, phase="waiting")
        self._act("grant", slot)

    def _take_over(self, stopping: str) -> None:
        """Go on with what a supervisor before this one had not brought to its end."""
        if stopping:
            self._stop(stopping)
        for slot, process in enumerate(self._processes):
            if process.get("is_restart_asked"):
                # Who was being ended for a restart is asked for again.
                self._note(slot, is_restart_asked=False)
            if process["phase"] == "backoff" and slot in self._live:
                self._note(slot, restarts=process["restarts"] + 1)
                self._start(slot)
            elif process["phase"] == "backoff":
                pause_s = self._backoff.delay_s(process.get("in_a_row", 0))
                self._later(process["ended"] + pause_s - self._now, events.RestartDue(slot, process["ended"]))
            elif process.get("is_fresh_start"):
                continue
            elif slot not in self._live and process["phase"] in ("waiting", "starting", "running"):
                self._act("read end", slot)
            elif slot in self._live and process["phase"] == "running" and self._phase == "running":
                self._attend(slot)

    # Order and health

    def _advance(self) -> None:
        """Start what waits for nothing any more; end the run when what it is for is done."""
        if self._phase != "running":
            return
        # What is ready as soon as it runs lets others start, which may be such, too.
        while slots := startable(self._processes, self._planned):
            for slot in slots:
                self._let_go(slot)
        for slot in hopeless(self._processes, self._planned):
            self._note(slot, phase="stopped")
        if verdict(self._processes, self._planned, self._aims) is not None:
            self._stop("failed" if self._failed else "finished")

    def _let_go(self, slot: int) -> None:
        if self._processes[slot].get("is_fresh_start"):
            self._note(slot, is_fresh_start=False, phase="backoff")
            self._act("respawn", slot)
        else:
            self._start(slot)
            self._act("open gate", slot)

    def _start(self, slot: int) -> None:
        self._note_start(slot)
        self._attend(slot)

    def _note_start(self, slot: int) -> None:
        """A process runs, ready at once unless its checks have to say so; `began` stays that of its first start."""
        planned = self._planned[slot]
        is_ready = not planned["checks"] and not any(check["role"] == "started" for check in planned["health"])
        began = self._processes[slot].get("began") or self._now
        self._note(slot, phase="running", started=self._now, ready=is_ready, unready="", unhealthy="", began=began)

    def _attend(self, slot: int) -> None:
        """Begin the checks of a process that runs, and its deadline."""
        self._act("attend", slot)
        deadline_s = self._planned[slot]["deadline_s"]
        if deadline_s:
            began = self._processes[slot]["began"]
            self._later(began + deadline_s - self._now, events.Overdue(slot, began))

    def _end(self, slot: int, grace_s: float | None = None) -> None:
        self._act("end", slot, self._planned[slot]["grace_s"] if grace_s is None else grace_s)

    def _act(self, do: Deed, slot: int, grace_s: float = 0.0) -> None:
        self.actions.append(Act(do, slot, grace_s))

    def _later(self, delay_s: float, event: events.RestartDue | events.Overdue) -> None:
        self.actions.append(Later(max(0.0, delay_s), event))

    def _note(self, slot: int, **news: object) -> Process:
        """Write down of a process what is new; how it is from now on."""
        self._processes[slot] = {**self._processes[slot], **news}
        return self._processes[slot]


def startable(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for nothing any more."""
    return [
        slot
        for slot, process in enumerate(processes)
        if process["phase"] == "waiting" and not unmet(slot, processes, planned)
    ]


def hopeless(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for one which has failed for good or will not start itself."""
    lost = {slot for slot, process in enumerate(processes) if process["phase"] in ("failed", "stopped")}
    given_up: list[int] = []
    while True:
        more = [
            slot
            for slot, process in enumerate(processes)
            if process["phase"] == "waiting"
            and not process.get("is_fresh_start")
            and slot not in lost
            and any(wait["slot"] in lost for wait in planned[slot]["waits"])
        ]
        if not more:
            return given_up
        given_up += more
        lost.update(more)


def verdict(
    processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]], aims: Sequence[int]
) -> Literal["finished", "ended"] | None:
    """`finished` when all `aims` have succeeded, `ended` when nothing more can come of it; None while it goes on.

    Services end with the last finite process; a run of services alone ends with the last of them.
    """
    if aims and all(processes[slot]["phase"] == "done" for slot in aims):
        return "finished"
    finite = [slot for slot, process in enumerate(planned) if not process["is_service"]] or range(len(processes))
    return "ended" if all(processes[slot]["phase"] in _ENDED for slot in finite) else None
