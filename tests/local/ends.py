"""Experiments drawn from a seed that end, and the processes that run after their end, by the supervisor's decisions."""

from __future__ import annotations

import random
from collections import deque
from operator import methodcaller
from pathlib import Path
from typing import Any

from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.run_state import unstarted
from symphony_charts.local.supervisor.decisions import Event, Later
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.records import run_state, transition

# Programs start within this time, before the first of them ends.
_BEGIN_S = 1.0
_FOREVER = "exec sleep 300"


def drawn(seed: int) -> dict[str, Any]:
    """Return an experiment whose run ends: finite processes that succeed, fail or go on, and services of all kinds."""
    rng = random.Random(seed)
    services: dict[str, dict[str, Any]] = {}
    for number in range(rng.randint(1, 4)):
        service: dict[str, Any] = {"cmds": [_FOREVER], "lifecycle": "service", "ready": {"exec": ["true"]}}
        service["binds"] = f"port-{number}"
        if rng.random() < 0.6:
            service["exposes"] = f"page-{number}"
        if rng.random() < 0.4:
            service["until"] = rng.choice(("run", "uninstall"))
        services[f"s{number}"] = service
    names = [f"port-{number}" for number in range(len(services))]
    statuses = [0, *(rng.choice((0, 0, 3, None)) for _ in range(rng.randint(0, 2)))]
    finite = {
        f"f{number}": {**_ending(status), "restart": "never", "retries": 0, "grace_period": rng.choice((1, 2))}
        for number, status in enumerate(statuses)
    }
    if rng.random() < 0.3:
        finite["f0"]["replicas"] = 2
    for process in [*services.values(), *finite.values()]:
        others = [name for name in names if name != process.get("binds")]
        process["connects"] = sorted(rng.sample(others, min(rng.choice((0, 0, 1, 2)), len(others))))
    data: dict[str, Any] = {"name": f"ends-{seed}", "image": "i:1", "processes": {**finite, **services}}
    if rng.random() < 0.3:
        sidecar = {"cmds": [_FOREVER], "lifecycle": "service"}
        data["groups"] = {"g": {"processes": {"main": _ending(0), "beside": sidecar}}}
    # Without it the run waits for processes that go on.
    if None in statuses or rng.random() < 0.3:
        data["done_when"] = ["f0"]
    data["on_failure"] = rng.choice(("stop", "continue"))
    data["linger"] = rng.choice((0, 0, 1))
    data["local"] = {"start": "together", "tty": False}
    return data


def _ending(status: int | None) -> dict[str, Any]:
    return {"cmds": [_FOREVER if status is None else f"sleep {_BEGIN_S:g}; exit {status}"]}


def alive_after_end(data: dict[str, Any], folder: Path) -> set[str]:
    """Return the paths of the processes that run after the end of a run of `data`, by `transition` alone."""
    experiment = from_data(data)
    plan = plan_here(experiment, allocate(experiment), folder, run_id="drawn")
    played = _Played(plan)
    state = played.state
    assert state.reason in ("finished", "failed")
    assert state.phase in ("kept", "over")
    return {plan.processes[slot].path for slot in played.live}


class _Played:
    """A run of `plan` in which every action succeeds at once, played until nothing is left to happen."""

    def __init__(self, plan: LocalPlan) -> None:
        self._plan, self._now = plan, 1000.0
        # The slots and statuses of programs that end next.
        self._ends: deque[tuple[int, int]] = deque()
        self._timers: list[Later] = []
        self.live = set(range(len(plan.processes)))
        self.state = run_state([unstarted(process) for process in plan.processes])
        for slot in range(len(plan.processes)):
            self._play(methodcaller("started", slot, self._now))
        self._play(methodcaller("taken_over"))
        for process in plan.processes:
            if "; exit " in process.argv[-1]:
                self._ends.append((process.slot, int(process.argv[-1].rpartition(" ")[2])))
        while self._ends or self._timers:
            if self._ends:
                slot, status = self._ends.popleft()
                if slot in self.live:
                    self.live.remove(slot)
                    self._play(methodcaller("ended", slot, status, self._now))
            else:
                later = self._timers.pop(0)
                self._now += later.delay_s
                self._play(methodcaller(later.do, later.slot, later.at))

    def _play(self, event: Event) -> None:
        self.state, actions = transition(self.state, self.live, event, self._plan, self._now)
        for action in actions:
            if isinstance(action, Later):
                self._timers.append(action)
            elif action.do == "end":
                self._ends.appendleft((action.slot, 143))
            else:
                assert action.do in ("attend", "sweep")
