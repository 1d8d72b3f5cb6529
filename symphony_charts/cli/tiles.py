"""`symph attach --tile`: logs of processes side by side, on a private tmux server or in the user's session."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import libtmux
from libtmux.exc import LibTmuxException

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogQuery
from symphony_charts.cli import experiments, output
from symphony_charts.cli.cockpit_rows import head_of
from symphony_charts.errors import NotFound, SymphError, ToolFailed, UsageError
from symphony_charts.formats.printable import printable_line, terminal_line
from symphony_charts.local import tmux_client
from symphony_charts.system.user_folders import make_runtime_dir

# Number of earlier lines that a tile shows.
_TAIL = 500


class Feed:
    """Pipes in `folder`, one per instance in `paths` of an experiment.

    A reader sees end-of-file when this program ends, however it ends, so no tile outlives it.
    """

    def __init__(self, watcher: Watcher, name: str, paths: Sequence[str], folder: Path) -> None:
        self._watcher, self._name = watcher, name
        self.pipes = {path: folder / str(number) for number, path in enumerate(paths)}
        for pipe in self.pipes.values():
            os.mkfifo(pipe, 0o600)

    def start(self) -> None:
        """Start copying earlier and new lines into the pipes; of control sequences only colours are kept."""
        for path, pipe in self.pipes.items():
            threading.Thread(target=self._hand_on, args=(path, pipe), daemon=True).start()

    def _hand_on(self, path: str, pipe: Path) -> None:
        query = LogQuery(instances=(path,), tail=_TAIL, follow=True)
        # Left open after the last line, so that the tile stays. A closed tile ends this with BrokenPipeError.
        descriptor = os.open(pipe, os.O_WRONLY)
        with contextlib.suppress(BrokenPipeError):
            try:
                for line in self._watcher.logs(self._name, query):
                    _write(descriptor, terminal_line(line.text.removesuffix("\n")))
            except Exception as error:
                # Show it in the tile: the traceback of a thread would be hidden behind the tiles.
                what = error.what if isinstance(error, SymphError) else f"{type(error).__name__}: {error}"
                _write(descriptor, f"symph: {what}")


def _write(descriptor: int, text: str) -> None:
    rest = f"{text}\n".encode("utf-8", "replace")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


_MOST = 16
# Minimum size of a usable tile in cells, without its border line.
_WIDTH, _HEIGHT = 24, 3
_COLORS = {"running": "green", "succeeded": "green", "failed": "red", "lost": "red", "damaged": "red"}


def capacity(width: int, height: int) -> int:
    """Return the number of tiles that fit in a window of that size; at least 1."""
    return max(1, min(_MOST, (width // _WIDTH) * (height // (_HEIGHT + 1))))


def choose(instances: Sequence[InstanceStatus], most: int) -> list[InstanceStatus]:
    """Return at most `most` instances, failed ones first."""
    return sorted(instances, key=lambda one: one.phase not in ("failed", "lost"))[:most]


def literal(text: str) -> str:
    """Escape `text` for a tmux format, so that it sets no style and ends no command."""
    return f" {printable_line(text).replace('#', '##')} "


def status_line(status: ExperimentStatus, left_out: int, now: float) -> str:
    parts = [f"{left_out} more are not shown"] if left_out else []
    return "   ".join([*parts, head_of(status, {}, now)])


def window_name(status: ExperimentStatus) -> str:
    """Return the status in the few cells of a window name."""
    processes = [one for one in status.instances if not one.is_step]
    well = sum(one.ready or one.phase == "succeeded" for one in processes)
    failed = sum(one.phase == "failed" for one in processes)
    return f"{status.name} {well}/{len(processes)}" + (f" {failed} failed" if failed else "")


# Options are set on this window and its panes only, so that the user's session does not change. Texts about processes
# are values of pane options: tmux shows such a value as it is, but would run commands found in a format.

_FORMAT = "#{?pane_active,#[reverse],}#[fg=#{@symph_color}]#{@symph_title}#[default]"
# Keys and settings of the private server; no other key does anything there.
_SETTINGS = r"""
unbind-key -a -T root
unbind-key -a -T prefix
bind-key -n Left select-pane -L
bind-key -n Right select-pane -R
bind-key -n Up select-pane -U
bind-key -n Down select-pane -D
bind-key -n Tab select-pane -t :.+
bind-key -n z resize-pane -Z
bind-key -n Space next-layout
bind-key -n PPage copy-mode -eu
bind-key -n / copy-mode \; command-prompt -p search: "send-keys -X search-backward '%%%'"
bind-key -n MouseDown1Pane select-pane -t =
bind-key -n DoubleClick1Pane resize-pane -Z -t =
bind-key -n MouseDrag1Pane copy-mode -M
bind-key -n MouseDrag1Border resize-pane -M
bind-key -n WheelUpPane copy-mode -e -t =
bind-key -n a set-option -sF @symph_wish "#{@symph_path}" \; detach-client
bind-key -n q detach-client
bind-key -n d detach-client
bind-key -n C-c detach-client
bind-key -T prefix d detach-client
set-option -g mouse on
set-option -g status-position bottom
set-option -g status 2
set-option -g status-format[0] "#{@symph_status}"
set-option -g status-format[1] " #{?#{e|<:#{client_width},72},a terminal  / search  z alone  q leave,\
arrows or mouse: choose  z: alone  /: search  a: its terminal  q: leave} "
set-option -g status-style reverse
set-option -g escape-time 10
"""


class Tiles:
    """The panes in `window` by instance path; `left_out` is the number of instances without a pane."""

    def __init__(self, window: libtmux.Window, panes: Mapping[str, libtmux.Pane], left_out: int) -> None:
        self._window, self._panes, self._left_out = window, panes, left_out
        self._said: dict[tuple[str, ...], str] = {}

    @property
    def is_open(self) -> bool:
        return self._window.server.cmd("list-panes", "-t", str(self._window.window_id)).returncode == 0

    def show(self, status: ExperimentStatus, now: float) -> None:
        """Update titles, states and the status line if they changed; at most one call of tmux."""
        wanted: dict[tuple[str, ...], str] = {}
        for instance in status.instances:
            pane = self._panes.get(instance.path)
            if pane is not None:
                at = ("set-option", "-p", "-t", str(pane.pane_id))
                title, color = (*at, "@symph_title"), (*at, "@symph_color")
                wanted[title] = literal(f"{instance.path}  {instance.state}")
                wanted[color] = _COLORS.get(instance.phase, "yellow")
        window = str(self._window.window_id)
        wanted["set-option", "-w", "-t", window, "@symph_status"] = literal(status_line(status, self._left_out, now))
        wanted["rename-window", "-t", window] = literal(window_name(status)).strip()
        words: list[str] = []
        for command, value in wanted.items():
            if self._said.get(command) != value:
                words += [*([";"] if words else []), *command, value]
        if words and self._window.server.cmd(*words).returncode == 0:
            # Otherwise a pane was closed by hand: repeat all commands next time.
            self._said = wanted

    def wish(self) -> str:
        """Return the path of the instance that the key `a` selected, and clear it; empty if none."""
        server = self._window.server
        answer = server.cmd("show-options", "-sqv", "@symph_wish").stdout
        server.cmd("set-option", "-su", "@symph_wish")
        return answer[0] if answer else ""

    def close(self) -> None:
        self._window.server.cmd("kill-window", "-t", str(self._window.window_id))


def on_own_server(socket: Path, pipes: Mapping[str, Path], left_out: int, width: int, height: int) -> Tiles:
    """Return tiles in the only window of a new server, for a terminal of that size; the server ends with them."""
    server = _server(socket, config_file="/dev/null")
    first, *_ = pipes.values()
    settings = socket.with_name(f"{socket.name}.conf")
    settings.write_text(_SETTINGS)
    with ExitStack() as undo, _errors():
        session = server.new_session("tiles", window_command=_command(first), x=width, y=height)
        # If this fails, stop the server: its readers would wait forever for writers of their pipes.
        undo.callback(server.kill)
        tiles = _fill(session.windows[0], pipes, left_out)
        _do(server, "source-file", str(settings))
        undo.pop_all()
    return tiles


def in_session(socket: Path, pane: str, pipes: Mapping[str, Path], left_out: int) -> Tiles:
    """Return tiles in a new, active window of the session that contains `pane`."""
    server = _server(socket)
    first, *_ = pipes.values()
    with ExitStack() as undo, _errors():
        session = libtmux.Pane.from_pane_id(server, pane).session
        window = session.new_window("symph", window_shell=_command(first), attach=True)
        undo.callback(window.kill)
        tiles = _fill(window, pipes, left_out)
        undo.pop_all()
    return tiles


def _server(socket: Path, *, config_file: str | None = None) -> libtmux.Server:
    """Return the server with a UTF-8 locale: otherwise tmux replaces libtmux's field separator by `_`."""
    said = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if "utf" not in said.lower():
        os.environ["LC_ALL"] = "C.UTF-8"
    return libtmux.Server(socket_path=str(socket), config_file=config_file)


