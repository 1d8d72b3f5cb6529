"""`Checks` tries the checks of the processes of a run when they are due, as the kubelet does it.

Startup checks hold the others back until they have passed. Readiness goes on for as long as the process runs, so that
it can become unready again; only a connection to a bound port, which nobody asked to be checked, is enough once.
Source: kubernetes/kubernetes pkg/kubelet/prober.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from symphony_charts.local.plan.records import Check, PlannedProcess
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.event_loop import Loop
from symphony_charts.local.supervisor.probes import Attempt, steps_of

__all__ = ["Checks", "Health", "Probing"]

# An automatic check is tried soon and then, half as often again each time, at most once a second.
_SOON_S, _NEXT_S, _LATEST_S = 0.01, 0.03, 1.0


class Probing:
    """The checks of one start of a process. `changed` is told its readiness and why not, `dead` why it must end."""

    def __init__(
        self,
        loop: Loop,
        checks: Sequence[Check],
        folder: Path,
        *,
        started: float,
        changed: Callable[[bool, str], None],
        dead: Callable[[Check, str], None],
    ) -> None:
        self._loop, self._folder, self._started = loop, folder, started
        self._changed, self._dead = changed, dead
        self._all = [Health(check) for check in checks]
        self._under_way: dict[int, Attempt] = {}
        self._is_over = False
        self._announced: tuple[bool, str] | None = None
        first = self._of("started")
        for health in first or self._all:
            self._begin(health)

    def stop(self) -> None:
        """Stop all checks."""
        self._is_over = True
        for attempt in self._under_way.values():
            attempt.cancel()

    def _of(self, role: str) -> list[Health]:
        return [health for health in self._all if health.check.role == role]

    def _begin(self, health: Health) -> None:
        check = health.check
        if check.automatic:
            self._later(_SOON_S, health, _NEXT_S)
        else:
            self._later(self._started + check.initial_delay_s - time.time(), health, check.period_s)

    def _later(self, delay_s: float, health: Health, pause_s: float) -> None:
        self._loop.later(max(0.0, delay_s), lambda: self._try(health, pause_s))

    def _try(self, health: Health, pause_s: float) -> None:
        if not self._is_over:
            began = time.monotonic()
            done = partial(self._tried, health, pause_s, began)
            attempt = Attempt(self._loop, steps_of(health.check, self._folder), health.check.timeout_s, done)
            self._under_way[id(health)] = attempt

    def _tried(self, health: Health, pause_s: float, began: float, why: str) -> None:
        check, passed = health.check, not why
        if check.automatic:
            health.passes = passed
            if not passed:
                self._later(pause_s, health, min(pause_s * 1.5, _LATEST_S))
            self._announce(why)
            return
        is_settled = health.note(passed)
        if is_settled and not passed and check.role != "ready":
            self.stop()
            self._dead(check, why)
            return
        if is_settled and check.role == "started":
            self._go_on()
            return
        # The next try is due a period after this one began, whatever that took.
        self._later(began + pause_s - time.monotonic(), health, pause_s)
        if is_settled:
            self._announce(why)

    def _go_on(self) -> None:
        if all(health.passes for health in self._of("started")):
            for health in [*self._of("ready"), *self._of("alive")]:
                self._begin(health)
            self._announce("")

    def _announce(self, why: str) -> None:
        is_ready = all(health.passes for health in [*self._of("started"), *self._of("ready")])
        news = (is_ready, "" if is_ready else why)
        if news != self._announced:
            self._announced = news
            self._changed(*news)


class Checks:
    """The checks of all processes of a run that run now.

    `changed` is told slot, readiness and why not; `dead` the slot, the check and why the process must end.
    """

    def __init__(
        self,
        run: Run,
        loop: Loop,
        changed: Callable[[int, bool, str], None],
        dead: Callable[[int, Check, str], None],
    ) -> None:
        self._run, self._loop, self._changed, self._dead = run, loop, changed, dead
        self._attended: dict[int, Probing] = {}

    def attend(self, planned: PlannedProcess, *, started: float, is_ready: bool) -> None:
        """Start the checks of a process that runs since `started` (seconds since 1970)."""
        slot = planned.slot
        wanted = [check for check in (*planned.health, *planned.checks) if not (check.automatic and is_ready)]
        if wanted:
            self._attended[slot] = Probing(
                self._loop,
                wanted,
                self._run.process_dir(slot),
                started=started,
                changed=partial(self._changed, slot),
                dead=partial(self._dead, slot),
            )

    def leave(self, slot: int) -> None:
        """Stop the checks of this process."""
        if slot in self._attended:
            self._attended.pop(slot).stop()


@dataclass(slots=True)
class Health:
    """The answer of one check so far: not ready, alive, and not known to have started until the tries say more."""

    check: Check
    passes: bool | None = None
    _last: bool | None = None
    _row: int = 0

    def __post_init__(self) -> None:
        if self.passes is None and self.check.role != "started":
            self.passes = self.check.role == "alive"

    def note(self, passed: bool) -> bool:
        """Count one more try; return True if it confirms an answer, False while it only casts doubt."""
        self._row = self._row + 1 if passed == self._last else 1
        self._last = passed
        if self._row < (self.check.successes if passed else self.check.failures):
            return False
        self.passes = passed
        return True
