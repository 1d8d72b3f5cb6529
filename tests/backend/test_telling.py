"""Events of `EventFeed` for consecutive statuses."""

from __future__ import annotations

from symphony_charts.backend.diagnosis import LONG_S, SHORT_S, EventFeed
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus


def status(*instances: InstanceStatus) -> ExperimentStatus:
    return ExperimentStatus(name="e", experiment="e", backend="tmux", phase="running", started=0.0, instances=instances)


def one(phase: str, name: str = "a", **fields: object) -> InstanceStatus:
    return InstanceStatus(name=name, process=name, phase=phase, state=f"{phase}.", **fields)  # type: ignore[arg-type]


def words(teller: EventFeed, now: float, *instances: InstanceStatus) -> list[tuple[str, str, bool]]:
    return [(told.name, told.text, told.is_bad) for told in teller.tell(status(*instances), now)]


def test_a_start_and_an_unchanged_status_are_nothing_to_speak_of() -> None:
    teller = EventFeed()
    assert words(teller, 0, one("pending")) == []
    assert words(teller, 1, one("running", started=1.0)) == []
    assert words(teller, 9, one("running", started=1.0)) == []


def test_readiness_that_took_its_time_is_told_once() -> None:
    teller = EventFeed()
    words(teller, 1, one("running", started=1.0))
    assert words(teller, 5, one("running", started=1.0, ready=True)) == [("a", "ready after 4s", False)]
    assert words(teller, 6, one("running", started=1.0, ready=True)) == []


def test_a_failure_that_is_tried_again_is_told_with_its_cause_and_then_the_new_start() -> None:
    teller = EventFeed()
    words(teller, 1, one("running", started=1.0))
    again = one("pending", status=3, reason="failed 3, restarting: no gym", started=1.0, ended=2.0)
    assert words(teller, 2, again) == [("a", "failed 3, restarting: no gym", True)]
    assert words(teller, 9, again) == []
    assert words(teller, 10, one("running", restarts=1, started=10.0)) == [("a", "started again, restart 1", False)]
    assert words(teller, 11, one("running", restarts=2, started=11.0)) == [("a", "started again, restart 2", False)]


def test_ends_say_how_long_it_took() -> None:
    teller = EventFeed()
    words(teller, 0, one("running", started=0.0), one("running", "b", started=0.0), one("running", "c"))
    ends = [
        one("succeeded", started=0.0, ended=75.0),
        one("failed", "b", status=3, reason="failed 3: oops"),
        one("stopped", "c"),
    ]
    said = EventFeed().tell(status(*ends), 75)
    assert words(teller, 75, *ends) == [(told.name, told.text, told.is_bad) for told in said]
    assert [(told.name, told.text, told.is_bad, told.follows_lines) for told in said] == [
        ("a", "succeeded after 1m", False, True),
        ("b", "failed 3: oops", True, True),
        ("c", "stopped.", False, True),
    ]


def test_the_same_of_many_is_one() -> None:
    ends = [one("succeeded", f"p{index}", started=0.0, ended=5.0) for index in range(500)]
    assert words(EventFeed(), 5, *ends) == [("p0 +499", "succeeded after 5s", False)]


def test_a_wait_is_told_when_it_is_long_and_when_it_is_very_long() -> None:
    teller = EventFeed()
    for_ever = [(moment, one("pending", reason=f"waits for x of b, {moment}s")) for moment in range(60)]
    said = {moment: words(teller, moment, instance) for moment, instance in for_ever}
    assert {moment: told for moment, told in said.items() if told} == {
        int(SHORT_S): [("a", "waits for x of b, 3s", False)],
        int(LONG_S): [("a", "waits for x of b, 30s   next: symph status e", True)],
    }
    assert teller.is_somebody_waiting


def test_a_wait_for_something_else_begins_anew() -> None:
    teller = EventFeed()
    words(teller, 0, one("pending", reason="waits for x of b, 0s"))
    assert words(teller, 4, one("pending", reason="waits for y of c, 4s")) == []
    assert words(teller, 7, one("pending", reason="waits for y of c, 1d2h")) == [("a", "waits for y of c, 3s", False)]
    words(teller, 8, one("running"))
    assert not teller.is_somebody_waiting
