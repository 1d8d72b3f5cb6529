"""`kill_everything` ends all programs of a run, and `remove_private` leaves nothing private on disk."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.local import tmux_client
from symphony_charts.local.mounts.helper import points_journal
from symphony_charts.local.mounts.points import remove_points
from symphony_charts.local.runs import Run
from symphony_charts.spec import variable_names
from symphony_charts.system import processes, remover

__all__ = ["kill_everything", "remove_mount_points", "remove_private"]

# After KILL nothing should live; this long is waited for the kernel to agree, in seconds.
_KILL_S = 5.0
# tmux gets this long to read what was printed last, in seconds.
_READ_S = 10.0
# What writes the logs gets this long to write down what is still on its way, in seconds; a busy machine takes its time.
_WRITE_S = 20.0


def kill_everything(run: Run, sessions: set[int], *, has_namespace: bool, server: int) -> list[int]:
    """Kill everything of `run`, its tmux server (`server` at its start) last; the pids of what survives even that."""
    cookie = f"{variable_names.RUN}={run.run_id}".encode()
    # The kernel names mounts by paths without links, and the state folder may be behind one.
    mount = str((run.folder / "scratch").resolve()) if has_namespace else ""
    # Where a namespace tells who belongs to the run, sessions need not, and their numbers may be others' by now.
    sessions = set() if has_namespace else sessions
    answer = _server_pid(run)
    tmux_pid = server if answer is None else answer
    # Those that write logs stay in its session when it is gone.
    writers = tmux_pid or server

    def members() -> list[int]:
        return [pid for pid in processes.members(mount, sessions, cookie) if pid != tmux_pid]

    _kill(lambda: [pid for pid in members() if not _writes_logs(pid, writers)])
    if answer is not None:
        _await_output(run, tmux_pid)
    tmux_client.kill_server(run.socket)
    processes.signal_process([pid for pid in [tmux_pid] if processes.is_alive(pid)], signal.SIGKILL)
    deadline = time.monotonic() + _WRITE_S
    while (left := members()) and all(_writes_logs(pid, writers) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.005)
    if left and all(_writes_logs(pid, writers) for pid in left):
        sys.stderr.write(f"the ends of {len(left)} logs could not be written\n")
    return _kill(members) if left else []


def _await_output(run: Run, tmux_pid: int) -> None:
    """Wait until tmux has handed on all that was printed: it gives a pane up only then."""
    deadline = time.monotonic() + _READ_S
    with contextlib.suppress(ToolFailed):
        while not all(pane.is_dead for pane in tmux_client.list_panes(run.socket)) and time.monotonic() < deadline:
            # Some builds lose the signal that tells them of a death (tmux/tmux #4559); once more does no harm.
            processes.signal_process([tmux_pid], signal.SIGCHLD)
            time.sleep(0.005)


def _kill(survivors: Callable[[], list[int]]) -> list[int]:
    """Kill until nothing is found any more; what is left when that takes too long."""
    deadline = time.monotonic() + _KILL_S
    while (left := survivors()) and time.monotonic() < deadline:
        processes.signal_process(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def _writes_logs(pid: int, session: int) -> bool:
    """Whether this is a program by which tmux writes a log, or was: it ends by itself when there is no more to come."""
    facts = processes.parent_and_session(pid)
    return facts is None or facts[1] == session


def _server_pid(run: Run) -> int | None:
    """The tmux server, 0 when there is none; None when it hangs and answers nobody."""
    with contextlib.suppress(ToolFailed):
        return tmux_client.server_pid(run.socket, timeout_s=2.0)
    return None


def remove_mount_points(server: int) -> list[str]:
    """Remove the mount points that only this run used, whose tmux server was `server`; those that stay, and why."""
    deadline = time.monotonic() + _KILL_S
    # It holds their locks until it is gone.
    while processes.is_alive(server) and time.monotonic() < deadline:
        time.sleep(0.005)
    return remove_points(str(points_journal()))


def remove_private(run: Run, count: int) -> None:
    """Remove what the processes saw, secrets first; plan, state and logs stay as the history of the run."""
    parts = ["files", "volumes", "scratch", "up.conf", "mounts.json", "wrapper.sh"]
    names = ("start", "mounts", "mounts.json", "plain", "limited", "go", "pid", "exit", "limit")
    parts += [f"p/{slot}/{name}" for slot in range(count) for name in names]
    try:
        left = remover.remove_parts(run.home, (run.experiment, run.run_id), parts)
    except NotFound as error:
        left = [str(error)]
    sys.stderr.write("".join(f"not removed: {entry}\n" for entry in left))
