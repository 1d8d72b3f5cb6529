"""The status of a run of this machine, from its plan and its state. Imported by `symph ps`: keep it light."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from symphony_charts.backend.status import (
    FINAL,
    Event,
    ExperimentStatus,
    InstanceStatus,
    Phase,
    ServiceStatus,
    overall,
    unfinished,
)
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats.printable import age, with_gpus
from symphony_charts.local.logs import tail_of
from symphony_charts.local.run_files import damaged, tries_of
from symphony_charts.local.runs import LIVE, Run, describe_process
from symphony_charts.system.processes import is_running, read_stat

if TYPE_CHECKING:
    from symphony_charts.local.plan.records import LocalPlan, PlannedProcess, Wait
    from symphony_charts.local.run_state import ProcessState, RunState


# `processes` come from `state.json` and `planned` from `plan.json`; both are in slot order.

# A longer wait is reported as a warning, in seconds.
LONG_S = 30.0
_View: TypeAlias = Literal["", "lost", "unsupervised"]


def unmet_waits(slot: int, processes: Sequence[ProcessState], planned: Sequence[PlannedProcess]) -> list[Wait]:
    """Return the unmet waits of the process in `slot`; on a fresh start only those for processes that are starting."""
    unmet = []
    for wait in planned[slot].waits:
        other = processes[wait.slot]
        is_met = other.phase == "done" or (wait.until == "ready" and other.ready)
        if processes[slot].is_fresh_start:
            is_met = (is_met or other.phase in ("failed", "stopped")) and not other.is_restart_asked
        unmet += [] if is_met else [wait]
    return unmet


def wait_words(slot: int, state: RunState, plan: LocalPlan) -> str:
    """Return for example ``waits for replay-server:7003 of replay``; empty for a process that waits for nothing."""
    processes = state.processes
    if processes[slot].phase == "backoff" and processes[slot].held:
        return f"waits for {processes[slot].held}"
    if processes[slot].phase != "waiting":
        return ""
    waits = unmet_waits(slot, processes, plan.processes)
    if not waits:
        return ""
    more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"waits for {_awaited(waits[0], processes, plan)}{more}"


def waiting_since(process: ProcessState, state: RunState) -> float:
    """Return the start of its wait: the start of the run, or its last end."""
    return max(state.started, process.ended or 0.0)


def _awaited(wait: Wait, processes: Sequence[ProcessState], plan: LocalPlan) -> str:
    name = processes[wait.slot].path
    if wait.service:
        ports = plan.moved.get(wait.service) or (plan.ports[wait.service],)
        index = plan.processes[wait.slot].index
        return f"{wait.service}:{ports[min(index, len(ports) - 1)]} of {name}"
    return f"{name} to {'be ready' if wait.until == 'ready' else 'succeed'}"


RUN_PHASES: dict[str, Phase] = {
    "stopping": "stopping",
    "stopped": "stopped",
    "finished": "succeeded",
    "failed": "failed",
    "lost": "lost",
    "damaged": "damaged",
}
_PHASES: dict[str, Phase] = {
    **RUN_PHASES,
    "waiting": "pending",
    "starting": "pending",
    "backoff": "pending",
    "running": "running",
    "done": "succeeded",
}


def run_status(run: Run, *, events: bool = True) -> ExperimentStatus:
    """Return the status of the run in the common layout of backends, as visible from here."""
    status = partial(
        ExperimentStatus,
        name=run.experiment,
        experiment=run.experiment,
        backend="tmux",
        run=run.run_id,
        held_by=("tmux",),
    )
    try:
        state, plan = run.state(), run.plan()
        if len(plan.processes) < len(state.processes):
            raise damaged(run.folder / "plan.json", "it belongs to another run than state.json")
    except (NotFound, ToolFailed) as error:
        note = f"{error.what}; {error.next}" if error.next else error.what
        return status(phase="damaged", started=run.folder.stat().st_mtime, note=note)
    view, note = _view(run, state)
    if view == "unsupervised":
        # If the supervisor ended in between, it wrote the end of the run first.
        state = run.state()
        view, note = _view(run, state)
    if state.phase in LIVE:
        state.with_added(plan)
    pairs = list(zip(state.processes, plan.processes, strict=False))
    every = ((_instance(run, process, state, plan, view), planned) for process, planned in pairs)
    instances = tuple(one for one, planned in every if not (planned.is_removed and one.phase in FINAL))
    phase: Phase = "lost"
    if view != "lost" or state.has_result:
        is_held = any(process.is_stopped and not planned.is_removed for process, planned in pairs)
        # A run whose services go on has its result once all that ends with it has ended.
        result = state.phase if not state.has_result else state.reason if state.is_settled else "stopping"
        phase = RUN_PHASES.get(result) or _phase_of_live(instances, plan, view, is_held=is_held)
    return status(
        phase=phase,
        started=state.started,
        ended=state.ended,
        instances=instances,
        services=tuple(_services(plan)),
        still_running=_unfinished(instances) if phase in FINAL else (),
        ended_with_run=tuple(_ended_with(state, plan)) if phase in FINAL else (),
        events=tuple(run_events(run)) if events else (),
        labels=plan.labels,
        note=note,
    )


def still_running(run: Run) -> tuple[str, ...]:
    """Return the names of the processes of `run` that run."""
    return _unfinished(run_status(run, events=False).instances)


def _unfinished(instances: Sequence[InstanceStatus]) -> tuple[str, ...]:
    return unfinished(instances, lambda one: len(one.gpus))


def _ended_with(state: RunState, plan: LocalPlan) -> Iterator[str]:
    """Yield the processes that the end of the run has ended, with their GPUs."""
    if state.reason not in ("finished", "failed"):
        return
    ended: dict[str, list[str]] = {}
    for process, planned in zip(state.processes, plan.processes, strict=False):
        is_ended = process.phase == "stopped" or (planned.is_service and process.phase == "done")
        if is_ended and process.started and planned.at_end != "stay" and not (planned.is_step or planned.is_removed):
            name = f"{planned.group}/{planned.process}" if planned.group else planned.process
            ended.setdefault(name, []).extend(planned.gpus)
    for name, gpus in ended.items():
        yield with_gpus(name, len(set(gpus)))


def _phase_of_live(instances: Sequence[InstanceStatus], plan: LocalPlan, view: _View, *, is_held: bool) -> Phase:
    """Return the phase of a run that has not ended; when all processes have, their logs are still being written.

    With `is_held` it keeps running, since a command has stopped a process.
    """
    awaited = [instance for instance in instances if not (instance.is_service or instance.is_step)] or instances
    watched = {planned.path for planned in plan.processes if planned.on_failure == "wait"}
    has_ended = all(one.phase in FINAL and not (one.phase == "failed" and one.path in watched) for one in awaited)
    if has_ended and view != "unsupervised" and not is_held:
        return "stopping"
    phase = overall(instances)
    is_partly = phase in FINAL and (
        any(instance.phase not in FINAL for instance in instances) or (phase == "failed" and not has_ended)
    )
    return "running" if is_partly else phase


def _view(run: Run, state: RunState) -> tuple[_View, str]:
    """Return how the state is known, and a note on that; an unsupervised one may be outdated."""
    if state.phase not in LIVE:
        return "", ""
    where = run.location
    if where.verdict == "lost":
        return "lost", f"{where.words}; clean up: symph down {run.experiment}"
    if where.verdict != "here":
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((run.folder / "state.json").stat().st_mtime))
        return "", f"{where.words}; this is its state of {moment}"
    supervisor = run.supervisor
    if supervisor is None:
        takeover = f"take over: symph up SPEC; end it: symph down {run.experiment}"
        return "unsupervised", f"its supervisor has died, so its processes do not restart; {takeover}"
    stat = read_stat(supervisor.pid)
    if stat and stat.is_stopped:
        return "", f"its supervisor is suspended, so this may be outdated; kill -CONT {supervisor.pid}"
    return "", ""


def _instance(run: Run, process: ProcessState, state: RunState, plan: LocalPlan, view: _View) -> InstanceStatus:
    planned, words = plan.processes[process.slot], describe_process(process, state)
    phase: Phase = "stopped" if words == "never started" else _PHASES[process.phase]
    awaited = wait_words(process.slot, state, plan) if state.phase in LIVE and view != "lost" else ""
    if awaited:
        words = f"{awaited}, {age(time.time() - waiting_since(process, state))}"
    if view == "lost" and phase not in FINAL:
        phase, words = "lost", "lost"
    elif view == "unsupervised" and phase == "running" and not is_running(process.wrapper):
        phase, words = "failed", "ended with an unknown status"
    return InstanceStatus(
        name=process.name,
        process=planned.process,
        group=process.group,
        index=planned.index,
        phase=phase,
        state=words,
        ready=process.ready and phase not in FINAL,
        # A start by hand, which counts from 0, has not happened yet.
        restarts=max(0, process.restarts),
        # A process that waits for a restart has none yet.
        status=None if awaited else process.status,
        reason=(words if awaited or phase == "lost" or (view == "unsupervised" and phase == "failed") else "")
        or _why_not_well(run, process, words),
        place=planned.address,
        pod=process.pod,
        started=process.started,
        ended=process.ended,
        is_step=planned.is_step,
        is_service=planned.is_service,
        gpus=planned.gpus,
        tries=tries_of(run.process_dir(process.slot)),
    )


def _why_not_well(run: Run, process: ProcessState, words: str) -> str:
    if process.phase in ("failed", "backoff"):
        return ": ".join([words, *(line[:200] for line in tail_of(run.process_dir(process.slot) / "log", 1))])
    is_unready = process.phase == "running" and not process.ready and process.unready
    return f"not ready: {process.unready}" if is_unready else ""


def _services(plan: LocalPlan) -> Iterator[ServiceStatus]:
    for name, pod_port in plan.ports.items():
        port = plan.moved.get(name, (pod_port,))[0]
        # The address of a check at this port; without a check, the run's own.
        hosts = (check.host for process in plan.processes for check in process.checks if check.port == port)
        yield ServiceStatus(name=name, address=f"{next(hosts, plan.base_address)}:{port}")


# Variables on which programs commonly depend.
_NOTABLE = re.compile(
    r"PYTHON(?:PATH|HOME)|LD_(?:LIBRARY_PATH|PRELOAD)|CONDA_PREFIX|(?:HTTPS?|FTP|ALL|NO)_PROXY|\w*_(?:API_KEY|TOKEN)"
    r"|AWS_(?:PROFILE|(?:DEFAULT_)?REGION|ENDPOINT_URL|(?:SECRET_)?ACCESS_KEY(?:_ID)?)"
    r"|(?:CUDA|NCCL|OMP|HF|WANDB|MLFLOW|TORCH|JAX|XLA|GOOGLE|AZURE|MUJOCO)_\w+",
    re.IGNORECASE,
)
# Number of last lines in which a failed process may name a variable.
_LAST_LINES = 5


def missed_variables(run: Run, slot: int) -> str:
    """Return the names of variables of the caller that a failed process may miss: notable ones, and those it named."""
    try:
        names = run.plan().not_passed
    except (NotFound, ToolFailed):
        return ""
    words = set(re.findall(r"[A-Z_][A-Z0-9_]{2,}", "\n".join(tail_of(run.process_dir(slot) / "log", _LAST_LINES))))
    return ", ".join(name for name in names if name in words or _NOTABLE.fullmatch(name))


def run_events(run: Run) -> list[Event]:
    """Return starts and ends as the supervisor noted them, oldest first; of long records the last ones."""
    state = run.state()
    plan = run.plan() if state.phase in LIVE else None
    if plan:
        state.with_added(plan)
    events: list[Event] = []

    def note(moment: float, about: str, reason: str, message: str, *, is_warning: bool = False) -> None:
        kind = "Warning" if is_warning else "Normal"
        events.append(Event(time=moment, kind=kind, about=about, reason=reason, message=message))

    note(state.started, f"Run/{run.run_id}", "Started", "")
    for process in state.processes:
        about, has_failed = f"Process/{process.path}", process.phase in ("failed", "backoff")
        tries = tries_of(run.process_dir(process.slot))
        for number, started in enumerate(dict.fromkeys([*(one.started for one in tries), process.started])):
            if started:
                note(started, about, "Started", f"restart {number}" if number else "")
        for one in tries:
            # A service has failed even with status 0.
            is_failure = (has_failed and one is tries[-1]) or (one.status != 0 and one.cause != "stopped")
            message = f"exit status {'unknown' if one.status is None else one.status}"
            message += f" ({one.cause})" if one.cause else ""
            note(one.ended, about, "Failed" if is_failure else "Ended", message, is_warning=is_failure)
        if process.ended and has_failed and (names := missed_variables(run, process.slot)):
            text = f"{names}: set in your shell, but not passed to the process; pass them: `local.pass_env`"
            note(process.ended, about, "NotPassed", text, is_warning=True)
        since = waiting_since(process, state)
        words = wait_words(process.slot, state, plan) if plan and time.time() - since >= LONG_S else ""
        if words:
            note(since, about, "Waiting", words, is_warning=True)
    if state.ended:
        result = state.reason or state.phase
        message = f"{result}: {state.cause}" if state.cause else result
        note(state.ended, f"Run/{run.run_id}", "Ended", message, is_warning=result == "failed")
    return sorted(events, key=lambda event: event.time)
