"""Decisions of a run's supervisor, as a function of the run's state and of events."""

from __future__ import annotations

import copy
from operator import methodcaller as do
from typing import Any

import pytest
from msgspec.structs import replace

from symphony_charts.local.plan.records import Backoff, PlannedProcess, Restart, Wait
from symphony_charts.local.run_state import Failure, ProcessState, RunState
from symphony_charts.local.supervisor.decisions import (
    Act,
    Action,
    Decision,
    Event,
    Later,
    describe_status,
    has_result,
    restart_decision,
    startable,
)
from tests.local.records import plan_of, planned, process_state, run_state, transition

NOW = 1000.0
KEPT: dict[str, Any] = {"phase": "kept", "reason": "finished", "ended": NOW, "is_settled": True}


def process(phase: str = "running", **more: Any) -> ProcessState:
    """Return the state of a process; a running one has run for ten seconds and is ready."""
    times: dict[str, Any] = {"started": NOW - 10, "began": NOW - 10} if phase == "running" else {}
    return process_state(phase, **{**times, **more})


def decided(
    event: Event, processes: list[ProcessState], plans: list[PlannedProcess], live: set[int], **more: Any
) -> tuple[RunState, list[Action]]:
    """Return the transition that follows in a run whose aim is its first process."""
    return transition(run_state(processes, **more), live, event, plan_of(*plans), NOW)


def phases(state: RunState) -> list[str]:
    return [one.phase for one in state.processes]


def test_the_end_of_what_a_run_is_for_ends_the_others() -> None:
    state, actions = decided(do("ended", 0, 0, NOW), [process(), process()], [planned(), planned(grace_s=5)], {1})
    assert (state.phase, state.reason, phases(state)) == ("stopping", "finished", ["done", "running"])
    assert actions == [Act("end", 1, 5)]


def test_a_failure_ends_the_run_and_is_remembered_with_its_status_and_limit() -> None:
    event = do("ended", 1, 9, NOW, limit="out of memory")
    state, actions = decided(event, [process(), process()], [planned(), planned()], {0})
    assert state.failed == Failure(name="p", status=9, slot=1)
    assert (state.phase, state.reason, actions) == ("stopping", "failed", [Act("end", 0, 30)])


def test_the_first_failure_stays_the_one_that_is_told() -> None:
    first = Failure(name="first", status=2, slot=1)
    plans = [planned(), planned(), planned(on_failure="continue")]
    state, _ = decided(do("ended", 2, 9, NOW), [process(), process("failed"), process()], plans, {0}, failed=first)
    assert (state.failed, state.phase) == (first, "running")


def test_what_is_ready_as_soon_as_it_runs_lets_those_start_that_wait_for_it() -> None:
    chain = [process(ready=False), process("waiting"), process("waiting"), process("waiting")]
    plans = [planned(), planned(0), planned(1), planned(2)]
    state, actions = decided(do("readiness", 0, True, ""), chain, plans, {0, 1, 2, 3})
    assert phases(state) == ["running"] * 4
    assert [action.slot for action in actions if isinstance(action, Act) and action.do == "release"] == [1, 2, 3]


def test_a_restart_waits_longer_after_each_restart_in_a_row() -> None:
    retried = planned(restart="always")
    state, actions = decided(do("ended", 0, 1, NOW), [process(in_a_row=2)], [retried], set())
    assert (phases(state), actions) == (["backoff"], [Later(4.0, "restart_due", 0, NOW)])


def test_a_long_life_lets_the_pauses_begin_anew() -> None:
    old = process(in_a_row=4, started=NOW - 601)
    _, actions = decided(do("ended", 0, 1, NOW), [old], [planned(restart="always")], set())
    assert actions == [Later(1.0, "restart_due", 0, NOW)]


def test_a_restart_that_is_due_runs_the_program_once_more() -> None:
    waiting = process("backoff", ended=NOW - 1)
    assert decided(do("restart_due", 0, NOW - 1), [waiting], [planned()], set())[1] == [Act("respawn", 0)]


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        (process("backoff", ended=NOW), "running"),
        (process(), "running"),
        (process("backoff", ended=NOW - 1), "stopping"),
    ],
)
def test_a_restart_that_was_overtaken_is_left(found: ProcessState, phase: Any) -> None:
    before = run_state([found], phase=phase)
    after, actions = transition(before, set(), do("restart_due", 0, NOW - 1), plan_of(planned()), NOW)
    assert (after, actions) == (before, [])


