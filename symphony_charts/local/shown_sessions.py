"""A tmux server of the user's shows a run that is known to a launcher by the server's name.

Processes run on the private server of their run. A session here has the experiment's name, a shell, and a window for
each process, which follows what that writes; it ends with the experiment that it is marked with, and no session without
that mark is touched.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict, SpecError, SymphError
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import Run
from symphony_charts.system.subprocess_runner import Completed, run

__all__ = ["DEFAULT_WINDOW", "ShownSession", "check_server", "refuse_taken", "sessions_of", "show"]

# Symphony's first window of each session, with a shell.
DEFAULT_WINDOW = "__main__"
_FILE = "shown.json"
_MARK = "@symph_experiment"
# As many lines as tmux itself keeps of a window.
_LINES = 2000


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session of a server that shows an experiment, as its runs call it."""

    socket: str
    session: str
    experiment: str

    def end(self) -> None:
        """End the session, if it is there and shows the experiment."""
        _hide(["-S", self.socket], self.session, self.experiment)


def check_server(name: object) -> None:
    """Raise SpecError for what is no name of a tmux server: it is that of a file in tmux's folder."""
    if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
        raise SpecError.one(
            f"{name!r} cannot be the name of a tmux server", "server_name", "use letters, digits, - and _"
        )


def refuse_taken(server: str, session: str) -> None:
    """Raise Conflict where the server has a session of that name that shows no experiment."""
    there = ["-L", server]
    if _tmux(there, "has-session", "-t", f"={session}").status == 0 and _marked(there, session) is None:
        what = f'the tmux server "{server}" has a session "{session}" that shows no experiment'
        raise Conflict(
            what, next=f"rename it: {shlex.join(['tmux', '-L', server, 'rename-session', '-t', session])} OTHER"
        )


def show(server: str, session: str, shown: Run, windows: Iterable[tuple[str, Path]]) -> None:
    """Show a run in place of an earlier one of its experiment; `windows` are titles and logs."""
    there = ["-L", server]
    _hide(there, session, shown.experiment)
    words = ["new-session", "-d", "-P", "-F", "#{socket_path}", "-s", session, "-n", DEFAULT_WINDOW]
    words += [";", "set-option", "-t", f"={session}:", _MARK, shown.experiment]
    for title, log in windows:
        # It ends where the log is removed.
        follow = ["tail", "-n", str(_LINES), "--follow=name", str(log)]
        words += [";", "new-window", "-d", "-t", f"={session}:", "-n", title, *follow]
    done = _tmux(there, *words)
    if done.status:
        raise done.failure(f'the tmux server "{server}" does not show "{session}": {done.error_text.strip()}')
    write_json(shown.folder / _FILE, {"socket": done.text.strip(), "session": session})


def sessions_of(runs: Iterable[Run]) -> list[ShownSession]:
    """Return the sessions that show runs, as far as their folders say."""
    found = []
    for shown in runs:
        try:
            data = read_json(shown.folder / _FILE)
        except SymphError:  # nothing shows it, or it is damaged, which keeps nobody from deleting it
            continue
        found.append(ShownSession(str(data.get("socket")), str(data.get("session")), shown.experiment))
    return found


def _hide(there: list[str], session: str, experiment: str) -> None:
    if _marked(there, session) == experiment:
        _tmux(there, "kill-session", "-t", f"={session}")


def _marked(there: list[str], session: str) -> str | None:
    """Return the experiment in the mark of a session; None without session or mark."""
    done = _tmux(there, "show-options", "-qv", "-t", f"={session}:", _MARK)
    return done.text.strip() or None if done.status == 0 else None


def _tmux(there: list[str], *words: str) -> Completed:
    # The server is the user's, as are the shells on it.
    env = {"LC_ALL": None, **os.environ, "TMUX": None, "TMUX_PANE": None}
    return run(["tmux", *there, "-f", "/dev/null", *words], timeout_s=10.0, env=env, check=False)