def _fill(window: libtmux.Window, pipes: Mapping[str, Path], left_out: int) -> Tiles:
    own = {"pane-border-status": "top", "pane-border-format": _FORMAT, "remain-on-exit": "off"}
    for name, value in own.items():
        _do(window.server, "set-option", "-w", "-t", str(window.window_id), name, value)
    panes: dict[str, libtmux.Pane] = {}
    pane = window.panes[0]
    for path, pipe in pipes.items():
        if panes:
            pane = pane.split(shell=_command(pipe), attach=False)
        # Even out after each split: repeated halving soon leaves no room for another pane.
        window.select_layout("tiled")
        _do(window.server, "set-option", "-p", "-t", str(pane.pane_id), "@symph_path", path)
        panes[path] = pane
    return Tiles(window, panes, left_out)


def _command(pipe: Path) -> str:
    return f"exec cat {shlex.quote(os.fspath(pipe))}"


def _do(server: libtmux.Server, *words: str) -> str:
    done = server.cmd(*words)
    if done.returncode:
        raise ToolFailed(f"tmux refused {words[0]}: {' '.join(done.stderr)}")
    return "\n".join(done.stdout)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except LibTmuxException as error:
        # The first argument is tmux's message, as text or lines; libtmux appends its whole record of the pane.
        said = error.args[0] if error.args else error
        words = "; ".join(said) if isinstance(said, list) else str(said)
        raise ToolFailed(f"tmux could not show the tiles: {words}", next="name the processes after --tile") from error