def test_a_program_that_was_started_once_more_counts_its_restart_and_is_attended() -> None:
    state, actions = decided(
        do("respawned", 0), [process("backoff", restarts=1, in_a_row=1, status=3)], [planned()], {0}
    )
    found = state.processes[0]
    assert (found.phase, found.restarts, found.in_a_row, found.status) == ("running", 2, 2, None)
    assert (found.started, actions) == (NOW, [Act("attend", 0)])


def test_who_waited_is_let_go_once_the_other_is_ready() -> None:
    processes, plans = [process(ready=False), process("waiting")], [planned(), planned(0)]
    assert decided(do("readiness", 0, False, "no answer"), processes, plans, {0, 1})[1] == []
    state, actions = decided(do("readiness", 0, True), processes, plans, {0, 1})
    assert (phases(state), actions) == (["running", "running"], [Act("attend", 1), Act("release", 1)])


def test_a_probe_that_fails_ends_its_process_within_its_own_grace() -> None:
    state, actions = decided(do("probe_failed", 0, "liveness", "status 500", 2.0), [process()], [planned()], {0})
    assert state.processes[0].unhealthy == "liveness probe failed: status 500"
    assert actions == [Act("end", 0, 2.0)]


def test_a_process_that_a_probe_ended_has_not_succeeded() -> None:
    state, _ = decided(
        do("ended", 0, 0, NOW),
        [process(unhealthy="liveness probe failed")],
        [planned(restart="on-failure", retries=1)],
        set(),
    )
    assert phases(state) == ["backoff"]


def test_a_deadline_ends_its_process_and_no_retry_helps() -> None:
    retried = planned(restart="on-failure", retries=9)
    state, actions = decided(do("overdue", 0, NOW - 10), [process()], [retried], {0})
    assert actions == [Act("end", 0, 30)]
    state, _ = transition(run_state(state.processes), set(), do("ended", 0, 143, NOW), plan_of(retried), NOW)
    assert (phases(state), state.reason) == (["failed"], "failed")


def test_a_deadline_counts_from_the_first_start() -> None:
    _, actions = decided(do("respawned", 0), [process("backoff", began=NOW - 50)], [planned(deadline_s=60)], {0})
    assert actions == [Act("attend", 0), Later(10.0, "overdue", 0, NOW - 50)]


def test_the_deadline_of_a_start_that_is_over_changes_nothing() -> None:
    assert decided(do("overdue", 0, NOW - 99), [process()], [planned()], {0})[1] == []


def test_a_process_that_somebody_wants_again_is_ended_and_started_when_it_has_ended() -> None:
    processes, plans = [process(), process(restarts=3)], [planned(), planned()]
    state, actions = decided(do("restart", [1]), processes, plans, {0, 1})
    assert actions == [Act("end", 1, 30)]
    plan = plan_of(*plans)
    state, actions = transition(run_state(state.processes), {0}, do("ended", 1, 143, NOW), plan, NOW)
    assert actions == [Act("grant", 1), Act("respawn", 1)]
    state, _ = transition(state, {0}, do("respawned", 1), plan, NOW)
    assert (phases(state), state.processes[1].restarts) == (["running", "running"], 0)


def test_starting_a_failed_process_again_forgives_it_and_gives_hope_to_those_behind_it() -> None:
    failed = Failure(name="p", status=1, slot=1)
    processes = [process(), process("failed", started=NOW - 5), process("stopped")]
    plans = [planned(), planned(), planned(1)]
    state, actions = decided(do("restart", [1]), processes, plans, {0, 2}, failed=failed)
    assert (state.failed, phases(state)) == (None, ["running", "backoff", "waiting"])
    assert actions == [Act("grant", 1), Act("respawn", 1)]


def test_a_restart_of_one_failed_process_does_not_forgive_another() -> None:
    failed, plans = (
        Failure(name="p", status=1, slot=1),
        [planned(), planned(on_failure="continue"), planned(on_failure="continue")],
    )
    processes = [process(), process("failed", status=1, ended=NOW - 2), process("failed", status=4, ended=NOW - 1)]
    state, _ = decided(do("restart", [1]), processes, plans, {0}, failed=failed)
    assert state.failed == Failure(name="p", status=4, slot=2)


def test_a_removed_process_neither_starts_nor_counts_for_the_end_of_the_run() -> None:
    failed, removed = Failure(name="p", status=1, slot=1), planned(is_removed=True, on_failure="wait")
    processes = [process(), process("failed", status=1), process("waiting"), process("stopped"), process("failed")]
    plans = [planned(), removed, removed, removed, planned(on_failure="wait", is_service=True)]
    state, _ = decided(do("restart", [4]), processes, plans, {0}, failed=failed)
    assert (phases(state)[1:4], state.failed) == (["failed", "waiting", "stopped"], None)
    state, _ = transition(
        run_state(state.processes, failed=failed), set(), do("ended", 0, 0, NOW), plan_of(*plans), NOW
    )
    assert (state.phase, state.reason) == ("over", "finished")


