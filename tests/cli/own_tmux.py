"""A user's tmux: a terminal to type in and to read from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from symphony_charts.local import up
from symphony_charts.local.runs import live_runs
from tests.local.runs import until


class Own:
    """The user's tmux server, with a shell in its only pane and an attached client."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "own.sock"
        (folder / "symph").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m symphony_charts "$@"\n')
        (folder / "symph").chmod(0o755)
        # The terminal sets the size, not LINES and COLUMNS of a test runner.
        kept = {key: value for key, value in os.environ.items() if key not in ("LINES", "COLUMNS")}
        self.env = {**kept, "PATH": f"{folder}:{kept['PATH']}", "PS1": "$ ", "TERM": "xterm-256color"}
        self.tmux("new-session", "-d", "-x", "150", "-y", "50", "-s", "mine", "sh")
        # `script` gives the client a terminal.
        attach = f"tmux -S {self.socket} -f /dev/null attach"
        self.client = subprocess.Popen(
            ["script", "-qec", attach, "/dev/null"],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self.tmux("list-clients") != "")

    def tmux(self, *words: str) -> str:
        argv = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *words]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=20, check=False).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-t", "mine", "-l", text)
        self.tmux("send-keys", "-t", "mine", "Enter")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "mine")

    def window(self) -> str:
        """Return the current window of the client's session, with borders."""
        return self.tmux("capture-pane", "-p", "-t", "mine")

    def seen(self, *texts: str) -> None:
        """Wait until the window shows these texts."""
        try:
            until(lambda: all(text in self.window() for text in texts))
        except AssertionError:
            pytest.fail(f"not all of {texts} is on the screen:\n{self.window()}")

    def close(self) -> None:
        self.tmux("kill-server")
        assert self.client.stdin is not None
        self.client.stdin.close()
        self.client.terminate()
        self.client.wait(timeout=20)


@contextmanager
def own_tmux(folder: Path, need_tool: Callable[[str], str]) -> Iterator[Own]:
    """Yield the user's tmux; afterwards end all runs, and close it."""
    need_tool("tmux")
    need_tool("script")
    one = Own(folder)
    yield one
    for run in live_runs():
        up.down(run)
    one.close()
