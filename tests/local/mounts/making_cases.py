"""A run ends while another makes a mount point below an existing one; print what is left of both."""

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
    """Ends another run between the creation of a point and its entry in the journal."""

    def note(self, path: str, facts: os.stat_result) -> None:
        threading.Thread(target=remove_points, args=(_JOURNAL,)).start()
        time.sleep(0.3)
        super().note(path, facts)


def main() -> None:
    """Kill a run that made /data, then make /data/deep in the next run."""
    Path("/scratch/volume").mkdir()
    fork = multiprocessing.get_context("fork")
    for journal, at in ((Journal, "/data"), (_SlowJournal, "/data/deep")):
        run = fork.Process(target=_run, args=(journal, at))
        run.start()
        run.join()
    remove_points(_JOURNAL)
    print(json.dumps({"left": [at for at in ("/data", "/data/deep") if Path(at).exists()]}))  # noqa: T201


def _run(journal: type[Journal], at: str) -> None:
    # Preparing mounts nothing; the locks end with this process.
    mounter = Mounter("/scratch", journal(_JOURNAL))
    mounter.mount_all([], [[Target("/scratch/volume", at)]])
    assert not mounter.refusals
