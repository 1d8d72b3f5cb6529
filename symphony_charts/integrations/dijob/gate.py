"""`main` runs a replica's program once the replica is not deleted by its coordinator.

Arguments are a FILE, which exists while the replica is deleted, and the PROGRAM's argument list.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from symphony_charts.system.inotify import Changes


def main() -> None:
    """Wait until FILE is gone, then exec PROGRAM."""
    deleted, program = Path(sys.argv[1]), sys.argv[2:]
    if deleted.exists():
        with Changes([deleted.parent]) as changes:
            sys.stderr.write("symph: its coordinator deleted this replica; waiting for the next request\n")
            sys.stderr.flush()
            while deleted.exists():
                changes.wait(None)
    try:
        os.execvpe(program[0], program, _environment())  # noqa: S606 - it becomes the program, as no shell does
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


def _environment() -> dict[bytes, bytes]:
    """Return the initial environment of this program: in the locale C, Python adds LC_CTYPE to `os.environ`."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}
