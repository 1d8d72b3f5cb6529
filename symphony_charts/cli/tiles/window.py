"""`Tiles` is a window of tmux with a pane for each instance: on a server of its own, or in somebody's session.

Options are set on the window and its panes alone, so that a session of the user's is left as it was. What is said of
processes stands in options of the panes: tmux shows the value of an option as it is, and would run what it
found in a format.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import libtmux
from libtmux.exc import LibTmuxException

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.cli.tiles import titles
from symphony_charts.errors import ToolFailed

__all__ = ["Tiles", "in_session", "on_own_server", "size_of"]

_FORMAT = "#{?pane_active,#[reverse],}#[fg=#{@symph_color}]#{@symph_title}#[default]"
_HINTS = " arrows, mouse: choose  z: alone  /: search  a: its terminal  q: leave "
_LEAVE = ("q", "d", "C-c")
# Keys of our own server; no other key does anything there.
_KEYS: dict[str, tuple[str, ...]] = {
    "Left": ("select-pane", "-L"),
    "Right": ("select-pane", "-R"),
    "Up": ("select-pane", "-U"),
    "Down": ("select-pane", "-D"),
    "Tab": ("select-pane", "-t", ":.+"),
    "z": ("resize-pane", "-Z"),
    "Space": ("next-layout",),
    "PPage": ("copy-mode", "-eu"),
    "/": ("copy-mode", ";", "command-prompt", "-p", "search:", "send-keys -X search-backward '%%%'"),
    "MouseDown1Pane": ("select-pane", "-t", "="),
    "DoubleClick1Pane": ("resize-pane", "-Z", "-t", "="),
    "MouseDrag1Pane": ("copy-mode", "-M"),
    "MouseDrag1Border": ("resize-pane", "-M"),
    "WheelUpPane": ("copy-mode", "-e", "-t", "="),
    "a": ("set-option", "-sF", "@symph_wish", "#{@symph_path}", ";", "detach-client"),
    **dict.fromkeys(_LEAVE, ("detach-client",)),
}


class Tiles:
    """The panes by the paths of their instances, in `window`; `left_out` have no pane."""

    def __init__(self, window: libtmux.Window, panes: Mapping[str, libtmux.Pane], left_out: int) -> None:
        self._window, self._panes, self._left_out = window, panes, left_out
        self._said: dict[tuple[str, ...], str] = {}

    @property
    def is_open(self) -> bool:
        """Whether the window is there."""
        return self._window.server.cmd("list-panes", "-t", str(self._window.window_id)).returncode == 0

    def show(self, status: ExperimentStatus, now: float) -> None:
        """Write names, states and the status line anew where they have changed; one call of tmux, mostly none."""
        wanted: dict[tuple[str, ...], str] = {}
        for instance in status.instances:
            pane = self._panes.get(instance.path)
            if pane is not None:
                at = ("set-option", "-p", "-t", str(pane.pane_id))
                title, color = (*at, "@symph_title"), (*at, "@symph_color")
                wanted[title] = titles.literal(titles.title_of(instance))
                wanted[color] = titles.color_of(instance)
        window = str(self._window.window_id)
        line = titles.status_line(status, self._left_out, now)
        wanted["set-option", "-w", "-t", window, "@symph_status"] = titles.literal(line)
        wanted["rename-window", "-t", window] = titles.literal(titles.window_name(status)).strip()
        words: list[str] = []
        for command, value in wanted.items():
            if self._said.get(command) != value:
                words += [*([";"] if words else []), *command, value]
        if words and self._window.server.cmd(*words).returncode == 0:
            # Else a pane was closed by hand: what tmux did before that is said again.
            self._said = wanted

    def wish(self) -> str:
        """The path of the instance to whose terminal the key `a` is to lead, once; mostly empty."""
        server = self._window.server
        answer = server.cmd("show-options", "-sqv", "@symph_wish").stdout
        server.cmd("set-option", "-su", "@symph_wish")
        return answer[0] if answer else ""

    def close(self) -> None:
        """Close the window, if it is there."""
        self._window.server.cmd("kill-window", "-t", str(self._window.window_id))


def on_own_server(socket: Path, pipes: Mapping[str, Path], left_out: int, width: int, height: int) -> Tiles:
    """Tiles in the only window of a new server, which ends with them, for a terminal of that size."""
    server = _server(socket, config_file="/dev/null")
    first, *_ = pipes.values()
    with ExitStack() as undo, _errors():
        session = server.new_session("tiles", window_command=_command(first), x=width, y=height)
        # Panes of half a window would wait for ever for who writes to their pipes.
        undo.callback(server.kill)
        tiles = _fill(session.windows[0], pipes, left_out)
        for table in ("root", "prefix"):
            _do(server, "unbind-key", "-a", "-T", table)
        for key, command in _KEYS.items():
            _do(server, "bind-key", "-n", key, *(r"\;" if word == ";" else word for word in command))
        _do(server, "bind-key", "-T", "prefix", "d", "detach-client")
        settings = {
            "mouse": "on",
            "status-position": "bottom",
            "status": "2",
            "status-format[0]": "#{@symph_status}",
            "status-format[1]": _HINTS,
            "status-style": "reverse",
            "escape-time": "10",
        }
        for name, value in settings.items():
            _do(server, "set-option", "-g", name, value)
        undo.pop_all()
    return tiles


def in_session(socket: Path, pane: str, pipes: Mapping[str, Path], left_out: int) -> Tiles:
    """Tiles in a new window of the session of a pane of that server, which is shown there."""
    server = _server(socket)
    first, *_ = pipes.values()
    with ExitStack() as undo, _errors():
        session = libtmux.Pane.from_pane_id(server, pane).session
        window = session.new_window("symph", window_shell=_command(first), attach=True)
        undo.callback(window.kill)
        tiles = _fill(window, pipes, left_out)
        undo.pop_all()
    return tiles


def size_of(socket: Path, pane: str) -> tuple[int, int]:
    """Width and height of the window of a pane."""
    with _errors():
        server = _server(socket)
        words = _do(server, "display-message", "-p", "-t", pane, "#{window_width} #{window_height}")
    width, height = words.split()
    return int(width), int(height)


def _server(socket: Path, *, config_file: str | None = None) -> libtmux.Server:
    """The server, asked as one who reads UTF-8: others get _ for the sign by which libtmux tells fields apart."""
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
        # Evened out after each: a window whose panes are halved has soon no room for another.
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
        # The first argument is what tmux said, as text or lines; behind it libtmux puts all that it knows of the pane.
        said = error.args[0] if error.args else error
        words = "; ".join(said) if isinstance(said, list) else str(said)
        raise ToolFailed(f"tmux could not show the tiles: {words}", next="name the processes after --tile") from error
