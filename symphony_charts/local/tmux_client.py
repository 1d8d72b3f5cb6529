"""Control the private tmux server of a run by pane ids, and sessions on a user's server that show a run.

Such a session has the experiment's name, a shell, and a window per process that follows its log. It ends with the
experiment in its mark, and sessions without that mark are not touched.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from symphony_charts.errors import Conflict, SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import Run
from symphony_charts.system import subprocess_runner
from symphony_charts.system.subprocess_runner import Completed, run
from symphony_charts.system.user_folders import check_private

# A tmux server that has run out of descriptors answers no client; no call may hang on it.
_TIMEOUT_S = 10.0
# Timeout for the start of a server, in seconds.
START_S = 60.0
_FORMAT = "#{@slot}|#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_pipe}|#{pane_tty}|#{pid}"


class TmuxSilent(ToolFailed):
    """tmux did not answer in time, or its client could not be started; the server may still run the command later."""


class Pane(Struct, frozen=True):
    """One pane: its process slot, its id (``%3``), the pid of its program, if that has ended, and its terminal.

    `is_piped` is true if its output goes to a pipe; `server` is the pid of the tmux server.
    """

    slot: int
    id: str
    pid: int
    is_dead: bool
    is_piped: bool
    terminal: str
    server: int


def start(socket: Path, prefix: Sequence[str], env: dict[str, str], keep: Sequence[int] = ()) -> None:
    """Start a server that keeps running without sessions; `prefix` is put before its argv.

    The server sees only the variables in `env`, and has the descriptors `keep` open, unlike its panes. Raises
    ToolFailed with tmux's error, ToolMissing without tmux.
    """
    stay = ["start-server", ";", "set-option", "-s", "exit-empty", "off"]
    argv = [*prefix, "tmux", "-S", str(socket), "-f", "/dev/null", *stay]
    only = {**dict.fromkeys(os.environ), **env, "LC_ALL": None}
    _check(subprocess_runner.run(argv, env=only, timeout_s=START_S, check=False, keep=keep))


def need_tmux() -> None:
    """Raise ToolMissing if tmux is missing, before anything is started."""
    if shutil.which("tmux") is None:
        raise ToolMissing("tmux is not installed", "", "install tmux, then: symph doctor")


def source_file(socket: Path, commands: Path, timeout_s: float = START_S) -> None:
    """Run the tmux commands in a file on the server. Raises ToolFailed with the error of any of them."""
    _check(_tmux(socket, "source-file", str(commands), timeout_s=timeout_s))


def _check(done: Completed, what: str = "tmux did not start the run") -> None:
    if done.status or done.error_text.strip():
        raise done.failure(f"{what}: {done.error_text.strip() or done.status}")


def list_panes(socket: Path, timeout_s: float = _TIMEOUT_S) -> list[Pane]:
    """Return all panes of the server in order of creation, none without a server. Raises ToolFailed when it hangs."""
    done = _tmux(socket, "list-panes", "-a", "-F", _FORMAT, timeout_s=timeout_s)
    if done.status:
        return []
    rows = (line.split("|") for line in done.text.splitlines())
    return [
        Pane(int(slot), pane, int(pid), dead == "1", piped == "1", terminal, int(server))
        for slot, pane, pid, dead, piped, terminal, server in rows
        # Panes without a slot are the user's.
        if slot
    ]


def server_pid(socket: Path, timeout_s: float = _TIMEOUT_S) -> int:
    """Return the pid of the server, 0 if there is none. Raises ToolFailed if it hangs."""
    done = _tmux(socket, "display-message", "-p", "#{pid}", timeout_s=timeout_s)
    return int(done.text) if done.status == 0 and done.text.strip().isdigit() else 0


def respawn(socket: Path, pane: str, timeout_s: float = _TIMEOUT_S) -> None:
    """Run the pane's own program again. Raises ToolFailed with tmux's error, TmuxSilent if it does not answer."""
    _check(_tmux(socket, "respawn-pane", "-k", "-t", pane, timeout_s=timeout_s), f"tmux did not restart pane {pane}")


def pipe(socket: Path, pane: str, command: str, timeout_s: float = _TIMEOUT_S) -> None:
    """Pipe the further output of a pane to a shell command. Raises ToolFailed with the error of tmux."""
    _check(_tmux(socket, "pipe-pane", "-t", pane, command, timeout_s=timeout_s), f"tmux does not log pane {pane}")


def kill_server(socket: Path) -> None:
    """End the server and remove its socket."""
    # A hung server, or no tmux client: `kill_everything` ends it by its namespace or session.
    with contextlib.suppress(SymphError):
        _tmux(socket, "kill-server", timeout_s=3.0)
    socket.unlink(missing_ok=True)


def select(socket: Path, slot: int) -> None:
    for pane in list_panes(socket):
        if pane.slot == slot:
            _tmux(socket, "select-window", "-t", pane.id, ";", "select-pane", "-t", pane.id)


def is_terminal_of(socket: Path, terminal: str) -> bool:
    """Return True if a pane of the server has the terminal `terminal` (``/dev/pts/3``)."""
    return any(pane.terminal == terminal for pane in list_panes(socket))


def surrounding_server() -> Path | None:
    """Return the socket of the tmux server around this program, None outside of tmux."""
    socket = os.environ.get("TMUX", "").partition(",")[0]
    return Path(socket) if socket else None


def attach(socket: Path) -> None:
    """Become a tmux client of the server; returns only by an error."""
    argv, env = client_of(socket)
    os.execvpe("tmux", argv, env)  # noqa: S606 - there is no shell; this process becomes the client


def client_of(socket: Path) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment of a tmux client of the server, also inside of another tmux."""
    check_private(socket.parent)
    env = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    return ["tmux", "-S", str(socket), "-f", "/dev/null", "attach-session"], env


