"""`up` starts experiments on this machine, `restart` parts of them, and `down` ends them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from symphony_charts.errors import CheckFailed, SymphError, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.history import save_spec
from symphony_charts.local.machine.addresses import choosing
from symphony_charts.local.machine.capacity import make_room_for
from symphony_charts.local.machine.git_volumes import check_out_all
from symphony_charts.local.machine.gpus import look_at_gpus, take_gpus
from symphony_charts.local.machine.machine import namespace_prefix, plan_here
from symphony_charts.local.mounts.helper import helper_command, points_journal, refusals_in
from symphony_charts.local.mounts.points import remove_points
from symphony_charts.local.plan.gpus import wishes_of
from symphony_charts.local.plan.records import Gpus, LocalPlan
from symphony_charts.local.plan.scripts import check_path, quote
from symphony_charts.local.restart_changed import changes_of, rewrite
from symphony_charts.local.run_folder import lay_out, lay_out_shared, make_folder, remove_folder
from symphony_charts.local.runs import Run, live_runs, runs_of
from symphony_charts.local.supervisor.cleanup import kill_everything
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.supervisor.requests import request
from symphony_charts.local.tmux_client import need_tmux
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import Service, allocate
from symphony_charts.system import processes
from symphony_charts.system.user_folders import state_dir

__all__ = ["Server", "describe", "down", "ensure_supervised", "launch", "restart", "up", "wait"]


def launch(experiment: Experiment, *, force: bool = False, dry_run: bool = False) -> Run | None:
    """Start `experiment` with freshly allocated ports; with `dry_run` print what would be started."""
    return up(experiment, allocate(experiment), folder=Path.cwd(), force=force, dry_run=dry_run)


def up(
    experiment: Experiment,
    services: Sequence[Service],
    *,
    folder: Path,
    force: bool = False,
    dry_run: bool = False,
    share_gpus: bool = False,
    spare: SupervisorProcess | None = None,
    touched: Mapping[int, str] = MappingProxyType({}),
) -> Run | None:
    """Start `experiment`, whose relative paths count from `folder`; returns once every process has been started.

    When it runs already, only the processes that changed are started again, in the same run (`force` ends that run
    first), and the slots in `touched`, for the reasons given there. With `share_gpus` processes and runs that share
    may get the same GPUs. Raises Conflict when the change needs a new run or other runs hold the GPUs, SpecError when
    it cannot run on one machine, PlacementError when that has too few GPUs, ToolMissing without tmux, ToolFailed when
    the machine refuses. A `spare` supervisor saves the time that starting one takes.
    """
    runs = runs_of(experiment.name)
    if runs and runs[-1].is_live:
        if not force:
            return _restart_changed(runs[-1], experiment, services, folder, touched, dry_run=dry_run)
        if not dry_run:
            down(runs[-1])
    if dry_run:
        gpus = look_at_gpus(experiment, share=share_gpus, strict=True)
        sys.stdout.write(describe(plan_here(experiment, services, folder, run_id="dry-run", gpus=gpus)))
        return None
    need_tmux()
    run = Run(state_dir() / "local" / experiment.name / _new_run_id())
    _restore_supervisors(experiment)
    with take_gpus(experiment, run.folder, share=share_gpus) as gpus, choosing(experiment):
        # The locks of GPUs go to a supervisor that is started while they are held.
        _begin(run, experiment, services, folder, gpus, None if gpus.ids else spare)
    return run


def _begin(
    run: Run,
    experiment: Experiment,
    services: Sequence[Service],
    folder: Path,
    gpus: Gpus,
    spare: SupervisorProcess | None,
) -> None:
    check_path(str(run.folder))
    make_folder(run)
    # Those of a run that was killed with all of its supervisors, too.
    remove_points(str(points_journal()))
    # It starts while everything else is prepared.
    supervisor, server = spare or SupervisorProcess.ahead(), None
    try:
        supervisor.take(run)
        plan = plan_here(experiment, services, folder, run.run_id, gpus=gpus)
        make_room_for(len(plan.processes))
        lay_out_shared(run, plan)
        commits = check_out_all(plan.checkouts)
        server = Server(run, plan)
        lay_out(run, plan, folder, supervisor=supervisor.pid, **({"commits": commits} if commits else {}))
        supervisor.tell()
        save_spec(run, experiment, folder)
        supervisor.answer()
        server.start_all()
        supervisor.tell()
        count = supervisor.answer()
        if count != len(plan.processes):
            raise ToolFailed(f"tmux started {count} of {len(plan.processes)} processes")
    except BaseException:
        # Whatever one of them says, the others are done as well, the last one first.
        with contextlib.ExitStack() as left:
            left.callback(remove_folder, run)
            if server is not None:
                left.callback(remove_points, str(points_journal()))
                left.callback(server.kill)
            left.callback(supervisor.kill)
        raise
    supervisor.close()


def restart(run: Run, slots: Sequence[int], timeout_s: float = 120.0) -> None:
    """End the processes in `slots` as a stop would and start them again; returns once they have been started.

    Their restarts count from 0 again. Raises NotFound when the run is over, ToolFailed when it takes too long.
    """
    ensure_supervised(run)
    request(run, slots, timeout_s)


def _restart_changed(
    run: Run,
    experiment: Experiment,
    services: Sequence[Service],
    folder: Path,
    touched: Mapping[int, str],
    *,
    dry_run: bool,
) -> Run | None:
    plan = plan_here(experiment, services, folder, run.run_id, of_run=run)
    changes = changes_of(run, plan, touched)
    sys.stdout.write("".join(f"restart {change.name}: {change.reason}\n" for change in changes) if dry_run else "")
    if dry_run:
        sys.stdout.write("" if changes else "nothing has changed\n")
        sys.stdout.write("".join(f"note: {note}\n" for note in plan.notes))
        return None
    sys.stderr.write("".join(f"restart {change.name}: {change.reason}\n" for change in changes))
    rewrite(run, plan, folder)
    (run.folder / "spec.json").unlink(missing_ok=True)
    save_spec(run, experiment, folder)
    restart(run, [change.slot for change in changes])
    return run


def down(run: Run, timeout_s: float = 120.0) -> None:
    """End a run and wait until nothing of it is left; raises CheckFailed naming what survives."""
    if not run.is_live:
        return
    ensure_supervised(run)
    processes.signal_process([int(run.state()["supervisor"])], signal.SIGTERM)
    _await_end(run, timeout_s)
    left = run.state()["survivors"]
    if left:
        raise CheckFailed(f"processes survived: {', '.join(map(str, left))}", next="look at them: ps -p PID -f")


def wait(run: Run) -> int:
    """Wait until a run is over; its exit status: 0, or the status of the first process that failed."""
    while run.is_live:
        ensure_supervised(run)
        _await_end(run, None)
    state = run.state()
    return int(state["failed"]["status"]) if state.get("failed") else int(bool(state.get("cause")))


def _restore_supervisors(experiment: Experiment) -> None:
    """Restart the killed supervisors of runs on GPUs before `experiment` takes any.

    Such runs have processes on their GPUs and no locks; both come back together.
    """
    if wishes_of(experiment):
        for run in live_runs():
            if any(process.get("gpus") for process in run.plan()["processes"]):
                ensure_supervised(run)


def ensure_supervised(run: Run) -> None:
    """Give a live run whose supervisor is gone a new one."""
    if not run.is_live or run.is_supervised:
        return
    supervisor = SupervisorProcess(run)
    try:
        supervisor.answer()
    except ToolFailed:
        # One that was over before it was asked is none to complain about.
        if run.is_live:
            raise
    finally:
        supervisor.close()


def _new_run_id() -> str:
    """The time of the start to the microsecond: ids of later runs sort later."""
    now = time.time_ns()
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime(now // 10**9)) + f"{now % 10**9 // 1000:06d}"


def describe(plan: LocalPlan) -> str:
    """A plan in words, without the values of variables."""
    lines = [f"{plan.experiment}  at {plan.base_address}"]
    for process in plan.processes:
        name = f"{process.group}/{process.name}" if process.group else process.name
        given = f"  (GPUs {', '.join(process.gpus)})" if process.gpus else ""
        limits = ", ".join(f"{limit.resource} {limit.said} by {limit.by}" for limit in process.limits)
        given += f"  (at most {limits})" if limits else ""
        lines.append(f"  {name}: {' '.join(map(quote_if_needed, process.argv))}{given}")
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes)]) + "\n"


def quote_if_needed(argument: str) -> str:
    """`word` as one would type it in a shell."""
    return (
        argument if argument and all(char.isalnum() or char in "-_./=:,@%+" for char in argument) else quote(argument)
    )


def _await_end(run: Run, timeout_s: float | None) -> None:
    """Sleep until the supervisor of `run` is gone."""
    pid = int(run.state()["supervisor"])
    if not processes.is_alive(pid):
        return
    descriptor = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    if not ready:
        raise SymphError(f'experiment "{run.experiment}" did not end within {timeout_s:g} s')
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


class Server:
    """Starts the server of `run` at once; `start_all` then waits for it."""

    def __init__(self, run: Run, plan: LocalPlan) -> None:
        self._run = run
        self._error: Exception | None = None
        helper = helper_command(run.folder / "mounts.json")
        self._prefix = [*namespace_prefix(), *helper] if plan.has_namespace else []
        self._thread = threading.Thread(target=self._start)
        self._thread.start()

    def start_all(self) -> None:
        """Start everything by one call of tmux. Raises ToolFailed with what tmux said, ToolMissing without tmux."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        tmux_client.source_file(self._run.socket, self._run.folder / "up.conf")

    def kill(self) -> None:
        """End it and everything in it, however far it has come."""
        self._thread.join()
        panes: list[tmux_client.Pane] = []
        with contextlib.suppress(ToolFailed):
            # It answers when it has started all it was told to, also what nobody waits for any more.
            panes = tmux_client.list_panes(self._run.socket)
        sessions, server = {pane.pid for pane in panes}, panes[0].server if panes else 0
        kill_everything(self._run, sessions, has_namespace=bool(self._prefix), server=server)

    def _start(self) -> None:
        # What wrapper.sh forgets again; a process has its own exact environment.
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        try:
            tmux_client.start(self._run.socket, self._prefix, {**env, "TERM": "tmux-256color"})
        except ToolFailed as error:
            self._error = refusals_in(error) or error
        except Exception as error:
            self._error = error
