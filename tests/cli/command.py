"""The command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def symph(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "symphony_charts", *words]
    return subprocess.run(
        argv, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=90, check=False
    )