def test_a_watched_process_that_failed_keeps_the_run_until_it_succeeds() -> None:
    plans = [planned(on_failure="wait"), planned(0)]
    state, _ = decided(do("ended", 0, 3, NOW), [process(), process("waiting")], plans, {1})
    assert (state.phase, phases(state)) == ("running", ["failed", "waiting"])
    state, _ = transition(state, {1}, do("restart", [0]), plan_of(*plans), NOW)
    assert (state.failed, phases(state)) == (None, ["backoff", "waiting"])


def test_a_process_that_a_command_stopped_starts_only_by_a_command() -> None:
    processes, plans = [process(), process("stopped", is_stopped=True)], [planned(), planned()]
    state, _ = decided(do("restart", [0]), processes, plans, {0})
    state, _ = transition(run_state(state.processes), set(), do("ended", 0, 143, NOW), plan_of(*plans), NOW)
    assert phases(state) == ["backoff", "stopped"]


def test_a_second_stop_is_granted_at_once_and_a_restart_overrides_a_stop() -> None:
    plans = [planned(), planned()]
    stopped = [process(), process("stopped", is_stopped=True)]
    assert decided(do("pause", [1]), stopped, plans, {0})[1] == [Act("grant", 1)]
    stopping = [process(), process(is_stopped=True)]
    assert decided(do("pause", [1]), stopping, plans, {0, 1})[1] == []
    state, _ = decided(do("restart", [1]), stopping, plans, {0, 1})
    state, _ = transition(run_state(state.processes), {0}, do("ended", 1, 143, NOW), plan_of(*plans), NOW)
    assert phases(state) == ["running", "backoff"]


def test_a_stop_of_a_process_that_has_ended_by_itself_does_not_keep_the_run() -> None:
    plans = [planned(), planned(on_failure="continue")]
    state, actions = decided(do("pause", [1]), [process(), process("failed")], plans, {0})
    assert (phases(state)[1], state.processes[1].is_stopped, actions) == ("failed", False, [Act("grant", 1)])


def test_what_is_asked_of_a_run_that_stops_is_left() -> None:
    state, actions = decided(do("restart", [0]), [process()], [planned()], {0}, phase="stopping")
    assert (actions, state.processes[0].is_restart_asked) == ([], False)


def test_a_stop_ends_what_runs_and_gives_up_what_waits() -> None:
    processes = [process(), process("waiting"), process("backoff"), process("waiting")]
    state, actions = decided(do("stop"), processes, [planned()] * 4, {0, 1})
    assert (state.phase, state.reason, phases(state)) == (
        "stopping",
        "stopped",
        ["running", "waiting", "stopped", "stopped"],
    )
    assert actions == [Act("end", 0, 30), Act("end", 1, 30)]


def test_a_process_that_is_ended_by_a_stop_has_not_failed() -> None:
    state, _ = decided(do("ended", 0, 143, NOW), [process()], [planned()], set(), phase="stopping", reason="stopped")
    assert (phases(state), state.phase, state.failed) == (["stopped"], "over", None)


def test_who_takes_over_attends_what_runs_and_asks_for_the_end_of_what_does_not() -> None:
    processes = [
        process(is_restart_asked=True),
        process(),
        process("done"),
        process("backoff", ended=NOW - 3, in_a_row=3),
    ]
    state, actions = decided(do("taken_over"), processes, [planned()] * 4, {0})
    assert actions == [Act("attend", 0), Act("read end", 1), Later(5.0, "restart_due", 3, NOW - 3)]
    assert not state.processes[0].is_restart_asked


def test_who_takes_over_a_stop_brings_it_to_its_end() -> None:
    state, actions = decided(do("taken_over", "failed"), [process(), process("waiting")], [planned()] * 2, {0})
    assert (state.phase, state.reason, phases(state)) == ("stopping", "failed", ["running", "stopped"])
    assert actions == [Act("end", 0, 30)]


def test_a_birth_is_the_start_of_whoever_waits_for_nobody() -> None:
    processes, plans = [process("waiting"), process("waiting")], [planned(), planned(0)]
    for slot, phase in ((0, "running"), (1, "waiting")):
        assert phases(decided(do("started", slot, NOW), processes, plans, {0, 1})[0])[slot] == phase


