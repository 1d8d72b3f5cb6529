"""Start, restart, end and delete experiments on this machine, and describe the effects of a start."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from msgspec.structs import replace

from symphony_charts.errors import CheckFailed, Conflict, NotFound, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.history import save_spec
from symphony_charts.local.machine.addresses import port_lock
from symphony_charts.local.machine.gpus import look_at_gpus, take_gpus
from symphony_charts.local.machine.machine import check_capacity, check_out_all, namespace_prefix, plan_here
from symphony_charts.local.mounts.helper import helper_command, points_journal, refusals_in
from symphony_charts.local.mounts.mount_points import remove_points
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import quote_path
from symphony_charts.local.run_files import write_identity
from symphony_charts.local.run_folder import (
    Change,
    changes_of,
    in_slots,
    lay_out,
    lay_out_shared,
    refuse_takeover,
    rewrite,
)
from symphony_charts.local.runs import Run, find_slots, home, live_runs
from symphony_charts.local.status import still_running
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.supervisor.requests import Action, request
from symphony_charts.local.supervisor.shutdown import (
    abandon,
    end_damaged,
    is_damaged,
    mark_lost,
    reap,
    remove_private,
    require_here,
    stop,
)
from symphony_charts.local.tmux_client import need_tmux
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service, allocate
from symphony_charts.system import remover
from symphony_charts.system.file_locks import experiment_lock
from symphony_charts.system.files import refuse_full_disk
from symphony_charts.system.inotify import Changes
from symphony_charts.system.processes import has_ended_within, verified

_Shown: TypeAlias = tuple[dict[str, object], str]


def _plan_shown(plan: LocalPlan) -> _Shown:
    """Return the plan of a run as data and as text, without the values of variables."""
    lines, items = [f"{plan.experiment}  at {plan.base_address}"], []
    for process in plan.processes:
        limits = [{"resource": limit.resource, "said": limit.said, "by": limit.by} for limit in process.limits]
        items.append({"name": process.path, "argv": list(process.argv), "gpus": list(process.gpus), "limits": limits})
        given = f"  (GPUs {', '.join(process.gpus)})" if process.gpus else ""
        words = ", ".join(f"{limit.resource} {limit.said} by {limit.by}" for limit in process.limits)
        given += f"  (at most {words})" if words else ""
        lines.append(f"  {process.path}: {shlex.join(process.argv)}{given}")
    ports = {**plan.ports, **{service: moved[0] for service, moved in plan.moved.items()}}
    return _shown(plan, lines, {"address": plan.base_address, "ports": ports, "processes": items})


def _changes_shown(plan: LocalPlan, changes: Sequence[Change]) -> _Shown:
    """Return the changes of a live run as data and as text."""
    by_action: dict[str, object] = {
        f"{action}s": [{"name": one.name, "reason": one.reason} for one in changes if one.action == action]
        for action in ("restart", "start", "stop")
    }
    return _shown(plan, [_words(change) for change in changes] or ["no changes"], by_action)


def _shown(plan: LocalPlan, lines: Sequence[str], data: Mapping[str, object]) -> _Shown:
    text = "".join(f"{line}\n" for line in [*lines, *(f"note: {note}" for note in plan.notes)])
    return {"name": plan.experiment, **data, "notes": list(plan.notes), "dryRun": True}, text


def _words(change: Change) -> str:
    return f"{change.action} {change.name}: {change.reason}"


# Another process may already be stopping this run; allow for its grace period.
_TAKEOVER_S = 120.0
# Timeout, ten times the usual, for a run to end by itself while it is being changed.
_ENDING_S = 10.0
# Source: unix(7), the size of sun_path.
_LONGEST_SOCKET = 107
# Give up stopping after this many supervisors have died or failed to write.
_ATTEMPTS = 3


def up(
    experiment: Experiment,
    services: Sequence[Service],
    *,
    folder: Path,
    force: bool = False,
    dry_run: bool = False,
    share_gpus: bool = False,
    is_new: bool = False,
    spare: SupervisorProcess | None = None,
    touched: Mapping[int, str] = MappingProxyType({}),
    watched: Sequence[str] = (),
    is_scaled: bool = False,
    show: Callable[[Mapping[str, object], str], None] = lambda _data, text: print(text, end=""),  # noqa: T201
) -> Run | None:
    """Start `experiment`, whose relative paths start at `folder`; return once every process has started.

    If it runs already, restart only the changed processes in that run, and the slots in `touched` for the reasons given
    there; `force` ends that run first, `is_new` refuses. Processes in `watched` (``""``: all) wait for a restart when
    they fail, and end nothing. With `is_scaled` those that wait in the live run still do, and stopped processes stay
    stopped. With `share_gpus` runs may share GPUs. A `spare` supervisor saves the time of starting one. With `dry_run`
    start nothing, and pass the plan to `show`, as data and as text.
    Raises Conflict if that run came from another folder or cannot be changed, or if other runs hold the GPUs;
    SpecError, PlacementError, ToolMissing or ToolFailed if this machine cannot run the experiment.
    """
    with contextlib.nullcontext() if dry_run else experiment_lock(experiment.name, "symph up"):
        live_run = _stop_conflicting(experiment.name, force=force, dry_run=dry_run)
        if live_run is not None and _end_rest(live_run, folder, dry_run=dry_run):
            live_run = None
        if live_run is not None:
            refuse_takeover(live_run, folder, is_new=is_new)
            old = live_run.plan()
            # Services that an addition would move keep their ports.
            services = allocate(experiment, old.ports)
            plan = in_slots(plan_here(experiment, services, folder, live_run.run_id, of_run=live_run), old)
            plan = with_watched(plan, watched, old.processes if is_scaled else ())
            changes = changes_of(live_run, plan, touched, keeps_stopped=is_scaled)
            if dry_run:
                show(*_changes_shown(plan, changes))
                return None
            if _restart_changed(live_run, experiment, folder, plan, changes):
                return live_run
            _end_rest(live_run, folder, dry_run=False)
        if dry_run:
            gpus = look_at_gpus(experiment, share=share_gpus, strict=True)
            plan = plan_here(experiment, services, folder, run_id="dry-run", gpus=gpus)
            show(*_plan_shown(plan))
            return None
        return _start(experiment, services, folder, watched, share_gpus=share_gpus, spare=spare)


def with_watched(plan: LocalPlan, names: Sequence[str], old: Sequence[PlannedProcess] = ()) -> LocalPlan:
    """Return `plan` with processes that wait for a restart when they fail: those that `names` fit, ``""`` all.

    All replicas of a process that waits in `old` wait, too.
    """
    waiting = {(process.group, process.process) for process in old if process.on_failure == "wait"}
    slots = {process.slot for process in plan.processes if (process.group, process.process) in waiting}
    slots |= {slot for name in names for slot in (find_slots(plan, name) if name else range(len(plan.processes)))}
    processes = (replace(one, on_failure="wait") if one.slot in slots else one for one in plan.processes)
    return replace(plan, processes=tuple(processes))


def _stop_conflicting(name: str, *, force: bool, dry_run: bool) -> Run | None:
    """Stop conflicting runs and return the live run of this experiment, if there is one."""
    going = []
    for live_run in live_runs(name):
        require_here(live_run)
        if live_run.location.verdict != "lost":
            going.append(live_run)
        elif not dry_run:
            mark_lost(live_run)
    if going and not force:
        # Raises if the run is damaged: then its state cannot be compared with the new plan.
        going[-1].state()
        return going[-1]
    for live_run in [] if dry_run else going:
        end(live_run)
    return None


def _end_rest(run: Run, folder: Path, *, dry_run: bool) -> bool:
    """End the services that go on after the end of `run`, and name them; return False if the run has not ended.

    Raises Conflict if the run came from another folder.
    """
    if not run.is_live or not run.state().has_result:
        return False
    refuse_takeover(run, folder, is_new=False)
    names = ", ".join(still_running(run)) or "nothing"
    sys.stderr.write(f"{run.experiment}: its last run has ended; {'would end' if dry_run else 'ending'} {names}\n")
    if not dry_run:
        end(run)
    return True


def _start(
    experiment: Experiment,
    services: Sequence[Service],
    folder: Path,
    watched: Sequence[str],
    *,
    share_gpus: bool,
    spare: SupervisorProcess | None,
) -> Run:
    need_tmux()
    # Microseconds, so that ids of later runs sort later.
    run = Run(home() / experiment.name / datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f"))
    quote_path(str(run.folder))
    if len(os.fsencode(run.socket)) > _LONGEST_SOCKET:
        what = f"the path of the tmux socket is longer than {_LONGEST_SOCKET} bytes"
        raise ToolFailed(what, str(run.socket), "set SYMPH_RUNTIME_DIR to a folder with a shorter path")
    refuse_full_disk(run.home)
    with take_gpus(experiment, share=share_gpus) as gpus, port_lock(experiment):
        remover.make(run.home, run.experiment, run.run_id)
        # Also removes mount points of runs that were killed together with all their supervisors.
        remove_points(str(points_journal()))
        # The supervisor starts tmux while everything else is prepared.
        supervisor = spare or SupervisorProcess()
        try:
            write_identity(run.folder)
            plan = with_watched(plan_here(experiment, services, folder, run.run_id, gpus=gpus), watched)
            check_capacity(len(plan.processes))
            lay_out_shared(run, plan)
            commits = check_out_all(plan.checkouts)
            helper = helper_command(run.folder / "mounts.json")
            server = [*namespace_prefix(), *helper] if plan.has_namespace else []
            supervisor.supervise(run, server, len(plan.processes))
            lay_out(run, plan, folder)
            save_spec(run, experiment, folder)
            count = supervisor.start_all(commits)
            if count != len(plan.processes):
                cause = "" if tmux_client.server_pid(run.socket) else ": tmux was killed"
                raise ToolFailed(f"the run failed{cause}", f"tmux started {count} of {len(plan.processes)} processes")
        except BaseException as error:
            try:
                supervisor.cancel()
            finally:
                abandon(run)
            if isinstance(error, OSError):
                what = f"cannot write the files of the run: {error.strerror}"
                step = "free disk space or allow writing there, or set SYMPH_STATE_DIR to another folder"
                raise ToolFailed(what, str(run.folder), step) from error
            if isinstance(error, ToolFailed) and (refusals := refusals_in(error)):
                raise refusals from error
            raise
        supervisor.close()
    return run


def restart(run: Run, slots: Sequence[int]) -> None:
    """Stop the processes in `slots` and start them again; return once they have started.

    Resets their restart counts. Raises NotFound if the run is over, ToolFailed if the supervisor does not react.
    """
    act(run, dict.fromkeys(slots, "restart"))


def act(run: Run, actions: Mapping[int, Action]) -> None:
    """Stop, start or restart processes by slot; stopped ones stay stopped. Return and raise as `restart` does."""
    with experiment_lock(run.experiment, f"symph {next(iter(actions.values()), 'restart')}"):
        _act(run, actions)


def _act(run: Run, actions: Mapping[int, Action]) -> None:
    _take_over(run)
    request(run, actions)


def _restart_changed(
    run: Run, experiment: Experiment, folder: Path, plan: LocalPlan, changes: Sequence[Change]
) -> bool:
    """Return True if `run` is up to date afterwards; False if it ended by itself while changes were pending."""
    sys.stderr.write("".join(f"{_words(change)}\n" for change in changes))
    check_capacity(sum(change.action == "start" for change in changes))
    try:
        rewrite(run, plan, folder)
        (run.folder / "spec.json").unlink(missing_ok=True)
        save_spec(run, experiment, folder)
        _act(run, {change.slot: change.action for change in changes})
    except (FileNotFoundError, NotFound):
        if not (run.is_live and run.state().has_result) and not is_over_within(run, _ENDING_S):
            raise
    if run.is_live:
        return not (run.state().has_result and changes)
    # The supervisor cleaned up before all of the files were written.
    remove_private(run, len(plan.processes))
    return not changes


def down(run: Run) -> None:
    """End a run and wait until nothing of it is left. Raises CheckFailed naming the survivors.

    Reports long waits on stderr. Raises Conflict for a run that lives elsewhere.
    """
    with experiment_lock(run.experiment, "symph down"):
        end(run)


def mark_run_lost(run: Run) -> None:
    """Mark a run that is not visible from here as ended (`down --lost`). Raises Conflict if it is live."""
    with experiment_lock(run.experiment, "symph down --lost"):
        where = run.location
        if where.verdict in ("here", "elsewhere"):
            what = where.words or "runs here"
            raise Conflict(f'experiment "{run.experiment}" is not lost: {what}', next=f"symph down {run.experiment}")
        mark_lost(run)


def end(run: Run) -> None:
    """Do the work of `down` for a caller that holds the lock of the experiment."""
    left: list[int] = []
    for _ in range(_ATTEMPTS):
        if not run.is_live:
            break
        require_here(run)
        is_supervised = run.is_supervised
        if run.location.verdict == "lost":
            mark_lost(run)
        elif not is_supervised and is_damaged(run):
            left = end_damaged(run)
        else:
            # The supervisor may be killed before it has ended the run; then the next attempt starts another one.
            if not is_supervised:
                _take_over(run)
            stop(run)
            left = [] if run.is_live else run.state().survivors
    else:
        what = f'experiment "{run.experiment}" did not end'
        raise CheckFailed(what, str(run.folder / "supervisor.log"), "read this log for the cause, fix it, and retry")
    if left:
        raise CheckFailed(f"processes survived: {', '.join(map(str, left))}", next="inspect them: ps -p PID -f")


def wait(run: Run) -> int:
    """Wait until a run is over; return its exit status: 0, or the status of the first failed process.

    Raises Conflict for a run that lives elsewhere, CheckFailed for a lost one.
    """
    while not is_over_within(run, None):
        pass
    return exit_status(run)


def is_over(run: Run) -> bool:
    """Return True if a run has ended, and at most services run that go on until `symph down`."""
    if not run.is_live:
        return True
    with contextlib.suppress(NotFound, ToolFailed):
        state, plan = run.state(), run.plan()
        pairs = zip(state.processes, plan.processes, strict=False)
        return state.phase == "kept" and all(
            process.phase in ("done", "failed", "stopped") for process, planned in pairs if planned.at_end != "stay"
        )
    return False


def is_over_within(run: Run, seconds: float | None) -> bool:
    """Return True if a run is over within `seconds` (None: while its supervisor lives). Raises as `wait`."""
    if is_over(run):
        return True
    require_here(run)
    if run.location.verdict == "lost":
        raise CheckFailed(f'experiment "{run.experiment}" is lost: {run.location.words}')
    ensure_supervised(run)
    deadline = None if seconds is None else time.monotonic() + seconds
    record = run.supervisor
    with Changes([run.folder]) as watched, verified(record) as supervisor:
        # The supervisor of a run that has ended still cleans up.
        while supervisor is not None and not (run.is_live and is_over(run)):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if left == 0.0 or has_ended_within(supervisor, 0.0):
                break
            watched.wait(left, supervisor)
    if record is not None:
        reap(record)
    return is_over(run)


def exit_status(run: Run) -> int:
    """Return the exit status of a run that is over: 0, or the status of the first failed process (1 if unknown)."""
    state = run.state()
    return (state.failed.status or 1) if state.failed else int(bool(state.cause))


def ensure_supervised(run: Run) -> None:
    """Start a new supervisor for a live run that has none. Raises Conflict if the run lives elsewhere."""
    if run.is_live and not run.is_supervised:
        with experiment_lock(run.experiment, "a takeover", timeout_s=_TAKEOVER_S):
            _take_over(run)


def _take_over(run: Run) -> None:
    """Do the work of `ensure_supervised` for a caller that holds the lock of the experiment."""
    if not run.is_live or run.is_supervised:
        return
    require_here(run)
    supervisor = SupervisorProcess()
    try:
        supervisor.supervise(run)
        supervisor.await_reply()
    except ToolFailed:
        # A run that has ended in the meantime needs no supervisor.
        if run.is_live:
            raise
    finally:
        supervisor.close()


def delete(name: str, runs: Sequence[Run]) -> None:
    """End `runs`, all of the experiment `name`, and remove their files. Raises CheckFailed for leftovers."""
    with experiment_lock(name, "symph rm"):
        for run in runs:
            end(run)
            tmux_client.hide(run)
        left = [entry for run in runs for entry in remover.remove(run.home, name, run.run_id)]
    if left:
        step = f"fix the cause, then: symph rm {name}"
        raise CheckFailed(f"could not remove {len(left)} files or folders: {'; '.join(left)}", next=step)