def _tmux(socket: Path, *words: str, timeout_s: float = _TIMEOUT_S) -> Completed:
    check_private(socket.parent)
    argv = ["tmux", "-S", str(socket), "-f", "/dev/null", *words]
    try:
        return subprocess_runner.run(argv, timeout_s=timeout_s, check=False)
    except ToolFailed as error:
        raise TmuxSilent(error.what, argv=argv, stderr=error.stderr) from error


# Symphony's first window of each session, with a shell.
DEFAULT_WINDOW = "__main__"
_FILE = "shown.json"
_MARK = "@symph_experiment"
# The number of lines that tmux itself keeps per window.
_LINES = 2000


def check_server(name: object) -> None:
    """Raise SpecError for an invalid name of a tmux server: it is the name of a file in tmux's folder."""
    if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
        what = f"{name!r} is not a valid name of a tmux server"
        raise SpecError.one(what, "server_name", "use letters, digits, - and _")


def refuse_taken(server: str, session: str) -> None:
    """Raise Conflict if the server has a session of that name that shows no experiment."""
    there = ["-L", server]
    if _user_tmux(there, "has-session", "-t", f"={session}").status == 0 and _marked(there, session) is None:
        what = f'the tmux server "{server}" has a session "{session}" that is not of symph'
        command = shlex.join(["tmux", *there, "rename-session", "-t", session])
        raise Conflict(what, next=f"rename it: {command} OTHER")


def show(server: str, session: str, shown: Run, windows: Iterable[tuple[str, Path]]) -> None:
    """Show a run in place of an earlier one of its experiment; `windows` are titles and logs."""
    there = ["-L", server]
    _hide(there, session, shown.experiment)
    words = ["new-session", "-d", "-P", "-F", "#{socket_path}", "-s", session, "-n", DEFAULT_WINDOW]
    words += [";", "set-option", "-t", f"={session}:", _MARK, shown.experiment]
    for title, log in windows:
        # It ends when the log is removed.
        follow = ["tail", "-n", str(_LINES), "--follow=name", str(log)]
        words += [";", "new-window", "-d", "-t", f"={session}:", "-n", title, *follow]
    done = _user_tmux(there, *words)
    if done.status:
        raise done.failure(f'the tmux server "{server}" cannot show "{session}": {done.error_text.strip()}')
    write_json(shown.folder / _FILE, {"socket": done.text.strip(), "session": session})


def hide(shown: Run) -> None:
    """End the session that shows a run, if there is one."""
    # Not shown, or damaged, which must not prevent its deletion.
    with contextlib.suppress(SymphError):
        data = read_json(shown.folder / _FILE)
        _hide(["-S", str(data.get("socket"))], str(data.get("session")), shown.experiment)


def _hide(there: list[str], session: str, experiment: str) -> None:
    if _marked(there, session) == experiment:
        _user_tmux(there, "kill-session", "-t", f"={session}")


def _marked(there: list[str], session: str) -> str | None:
    """Return the experiment in the mark of a session; None without session or mark."""
    done = _user_tmux(there, "show-options", "-qv", "-t", f"={session}:", _MARK)
    return done.text.strip() or None if done.status == 0 else None


def _user_tmux(there: list[str], *words: str) -> Completed:
    # The server and the shells on it belong to the user.
    env = {"LC_ALL": None, **os.environ, "TMUX": None, "TMUX_PANE": None}
    return run(["tmux", *there, "-f", "/dev/null", *words], timeout_s=10.0, env=env, check=False)
