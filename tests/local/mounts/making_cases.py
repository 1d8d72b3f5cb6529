"""A run ends while another makes a mount point below one that was there already; printed is what is left of both."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path

from symphony_charts.local.mounts.mount_points import Journal, remove_points
from symphony_charts.local.mounts.mounter import Mounter, Target

_JOURNAL = "/scratch/points"


class _SlowJournal(Journal):
    """Between making a point and noting it, another run ends."""

    def note(self, path: str, facts: os.stat_result, to: str = "") -> None:
        threading.Thread(target=remove_points, args=(_JOURNAL,)).start()
        time.sleep(0.3)
        super().note(path, facts, to)


def main() -> None:
    """One run makes /data and is killed; the next makes /data/deep."""
    Path("/scratch/volume").mkdir()
    fork = multiprocessing.get_context("fork")
    for journal, at in ((Journal, "/data"), (_SlowJournal, "/data/deep")):
        run = fork.Process(target=_run, args=(journal, at))
        run.start()
        run.join()
    remove_points(_JOURNAL)
    print(json.dumps({"left": [at for at in ("/data", "/data/deep") if Path(at).exists()]}))  # noqa: T201


def _run(journal: type[Journal], at: str) -> None:
    # What is only prepared mounts nothing; the locks end with this process.
    mounter = Mounter("/scratch", journal(_JOURNAL))
    mounter.mount_all([], [[Target("/scratch/volume", at)]])
    assert not mounter.refusals
