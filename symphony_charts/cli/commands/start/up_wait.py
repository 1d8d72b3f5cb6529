"""`wait_and_tell` waits for the end of a run, and says meanwhile who waits for whom."""

from __future__ import annotations

import threading
import time

from symphony_charts.cli import output
from symphony_charts.errors import SymphError
from symphony_charts.formats.age import age
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import Run
from symphony_charts.local.status import path_of
from symphony_charts.local.waiting import LONG_S, wait_words, waiting_since
from symphony_charts.system.inotify import Changes

__all__ = ["wait_and_tell"]

# A wait that is shorter is nothing to speak of, in seconds.
_SHORT_S = 3.0


def wait_and_tell(run: Run) -> int:
    """Wait until `run` is over; its exit status."""
    threading.Thread(target=_tell_waits, args=(run,), daemon=True).start()
    return local_run.wait(run)


def _tell_waits(run: Run) -> None:
    """Say of each wait that it goes on, and once more when it has been long; sleeps while nobody waits."""
    told: set[tuple[str, bool]] = set()
    with Changes([run.folder]) as watched:
        while True:
            try:
                waits = dict(_waits(run))
            except SymphError:
                # The run is gone, or its files are damaged: whoever waits for its end says so.
                return
            for words, seconds in waits.items():
                is_long = seconds >= LONG_S
                if seconds >= _SHORT_S and (words, is_long) not in told:
                    told.add((words, is_long))
                    text = f"{words}, {age(seconds)}"
                    if is_long:
                        output.warn(text, next=f"symph logs {run.experiment}")
                    else:
                        output.note(text)
            watched.wait(1.0 if waits else None)


def _waits(run: Run) -> list[tuple[str, float]]:
    state, plan, now = run.state(), run.plan(), time.time()
    found = [(item, wait_words(item["slot"], state, plan)) for item in state["processes"]]
    return [(f"{path_of(item)} {words}", now - waiting_since(item, state)) for item, words in found if words]