# Seconds between two looks at the states.
_LOOK_S = 1.0


def run_tiles(args: argparse.Namespace) -> int:
    """Show tiles until the user leaves; the experiment keeps running, or has ended already."""
    tmux_client.need_tmux()
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    wanted = _wanted(args, status)
    outer = tmux_client.surrounding_server()
    if args.into_current:
        pane = os.environ.get("TMUX_PANE", "")
        if outer is None or not pane:
            raise UsageError("this terminal is not inside of tmux", next=f"symph attach {status.name} --tile")
        with _errors():
            size = _do(_server(outer), "display-message", "-p", "-t", pane, "#{window_width} #{window_height}")
        width, height = map(int, size.split())
    else:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("attach needs a terminal", next=f"symph logs -f {status.name}")
        if outer is not None and not args.nested:
            step = f"symph attach {status.name} --tile --into-current, or --nested"
            raise UsageError("this terminal is inside of tmux, which would take the keys of the tiles", next=step)
        width, height = shutil.get_terminal_size()
    chosen = choose(wanted, capacity(width, height))
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
            tiles = in_session(outer, pane, feed.pipes, left_out)
        else:
            tiles = on_own_server(folder / "tmux", feed.pipes, left_out, width, height)
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
    """Return the instances that the arguments name, without duplicates; by default all except steps."""
    named = [one for word in args.tile for one in experiments.some_instances(status, word)]
    wanted = list(dict.fromkeys(named)) or [one for one in status.instances if not one.is_step]
    if not wanted:
        raise NotFound(f"{status.name} has no processes yet", next=f"symph status {status.name}")
    return wanted


def _keep_up(watcher: Watcher, name: str, tiles: Tiles) -> None:
    while tiles.is_open:
        # Keep the last state of an experiment that is gone.
        with contextlib.suppress(SymphError):
            tiles.show(watcher.describe(name, events=False), time.time())
        time.sleep(_LOOK_S)


def _stay(args: argparse.Namespace, watcher: Watcher, name: str, socket: Path, tiles: Tiles) -> None:
    """Attach to the tiles until the user leaves; for the key `a`, open the process's terminal and come back."""
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
    """Turn SIGTERM and SIGHUP into SystemExit inside the context, so that cleanup runs."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        # Ctrl-C leaves a window in the user's own session.
        pass
    finally:
        for number, old in before.items():
            signal.signal(number, old)
