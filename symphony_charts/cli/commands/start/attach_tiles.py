"""`symph attach --tile`: the lines of processes side by side, in a tmux server of its own or in the user's session."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli import experiments, output
from symphony_charts.cli.tiles import titles, window
from symphony_charts.cli.tiles.feed import Feed
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.local import tmux_client
from symphony_charts.system.user_folders import make_runtime_dir

__all__ = ["run_tiles"]

# How often states are looked at, in seconds.
_LOOK_S = 1.0


def run_tiles(args: argparse.Namespace) -> int:
    """Show tiles until the user leaves them; the experiment runs on, or has ended long ago."""
    tmux_client.need_tmux()
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    wanted = _wanted(args, status)
    outer = tmux_client.surrounding_server()
    if args.into_current:
        pane = os.environ.get("TMUX_PANE", "")
        if outer is None or not pane:
            raise UsageError("this terminal is not inside of tmux", next=f"symph attach {status.name} --tile")
        width, height = window.size_of(outer, pane)
    else:
        _check_terminal(args, status, outer)
        width, height = shutil.get_terminal_size()
    chosen = titles.choose(wanted, titles.capacity(width, height))
    left_out = len(wanted) - len(chosen)
    if left_out:
        names = ", ".join(one.path for one in wanted if one not in chosen)
        output.warn(
            f"there is room for {len(chosen)} of {len(wanted)} processes", f"name those you want: {names[:200]}"
        )
    with _signals(), tempfile.TemporaryDirectory(prefix="tiles-", dir=make_runtime_dir()) as name:
        folder = Path(name)
        feed = Feed(watcher, status.name, [one.path for one in chosen], folder)
        if outer is not None and args.into_current:
            tiles = window.in_session(outer, pane, feed.pipes, left_out)
        else:
            tiles = window.on_own_server(folder / "tmux", feed.pipes, left_out, width, height)
        try:
            tiles.show(status, time.time())
            feed.start()
            if args.into_current:
                output.note(f"the tiles of {status.name} are in a new window of tmux; Ctrl-C here closes it")
                _keep_up(watcher, status.name, tiles)
            else:
                threading.Thread(target=_keep_up, args=(watcher, status.name, tiles), daemon=True).start()
                _stay(args, watcher, status.name, folder / "tmux", tiles)
        finally:
            tiles.close()
    return 0


def _wanted(args: argparse.Namespace, status: ExperimentStatus) -> list[InstanceStatus]:
    """The instances that the words mean, each once; without words all but steps."""
    named = [one for word in args.tile for one in experiments.some_instances(status, word)]
    wanted = list(dict.fromkeys(named)) or [one for one in status.instances if not one.is_step]
    if not wanted:
        raise NotFound(f"{status.name} has no processes yet", next=f"symph describe {status.name}")
    return wanted


def _check_terminal(args: argparse.Namespace, status: ExperimentStatus, outer: Path | None) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal", next=f"symph logs -f {status.name}")
    if outer is not None and not args.nested:
        step = f"symph attach {status.name} --tile --into-current, or --nested"
        raise UsageError("this terminal is inside of tmux, which would take the keys of the tiles", next=step)


def _keep_up(watcher: Watcher, name: str, tiles: window.Tiles) -> None:
    """Keep states up to date until the window is closed."""
    while tiles.is_open:
        # What is gone stays on the screen as it was last.
        with contextlib.suppress(SymphError):
            tiles.show(watcher.describe(name, events=False), time.time())
        time.sleep(_LOOK_S)


def _stay(args: argparse.Namespace, watcher: Watcher, name: str, socket: Path, tiles: window.Tiles) -> None:
    """Be the client of the tiles until it is left; the key `a` goes to the terminal of a process and comes back."""
    argv, env = tmux_client.client_of(socket)
    while True:
        subprocess.run(argv, env=env, check=False)
        path = tiles.wish()
        if not path:
            return
        if watcher.backend == "tmux":
            words = ["attach", name, "-p", path, *(["--nested"] if args.nested else [])]
        else:
            words = ["ssh", path, name, *experiments.place_flags(args)]
        if subprocess.run([sys.executable, "-m", "symphony_charts", *words], check=False).returncode:
            output.note("press Enter to go back to the tiles")
            sys.stdin.readline()


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """While it is open, SIGTERM and SIGHUP end the program as an error does: what was made is removed."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        # The way to leave a window of one's own session.
        pass
    finally:
        for number, old in before.items():
            signal.signal(number, old)
