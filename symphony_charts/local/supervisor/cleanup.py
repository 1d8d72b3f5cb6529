"""`kill_everything` ends all programs of a run, and `remove_private` leaves nothing private on disk."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.mounts.helper import points_journal
from symphony_charts.local.mounts.mount_points import remove_points
from symphony_charts.local.run_identity import LIVENESS_LOCK
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.startup import log_line
from symphony_charts.system import processes, remover
from symphony_charts.system.file_locks import has_other_holders, hold_liveness_lock
from symphony_charts.system.process_identity import ProcessRecord, identify, is_running, read_stat, send_signal

__all__ = ["abandon", "await_server", "kill_everything", "remove_mount_points", "remove_private"]

# After KILL nothing should live; this long is waited for the kernel to agree, in seconds.
_KILL_S = 5.0
# tmux gets this long to read what was printed last, in seconds.
_READ_S = 10.0
# What writes the logs gets this long to write down what is still on its way, in seconds; a busy machine takes its time.
_WRITE_S = 20.0
# On file systems without locks a server that is being started gets this long to be there, in seconds.
_UNHEARD_S = 5.0


def kill_everything(run: Run, sessions: Sequence[processes.Session], server: ProcessRecord | None) -> list[int]:
    """Kill everything of `run`, its tmux server (at its start: `server`) last; the pids of what survives even that."""
    # One that was stopped by hand has to read what was printed, and to go.
    send_signal(server, signal.SIGCONT)
    answer = _server_pid(run)
    tmux = identify(answer) if answer else server if is_running(server) else None
    # Those that write logs stay in its session when it is gone.
    last_server = tmux or server
    writers = last_server.pid if last_server else 0

    def members() -> list[ProcessRecord]:
        return [record for record in run.members(sessions) if tmux is None or record.pid != tmux.pid]

    _kill(lambda: [record for record in members() if not _writes_logs(record, writers)])
    if answer and tmux is not None:
        _await_output(run, tmux)
    tmux_client.kill_server(run.socket)
    send_signal(tmux, signal.SIGKILL)
    deadline = time.monotonic() + _WRITE_S
    while (left := members()) and all(_writes_logs(record, writers) for record in left) and time.monotonic() < deadline:
        time.sleep(0.005)
    if left and all(_writes_logs(record, writers) for record in left):
        log_line(f"the ends of {len(left)} logs could not be written")
    return [record.pid for record in _kill(members)] if left else []


def await_server(run: Run, liveness_lock: int | None) -> None:
    """Wait until the tmux server of an aborted start answers, or there is none.

    It holds the liveness lock before it can be found; `liveness_lock` is this program's own descriptor of it.
    """
    deadline = time.monotonic() + (_UNHEARD_S if liveness_lock is None else tmux_client.START_S)
    while (
        (liveness_lock is None or has_other_holders(liveness_lock))
        and not _server_pid(run)
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)


def abandon(run: Run) -> None:
    """End and remove a run whose start was cut before it was whole: nothing but its tmux server can have been started.

    Raises OSError where its folder is not to be had.
    """
    await_server(run, hold_liveness_lock(run.folder / LIVENESS_LOCK))
    answer = _server_pid(run)
    server = identify(answer) if answer else None
    kill_everything(run, [], server)
    remove_mount_points(server)
    for entry in remover.remove(run.home, run.experiment, run.run_id):
        log_line(f"not removed: {entry}")


def _await_output(run: Run, tmux: ProcessRecord) -> None:
    """Wait until tmux has passed on all output: only then it marks a pane as dead."""
    deadline = time.monotonic() + _READ_S
    with contextlib.suppress(ToolFailed):
        while not all(pane.is_dead for pane in tmux_client.list_panes(run.socket)) and time.monotonic() < deadline:
            # Some builds lose the signal that tells them of a death (tmux/tmux #4559); once more does no harm.
            send_signal(tmux, signal.SIGCHLD)
            time.sleep(0.005)


def _kill(survivors: Callable[[], list[ProcessRecord]]) -> list[ProcessRecord]:
    """Kill until no process is found; return those that are left after a timeout."""
    deadline = time.monotonic() + _KILL_S
    while (left := survivors()) and time.monotonic() < deadline:
        processes.signal_all(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def _writes_logs(record: ProcessRecord, session: int) -> bool:
    """Return True for a program by which tmux writes a log: it ends by itself at the end of its input."""
    stat = read_stat(record.pid)
    return stat is None or stat.is_dead or stat.session == session


def _server_pid(run: Run) -> int | None:
    """Return the pid of the tmux server, 0 if there is none, None if it hangs."""
    with contextlib.suppress(ToolFailed):
        return tmux_client.server_pid(run.socket, timeout_s=2.0)
    return None


def remove_mount_points(server: ProcessRecord | None) -> list[str]:
    """Remove the mount points that only this run used, whose tmux server was `server`; those that stay, and why."""
    deadline = time.monotonic() + _KILL_S
    # It holds their locks until it is gone.
    while is_running(server) and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        return remove_points(str(points_journal()))
    except OSError as error:
        # A full disk, or one that is read-only by now; they stay noted, and the next run looks again.
        return [f"{points_journal()}: {error.strerror}"]


def remove_private(run: Run, count: int) -> None:
    """Remove what the processes saw, secrets first; plan, state and logs stay as the history of the run."""
    parts = ["files", "volumes", "scratch", "up.conf", "mounts.json", "wrapper.sh"]
    names = ("start", "mounts", "mounts.json", "plain", "limited", "go", "pid", "exit", "limit", "tries")
    parts += [f"p/{slot}/{name}" for slot in range(count) for name in names]
    try:
        left = remover.remove_parts(run.home, (run.experiment, run.run_id), parts)
    except NotFound as error:
        left = [str(error)]
    for entry in left:
        log_line(f"not removed: {entry}")
