"""Starts workers in private namespaces: no file, process or network of this machine can be reached from there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

# The root becomes read-only. Only an empty tmpfs is writable, and it goes with the namespace; the folders $2 to $4
# (the checkout and Python) stay visible if they lie below one.
_ENTER = """
set -eu
mount --make-rprivate /
for place in /tmp /run /dev/shm /var/tmp; do
    [ -d $place ] || continue
    mount -t tmpfs tmpfs /mnt
    for kept in "$2" "$3" "$4"; do
        case $kept in $place/*) mkdir -p "/mnt${kept#$place}"; mount --rbind "$kept" "/mnt${kept#$place}" ;; esac
    done
    mount -n --move /mnt $place
done
awk '{print $5}' /proc/self/mountinfo | while read -r place; do
    case $place in /tmp|/run|/dev/shm|/var/tmp|/proc*|/sys*) ;; *) mount -o remount,bind,ro "$place" || true ;; esac
done
! touch "$1" 2> /dev/null
shift 4
cd "$PWD"  # the folder that is visible now, which may not be the one that was covered
exec "$@"
"""
_UNSHARE = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]


def can_isolate() -> bool:
    argv = [*_UNSHARE, "mount", "--make-rprivate", "/"]
    return (
        shutil.which("unshare") is not None and subprocess.run(argv, capture_output=True, check=False).returncode == 0
    )


def run_cases(first: int, count: int, *, workers: int = 2, helm: Path | str | None = None) -> list[dict[str, Any]]:
    """Return the records of failed cases, and the workers' last records. Raises RuntimeError for a dead worker."""
    root = Path(__file__).parents[3]
    started = []
    for number in range(workers):
        share = len(range(number, count, workers))
        words = [str(first + number), str(share), str(workers), str(helm or "")]
        argv = ["sh", "-c", _ENTER, "sh", str(root / ".symph-fuzz-canary"), str(root), sys.prefix, sys.base_prefix]
        argv += [sys.executable, "-m", "tests.e2e.fuzz.worker", *words]
        started.append(subprocess.Popen([*_UNSHARE, *argv], cwd=root, stdout=subprocess.PIPE, text=True))
    try:
        return [record for process in started for record in _records_of(process)]
    finally:
        for process in started:
            process.kill()  # and, by --kill-child, everything in its namespace


def _records_of(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, _ = process.communicate()
    found: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    if process.returncode or not found or "done" not in found[-1]:
        raise RuntimeError(f"a worker ended with {process.returncode} after {found[-1:]}")
    return found
