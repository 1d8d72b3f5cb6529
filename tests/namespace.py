"""Runs a program on a private machine: its mounts, signals and removals affect nothing outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# The prefix of a command that may mount, signal and remove: private mounts, pids and, for ordinary users, root.
ALONE = ("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--mount", "--pid", "--fork")
_ROOT = Path(__file__).resolve().parents[1]


def run_alone(module: str, *words: str, timeout_s: float = 120.0) -> str:
    """Return the output of `python -m MODULE WORDS` there; on failure, fail with its stderr."""
    argv = [*ALONE, "--mount-proc", "--propagation", "private", sys.executable, "-m", module, *words]
    done = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
