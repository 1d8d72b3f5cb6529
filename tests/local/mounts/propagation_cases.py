"""Mounts that a machine of canaries gains and loses while a process runs; print what the process sees of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from symphony_charts.local.mounts.helper import helper_command
from tests.local.mounts.canary_machine import ORDINARY, as_ordinary

_PREFIX = """
import json
from symphony_charts.local.machine.machine import namespace_prefix
print(json.dumps(namespace_prefix()))
"""
# In its own namespace below the run's, like a process with mounts of its own.
_WATCH = "echo ready; read _; cat /mnt/disk/late/f; cat /home/me/data/f 2>&1; ls -d /data"


def main(user: str) -> None:
    """Mount one disk and unmount another on the machine, while a process of `user` sees a volume at /data."""
    state = Path("/scratch/state")
    (state / "volume").mkdir(parents=True)
    row = {"source": str(state / "volume"), "at": "/data", "read_only": False}
    plan = {"scratch": str(state / "scratch"), "journal": str(state / "points"), "targets": [row], "prepare": []}
    (state / "plan").write_text(json.dumps(plan))
    _run("chown", "-R", f"{ORDINARY}:{ORDINARY}", str(state))
    _run("mount", "--make-rshared", "/")
    ask = [*as_ordinary(user), sys.executable, "-c", _PREFIX]
    root = Path(__file__).resolve().parents[3]
    prefix = json.loads(subprocess.run(ask, cwd=root, capture_output=True, text=True, check=True).stdout)
    own = next(line for line in (root / "local/wrapper.sh").read_text().splitlines() if "exec unshare" in line)
    words = own.split()[1 : own.split().index("/bin/sh")]
    argv = [*as_ordinary(user), *prefix, *helper_command(state / "plan"), *words, "/bin/sh", "-c", _WATCH]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdin is not None
        assert watching.stdout is not None
        assert watching.stdout.readline() == "ready\n"
        _run("mkdir", "/mnt/disk/late")
        _run("mount", "-t", "tmpfs", "late", "/mnt/disk/late")
        Path("/mnt/disk/late/f").write_text("late\n")
        _run("umount", "/home/me/data")
        watching.stdin.write("\n")
        watching.stdin.close()
        # The process's own mounts are not visible on the machine.
        seen = watching.stdout.read().splitlines()
    mounts = Path("/proc/self/mountinfo").read_text()
    print(json.dumps({"seen": seen, "leaked": "/scratch/state/scratch" in mounts or " /data " in mounts}))  # noqa: T201


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)