def test_a_step_leaves_the_state_before_it_as_it_was() -> None:
    before = run_state([process(), process("waiting")])
    copied = copy.deepcopy(before)
    transition(before, {0, 1}, do("stop"), plan_of(planned(), planned(0)), NOW)
    assert before == copied


def at(*phases: str) -> list[ProcessState]:
    """Return processes in these phases; they are ready if running."""
    return [process_state(phase) for phase in phases]


def test_a_process_may_start_once_all_that_it_waits_for_is_ready_or_done() -> None:
    plans = [planned(), planned(), planned(0, 1)]
    assert startable(at("running", "waiting", "waiting"), plans) == [1]
    assert startable(at("running", "done", "waiting"), plans) == [2]
    until_done = [planned(), planned(waits=(Wait(slot=0, until="done"),))]
    assert startable(at("running", "waiting"), until_done) == []


def test_whoever_waits_for_a_failed_process_is_given_up_and_so_are_those_behind_it() -> None:
    plans = [planned(on_failure="continue"), planned(0), planned(1), planned(), planned()]
    processes = [process(), *at("waiting", "waiting"), process(), process()]
    state, _ = decided(do("ended", 0, 3, NOW), processes, plans, {3, 4})
    assert phases(state)[:3] == ["failed", "stopped", "stopped"]


def test_a_run_has_finished_when_its_aims_have_succeeded() -> None:
    assert has_result(at("done", "running"), [planned(), planned()], aims=[0])
    assert not has_result(at("failed", "running"), [planned(), planned()], aims=[0])


def test_services_do_not_keep_a_run_whose_finite_processes_have_ended() -> None:
    plans = [planned(), planned(is_service=True)]
    assert has_result(at("failed", "running"), plans, aims=[0])
    assert not has_result(at("running", "running"), plans, aims=[0])


def test_a_run_of_services_ends_with_the_last_of_them() -> None:
    plans = [planned(is_service=True), planned(is_service=True)]
    assert not has_result(at("failed", "running"), plans, aims=[])
    assert has_result(at("failed", "failed"), plans, aims=[])


def test_without_tmux_the_run_fails_and_no_process_is_to_blame() -> None:
    state, actions = decided(do("tmux_gone"), [process(), process("waiting")], [planned()] * 2, {0})
    assert (state.phase, state.reason, state.cause, state.failed) == ("stopping", "failed", "tmux was killed", None)
    assert (phases(state), actions) == (["running", "stopped"], [Act("end", 0, 30)])


def test_a_tmux_that_goes_with_its_run_is_no_cause() -> None:
    state, _ = decided(do("tmux_gone"), [process()], [planned()], {0}, phase="stopping", reason="stopped")
    assert (state.phase, state.reason, state.cause) == ("stopping", "stopped", "")


def after(status: int, restart: Restart = "never", *, restarts: int = 0, **more: Any) -> Decision:
    process = process_state(restarts=restarts, in_a_row=restarts)
    return restart_decision(process, planned(restart=restart, **more), status)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        pytest.param(after(0), "done", id="a finite process ends well"),
        pytest.param(after(3), "failed", id="a finite process fails"),
        pytest.param(after(0, is_service=True), "failed", id="a service that ends"),
        pytest.param(after(0, "always", is_service=True), "restart", id="a service"),
        pytest.param(after(1, "on-failure", retries=2, restarts=1), "restart", id="last retry"),
        pytest.param(after(1, "on-failure", retries=2, restarts=2), "failed", id="no retry left"),
    ],
)
def test_the_end_of_a_process_leads_to_a_decision(decision: Decision, expected: Decision) -> None:
    assert decision == expected


def test_pauses_double_up_to_the_cap() -> None:
    assert [Backoff().delay_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("status", "text"), [(3, "exit status 3"), (137, "SIGKILL (137)"), (143, "SIGTERM (143)"), (255, "exit status 255")]
)
def test_a_status_is_described_by_its_signal(status: int, text: str) -> None:
    assert describe_status(status) == text


