"""By what means this machine can limit processes; found out by trying."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache

from symphony_charts.errors import SymphError, ToolMissing
from symphony_charts.local.plan.records import Limiter
from symphony_charts.system import subprocess_runner

__all__ = ["find_limiter"]

_MEMORY, _CPU = 123 * 2**20, 317
# The limits that are in force inside, in the words of control groups of version 2 or 1.
_LOOK = """\
while IFS=: read -r _ kinds path; do
    case ,$kinds, in
    *,memory,*) cat "/sys/fs/cgroup/memory$path/memory.limit_in_bytes" ;;
    *,cpu,*) cat "/sys/fs/cgroup/cpu$path/cpu.cfs_quota_us" ;;
    ,,) cat "/sys/fs/cgroup$path/memory.max" "/sys/fs/cgroup$path/cpu.max" ;;
    esac
done </proc/self/cgroup 2>/dev/null
:
"""
# This version began to end whole scopes in which the kernel has killed something, their watching shell included.
_ENDS_SCOPES = 253


@cache
def find_limiter() -> Limiter:
    """Return systemd scopes if a user manager runs and may limit its units, else rlimits for memory."""
    try:
        scope = _scope()
        trial = [*scope, "-p", f"MemoryMax={_MEMORY}", "-p", f"CPUQuota={_CPU / 10}%", "--", "/bin/sh"]
        done = subprocess_runner.run([*trial, "-c", _LOOK], timeout_s=10, check=False)
    except SymphError as error:
        return Limiter(by={"memory": "rlimit"}, why=error.what)
    if done.status:
        message = done.error_text.strip().splitlines()[-1:] or [f"status {done.status}"]
        return Limiter(by={"memory": "rlimit"}, why=f"systemd-run --user does not work here ({message[0]})")
    words = done.text.split()
    memory, cpu = str(_MEMORY) in words, str(_CPU * 100) in words
    return Limiter(
        by={"memory": "systemd" if memory else "rlimit", **({"cpu": "systemd"} if cpu else {})},
        scope=tuple(scope),
        why="" if memory and cpu else "the systemd of this user may not limit memory and CPU both",
    )


def _scope() -> list[str]:
    program, runtime_folder = shutil.which("systemd-run"), os.environ.get("XDG_RUNTIME_DIR")
    if program is None or not runtime_folder:
        what = "no systemd-run" if program is None else "no session of systemd (XDG_RUNTIME_DIR is not set)"
        raise ToolMissing(f"{what} on this machine")
    version = re.search(r"systemd (\d+)", subprocess_runner.run([program, "--version"], timeout_s=10).text)
    is_new = version is not None and int(version[1]) >= _ENDS_SCOPES
    keeps = ["-p", "OOMPolicy=continue"] if is_new else []
    return [
        "/usr/bin/env",
        f"XDG_RUNTIME_DIR={runtime_folder}",
        program,
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        *keeps,
    ]
