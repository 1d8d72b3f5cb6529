"""A program runs on a machine of its own: what it mounts, signals or removes is nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# What goes before a command that may mount, signal and remove: its own mounts, pids and, for ordinary users, root.
ALONE = ("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--mount", "--pid", "--fork")
_ROOT = Path(__file__).resolve().parents[1]


def run_alone(module: str, *words: str, timeout_s: float = 120.0) -> str:
    """What `python -m MODULE WORDS` prints there; fails with what it says on stderr."""
    argv = [*ALONE, "--mount-proc", "--propagation", "private", sys.executable, "-m", module, *words]
    done = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