def test_finite_processes_end_with_the_run_and_services_as_they_ask() -> None:
    plans = [planned(), planned(), planned(at_end="linger", is_service=True), planned(at_end="stay", is_service=True)]
    plan = plan_of(*plans, linger_s=30)
    state, actions = transition(run_state([process() for _ in plans]), {1, 2, 3}, do("ended", 0, 0, NOW), plan, NOW)
    assert (state.phase, state.reason, state.ended, state.is_settled) == ("lingering", "finished", NOW, False)
    assert actions == [Later(30.0, "linger_over"), Act("end", 1, 30)]
    state, actions = transition(state, {2, 3}, do("ended", 1, 143, NOW + 1), plan, NOW + 1)
    assert (phases(state), state.is_settled) == (["done", "stopped", "running", "running"], True)
    assert actions == [Act("sweep", 1)]
    state, actions = transition(state, {2, 3}, do("linger_over"), plan, NOW + 30)
    assert (state.phase, actions) == ("kept", [Act("end", 2, 30)])
    state, actions = transition(state, {3}, do("ended", 2, 0, NOW + 31), plan, NOW + 31)
    assert (state.phase, phases(state)[2:], actions) == ("kept", ["done", "running"], [Act("sweep", 2)])
    state, actions = transition(state, {3}, do("stop"), plan, NOW + 40)
    assert (state.phase, state.reason, actions) == ("stopping", "finished", [Act("end", 3, 30)])
    state, _ = transition(state, set(), do("ended", 3, 143, NOW + 41), plan, NOW + 41)
    assert (state.phase, state.reason, state.failed) == ("over", "finished", None)


def test_a_stop_while_services_linger_ends_all_at_once_and_the_result_stays() -> None:
    plans = [planned(), planned(at_end="linger", is_service=True)]
    failed = Failure(name="p", status=3, slot=0)
    result = {"phase": "lingering", "reason": "failed", "failed": failed, "ended": NOW, "is_settled": True}
    state = run_state([process("failed"), process()], **result)
    state, actions = transition(state, {1}, do("stop"), plan_of(*plans, linger_s=99), NOW)
    assert (state.phase, state.reason, state.failed, actions) == ("stopping", "failed", failed, [Act("end", 1, 30)])


@pytest.mark.parametrize(
    ("at_end", "phase", "expected"),
    [
        ("stay", "kept", "backoff"),
        ("linger", "lingering", "backoff"),
        ("linger", "kept", "stopped"),
        ("stop", "lingering", "stopped"),
    ],
)
def test_what_goes_on_after_the_end_is_started_again(at_end: Any, phase: Any, expected: str) -> None:
    plans = [planned(), planned(at_end=at_end, restart="always", is_service=True), planned(at_end="stay")]
    state = run_state([process("done"), process(), process()], **{**KEPT, "phase": phase})
    state, _ = transition(state, {2}, do("ended", 1, 1, NOW), plan_of(*plans), NOW)
    assert (state.phase, state.reason, state.failed, phases(state)[1]) == (phase, "finished", None, expected)


def test_a_run_is_over_when_the_last_of_what_stayed_has_failed_for_good() -> None:
    plans = [planned(), planned(at_end="stay", is_service=True)]
    state = run_state([process("done"), process()], **KEPT)
    state, _ = transition(state, set(), do("ended", 1, 1, NOW), plan_of(*plans), NOW)
    assert (state.phase, state.reason, state.failed, phases(state)[1]) == ("over", "finished", None, "failed")


def test_who_takes_over_a_run_that_has_ended_starts_only_what_goes_on() -> None:
    stay = planned(at_end="stay", restart="always", is_service=True)
    plans = [planned(), planned(restart="always"), planned(at_end="linger", is_service=True), stay, stay]
    processes = [process("done"), process(), process(), process("backoff", ended=NOW - 1), process()]
    state = run_state(processes, phase="lingering", reason="finished", ended=NOW - 10)
    after, actions = transition(state, {1, 2, 4}, do("taken_over"), plan_of(*plans, linger_s=15), NOW)
    restart = Later(0.0, "restart_due", 3, NOW - 1)
    attended = [Act("attend", 2), restart, Act("attend", 4)]
    assert actions == [Later(5.0, "linger_over"), Act("end", 1, 30), *attended]
    after, actions = transition(
        replace(state, phase="kept"), {1, 2, 4}, do("taken_over"), plan_of(*plans, linger_s=15), NOW
    )
    assert actions == [Act("end", 1, 30), Act("end", 2, 30), restart, Act("attend", 4)]
    assert (after.phase, after.reason) == ("kept", "finished")


@pytest.mark.parametrize("event", [do("restart", [0, 1]), do("pause", [0, 1])])
def test_a_request_reaches_only_what_goes_on(event: Event) -> None:
    plans = [planned(), planned(at_end="stay", is_service=True)]
    state = run_state([process("done"), process()], **KEPT)
    after, actions = transition(state, {1}, event, plan_of(*plans), NOW)
    assert (phases(after), actions) == (["done", "running"], [Act("end", 1, 30)])


def test_a_run_of_services_does_not_end_with_their_steps() -> None:
    plans = [planned(is_step=True), planned(is_service=True)]
    assert not has_result(at("done", "running"), plans, aims=[])
