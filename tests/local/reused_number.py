"""A stranger gets the process number of a log viewer that its wrapper has lost. Run it alone (`tests.namespace`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def viewers(wrapper: int) -> list[int]:
    children = Path(f"/proc/{wrapper}/task/{wrapper}/children").read_text().split()
    return [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "tail\n"]


def main(wrapper: str, folder: str) -> None:
    process = Path(folder) / "p" / "0"
    process.mkdir(parents=True)
    for name, text in (("plain", ""), ("log", ""), ("exit", "?  \n"), ("start", "read -r _ <over\n")):
        (process / name).write_text(text)
    os.mkfifo(process / "over")
    with subprocess.Popen(["/bin/sh", wrapper, str(process)], stdout=subprocess.DEVNULL) as shell:
        until(lambda: viewers(shell.pid))
        [viewer] = viewers(shell.pid)
        os.kill(viewer, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{viewer}").exists())
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(viewer - 1))
        with subprocess.Popen(["sleep", "60"]) as stranger:
            assert stranger.pid == viewer
            (process / "over").write_text("\n")
            assert shell.wait(30) == 0
            assert stranger.poll() is None
            stranger.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
