"""`run_status` says how a run of this machine is, by its plan and its state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symphony_charts.backend.status import (
    FINAL,
    Event,
    ExperimentStatus,
    InstanceStatus,
    Phase,
    ServiceStatus,
    overall,
)
from symphony_charts.errors import NotFound, SymphError, ToolFailed
from symphony_charts.formats.age import age
from symphony_charts.local.log_tail import tail_of
from symphony_charts.local.run_files import damaged
from symphony_charts.local.runs import LIVE, Run, describe_process, wrapper_of
from symphony_charts.local.waiting import LONG_S, wait_words, waiting_since
from symphony_charts.system.process_identity import is_running, read_stat

__all__ = ["RUN_PHASES", "path_of", "run_events", "run_status"]

_PHASES: dict[str, Phase] = {
    "waiting": "pending",
    "starting": "pending",
    "backoff": "pending",
    "running": "running",
    "done": "succeeded",
    "failed": "failed",
    "stopped": "stopped",
    "lost": "lost",
    "damaged": "damaged",
}
# What is told of a process of a plan.
_PLANNED_KEYS = frozenset({"address", "checks", "index", "is_service", "is_step", "process"})
RUN_PHASES: dict[str, Phase] = {
    "stopping": "stopping",
    "stopped": "stopped",
    "finished": "succeeded",
    "failed": "failed",
    "lost": "lost",
    "damaged": "damaged",
}


def run_status(run: Run, *, events: bool = True) -> ExperimentStatus:
    """The run in the layout of every backend, as it can be seen from here."""
    try:
        state, plan = run.state(), _plan_of(run)
    except (NotFound, ToolFailed) as error:
        return _damaged_status(run, error)
    sight = _look(run, state)
    if sight.is_blind:
        # A supervisor that ended between the two looks wrote how the run ended before it went.
        state = run.state()
        sight = _look(run, state)
    pairs = zip(state["processes"], plan["processes"], strict=True)
    instances = tuple(_instance(run, item, planned, state, plan, sight) for item, planned in pairs)
    phase = "lost" if sight.is_lost else RUN_PHASES.get(state["phase"]) or _phase_of_live(instances, sight)
    return ExperimentStatus(
        name=run.experiment,
        experiment=run.experiment,
        backend="tmux",
        phase=phase,
        started=state["started"],
        ended=state.get("ended"),
        run=run.run_id,
        held_by=("tmux",),
        instances=instances,
        services=_services(plan),
        events=tuple(run_events(run)) if events else (),
        labels=plan.get("labels") or {},
        note=sight.note,
    )


def _phase_of_live(instances: Sequence[InstanceStatus], sight: _Sight) -> Phase:
    """How a run is that has not ended: when its processes have, the last of their logs are being written."""
    awaited = [instance for instance in instances if not instance.is_service] or instances
    is_ending = not sight.is_blind and all(instance.phase in FINAL for instance in awaited)
    return "stopping" if is_ending else overall(instances)


def _plan_of(run: Run) -> dict[str, Any]:
    """The plan, if it goes with the state and says where its services are."""
    plan = run.plan()
    items = plan["processes"]
    is_whole = (
        isinstance(plan.get("ports"), dict)
        and isinstance(plan.get("base_address"), str)
        and len(items) == len(run.state()["processes"])
        and all(isinstance(item, dict) and item.keys() >= _PLANNED_KEYS for item in items)
    )
    if not is_whole:
        raise damaged(run.folder / "plan.json", "it is not that of the state beside it")
    return plan


def _damaged_status(run: Run, error: SymphError) -> ExperimentStatus:
    """What can be said of a run whose files cannot be read."""
    return ExperimentStatus(
        name=run.experiment,
        experiment=run.experiment,
        backend="tmux",
        phase="damaged",
        started=run.folder.stat().st_mtime,
        run=run.run_id,
        held_by=("tmux",),
        note=f"{error.what}; {error.next}" if error.next else error.what,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    """What can be seen of a run from here, beside its state: `is_blind` means that nobody keeps that up to date."""

    is_lost: bool = False
    is_blind: bool = False
    note: str = ""


def _look(run: Run, state: Mapping[str, Any]) -> _Sight:
    if state["phase"] not in LIVE:
        return _Sight()
    where = run.whereabouts
    if where.verdict == "lost":
        return _Sight(is_lost=True, note=f"{where.words}; symph down {run.experiment} tidies up")
    if where.verdict != "here":
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((run.folder / "state.json").stat().st_mtime))
        return _Sight(note=f"{where.words}; this is how it was at {moment}")
    supervisor = run.supervisor
    if supervisor is None:
        takeover = f"symph up SPEC takes over, symph down {run.experiment} ends it"
        return _Sight(is_blind=True, note=f"its supervisor is gone: nobody restarts its processes; {takeover}")
    stat = read_stat(supervisor.pid)
    if stat and stat.is_stopped:
        return _Sight(note=f"its supervisor is stopped, so this may be old: kill -CONT {supervisor.pid}")
    return _Sight()


def _instance(
    run: Run,
    item: Mapping[str, Any],
    planned: Mapping[str, Any],
    state: dict[str, Any],
    plan: Mapping[str, Any],
    sight: _Sight,
) -> InstanceStatus:
    words = describe_process(dict(item), state)
    phase: Phase = "stopped" if words == "never started" else _PHASES[item["phase"]]
    awaited = wait_words(item["slot"], state, plan) if state["phase"] in LIVE and not sight.is_lost else ""
    if awaited:
        words = f"{awaited}, {age(time.time() - waiting_since(item, state))}"
    if sight.is_lost and phase not in FINAL:
        phase, words = "lost", "lost"
    elif sight.is_blind and phase == "running" and not is_running(wrapper_of(item)):
        phase, words = "failed", "ended, and nobody saw how"
    return InstanceStatus(
        name=item["name"],
        process=planned["process"],
        group=item["group"],
        index=planned["index"],
        phase=phase,
        state=words,
        ready=bool(item["ready"]) and phase not in FINAL,
        restarts=item["restarts"],
        # A process that waits to start again has none yet.
        status=None if awaited else item["status"],
        reason=(words if awaited or phase == "lost" or (sight.is_blind and phase == "failed") else "")
        or _why_failed(run, item, words)
        or _not_ready(item),
        place=planned["address"],
        pod=item["pod"],
        started=item.get("started"),
        ended=item.get("ended"),
        is_step=planned["is_step"],
        is_service=planned["is_service"],
        gpus=tuple(planned.get("gpus", ())),
    )


def _why_failed(run: Run, item: Mapping[str, Any], words: str) -> str:
    """What is said of a process that failed, and what that said last."""
    if item["phase"] not in ("failed", "backoff"):
        return ""
    return ": ".join([words, *(line[:200] for line in tail_of(run.process_dir(item["slot"]) / "log", 1))])


def _not_ready(item: Mapping[str, Any]) -> str:
    """Why a process that runs is not ready, as its probes found."""
    why = item.get("unready") if item["phase"] == "running" and not item["ready"] else ""
    return f"not ready: {why}" if why else ""


def _services(plan: Mapping[str, Any]) -> tuple[ServiceStatus, ...]:
    return tuple(ServiceStatus(name=name, address=f"{_host(plan, port)}:{port}") for name, port in _ports(plan).items())


def _ports(plan: Mapping[str, Any]) -> dict[str, int]:
    """The port of each service as it is here; of one with several replicas that of the first."""
    return {name: plan["moved"].get(name, [port])[0] for name, port in plan["ports"].items()}


def _host(plan: Mapping[str, Any], port: int) -> str:
    """The address that is asked whether it listens at `port`; without any, the run's own."""
    checks = [check for planned in plan["processes"] for check in planned["checks"] if check["port"] == port]
    return str(checks[0]["host"] if checks else plan["base_address"])


