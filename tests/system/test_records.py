"""Records are converted safely in threads: msgspec alone crashes if two of them use a type for the first time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "symphony_charts"
THREADS = """
import threading
from symphony_charts.spec.data import from_data

start = threading.Barrier(8)
def make():
    start.wait()
    made.append(from_data({"name": "exp", "processes": {"a": {"command": ["date"]}}}))

made = []
threads = [threading.Thread(target=make) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == 8
"""


def test_experiments_are_made_in_threads() -> None:
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr


def test_no_other_module_decodes_types_with_msgspec_itself() -> None:
    direct = re.compile(r"msgspec\.convert\(|msgspec\.json\.decode\(.*type=")
    users = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if direct.search(path.read_text())}
    assert users == {"system/records.py"}
