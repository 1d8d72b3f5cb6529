"""Which waiting processes may start, which never will, and when a run has reached its end."""

from __future__ import annotations

from symphony_charts.local.supervisor.progress import hopeless, startable, verdict


def at(*phases: str) -> list[dict[str, object]]:
    """Processes in these phases; a running one is ready."""
    return [{"phase": phase, "ready": phase == "running"} for phase in phases]


def waits(*slots: int, until: str = "ready", is_service: bool = False) -> dict[str, object]:
    return {"waits": [{"slot": slot, "until": until} for slot in slots], "is_service": is_service}


def test_a_process_may_start_once_all_that_it_waits_for_is_ready_or_done() -> None:
    planned = [waits(), waits(), waits(0, 1)]
    assert startable(at("running", "waiting", "waiting"), planned) == [1]
    assert startable(at("running", "done", "waiting"), planned) == [2]


def test_a_ready_process_is_not_done() -> None:
    assert startable(at("running", "waiting"), [waits(), waits(0, until="done")]) == []


def test_whoever_waits_for_a_failed_process_is_given_up_and_so_are_those_behind_it() -> None:
    assert hopeless(at("failed", "waiting", "waiting", "waiting"), [waits(), waits(0), waits(1), waits()]) == [1, 2]


def test_a_process_that_will_be_restarted_is_waited_for() -> None:
    assert hopeless(at("backoff", "waiting"), [waits(), waits(0)]) == []


def test_a_run_has_finished_when_its_aims_have_succeeded() -> None:
    assert verdict(at("done", "running"), [waits(), waits()], aims=[0]) == "finished"
    assert verdict(at("failed", "running"), [waits(), waits()], aims=[0]) is None


def test_services_do_not_keep_a_run_whose_finite_processes_have_ended() -> None:
    planned = [waits(), waits(is_service=True)]
    assert verdict(at("failed", "running"), planned, aims=[0]) == "ended"
    assert verdict(at("running", "running"), planned, aims=[0]) is None


def test_a_run_of_services_ends_with_the_last_of_them() -> None:
    planned = [waits(is_service=True), waits(is_service=True)]
    assert verdict(at("failed", "running"), planned, aims=[]) is None
    assert verdict(at("failed", "failed"), planned, aims=[]) == "ended"