def run_events(run: Run) -> list[Event]:
    """Starts and ends as the supervisor noted them, the oldest first; of a restarted process only the last."""
    state = run.state()
    events = [Event(time=state["started"], kind="Normal", about=f"Run/{run.run_id}", reason="Started", message="")]
    for item in state["processes"]:
        about = f"Process/{path_of(item)}"
        if item.get("started"):
            again = f"restart {item['restarts']}" if item["restarts"] else ""
            events.append(Event(time=item["started"], kind="Normal", about=about, reason="Started", message=again))
        if item.get("ended"):
            is_bad = item["phase"] in ("failed", "backoff")
            reason = "Failed" if is_bad else "Ended"
            message = f"exit status {'unknown' if item['status'] is None else item['status']}"
            kind = "Warning" if is_bad else "Normal"
            events.append(Event(time=item["ended"], kind=kind, about=about, reason=reason, message=message))
    events += _long_waits(run, state)
    if state.get("ended"):
        kind = "Warning" if state["phase"] == "failed" else "Normal"
        message = f"{state['phase']}: {state['cause']}" if state.get("cause") else str(state["phase"])
        about = f"Run/{run.run_id}"
        events.append(Event(time=state["ended"], kind=kind, about=about, reason="Ended", message=message))
    return sorted(events, key=lambda event: event.time)


def _long_waits(run: Run, state: Mapping[str, Any]) -> Iterator[Event]:
    """Who has waited for long, and for whom."""
    plan = run.plan() if state["phase"] in LIVE else {}
    for item in state["processes"] if plan else ():
        since, words = waiting_since(item, state), wait_words(item["slot"], state, plan)
        if words and time.time() - since >= LONG_S:
            about = f"Process/{path_of(item)}"
            yield Event(time=since, kind="Warning", about=about, reason="Waiting", message=words)


def path_of(item: Mapping[str, Any]) -> str:
    """``group/name`` of a process as plan and state list it, or its name alone."""
    return f"{item['group']}/{item['name']}" if item["group"] else str(item["name"])
