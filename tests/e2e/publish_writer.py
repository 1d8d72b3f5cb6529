"""One of many writers: publishes numbered charts in sequence, and records each acknowledged one.

    python -m tests.e2e.publish_writer URL CACHE NOTES WRITER COUNT

It resumes after the last number in NOTES, like a user who repeats the command after a crash.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.gitops.store.store import Store
from symphony_charts.system.git.program import Author
from tests.gitops.samples import NOW, small_publish


def main() -> None:
    url, cache, notes, writer, count = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    done = len(notes.read_text().splitlines()) if notes.exists() else 0
    store = Store(url, "main", root=cache, author=Author(name="Ann <ann@example.org>"))
    for number in range(done, count):
        while True:
            try:
                store.apply([small_publish(f"w{writer}-{number}", number, version="0.1.0")], now=NOW + number)
                break
            except ToolFailed:
                continue
        with notes.open("a") as file:
            file.write(f"w{writer}-{number}\n")
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main()
