"""`request` asks the supervisor of a run to restart or stop processes: a file for each slot, then a signal.

The files outlive the supervisor: a new one finds the unfinished requests to its predecessor.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.local.runs import Run
from symphony_charts.local.status import wait_words
from symphony_charts.system.files import full_disk, replace_file
from symphony_charts.system.inotify import Changes
from symphony_charts.system.processes import send_signal

Action: TypeAlias = Literal["start", "stop", "restart"]
# Interval for checking if the disk is full, in seconds.
_LOOK_S = 5.0
# Timeout for a blocked start, in seconds.
_HELD_S = 4.0


def request(run: Run, slots: Mapping[int, Action], timeout_s: float = 120.0) -> None:
    """Ask the supervisor to read the plan again, and for an action on each of `slots`; return once all are done.

    Raises NotFound if the run ends before that, ToolFailed after `timeout_s` seconds, and soon on a full disk.
    """
    if not run.is_active:
        raise _run_is_over(run)
    _refuse_ended(run, slots)
    folder = run.folder / "again"
    folder.mkdir(mode=0o700, exist_ok=True)
    for slot, action in slots.items():
        replace_file(folder / str(slot), action.encode())
    deadline, has_waited, held_since = time.monotonic() + timeout_s, False, 0.0
    with Changes([run.folder, folder]) as watched:
        # A process that was stopped by hand handles signals only after SIGCONT.
        for number in (signal.SIGUSR1, signal.SIGCONT):
            send_signal(run.supervisor, number)
        while left := sorted(set(requested(run)) & set(slots)):
            if not run.is_live:
                raise _run_is_over(run)
            _refuse_ended(run, left)
            held = _held(run, left)
            if held and not held_since:
                held_since = time.monotonic()
                sys.stderr.write(f"{run.experiment}: {held}\n")
            elif held and time.monotonic() - held_since > _HELD_S:
                what = f"{held}; not started within {_HELD_S:g} s"
                step = f"the supervisor starts it when it can: symph ps {run.experiment}"
                raise ToolFailed(what, str(run.folder), f"{step}; to end all: symph down {run.experiment}")
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                names = ", ".join(run.plan().processes[slot].name for slot in left)
                what = f"the supervisor did not {slots[left[0]]} {names} within {timeout_s:g} s"
                raise ToolFailed(what, str(run.folder), f"symph down {run.experiment}, then symph up")
            if has_waited and (why := full_disk(run.folder)):
                what = f"cannot record the result of the restart: the disk is full ({why})"
                raise ToolFailed(what, str(run.folder), f"make room, then look: symph ps {run.experiment}")
            until_given_up = held_since + _HELD_S - time.monotonic() if held else _LOOK_S
            watched.wait(max(0.01, min(remaining, _LOOK_S, until_given_up)))
            has_waited = True


def _refuse_ended(run: Run, slots: Iterable[int]) -> None:
    """Raise NotFound if one of `slots` has ended with its run, while services go on."""
    if run.state().has_result:
        processes = run.plan().processes
        names = [processes[slot].name for slot in slots if processes[slot].at_end != "stay"]
        if names:
            what = f'experiment "{run.experiment}" has ended, and with it {", ".join(names)}'
            raise NotFound(what, next=f"start it again: symph up SPEC; end the rest: symph down {run.experiment}")


def _held(run: Run, slots: Sequence[int]) -> str:
    plan = run.plan()
    state = run.state().with_added(plan)
    waits = ((state.processes[slot], wait_words(slot, state, plan)) for slot in slots)
    return next((f"{process.name} {words}" for process, words in waits if words and process.held), "")


def requested(run: Run) -> dict[int, str]:
    """Return the requested actions by slot."""
    folder = run.folder / "again"
    actions = {}
    # Files with other names are no requests.
    for path in sorted(path for path in folder.iterdir() if path.name.isdecimal()) if folder.is_dir() else ():
        # The supervisor may withdraw a request while a command reads the folder.
        with contextlib.suppress(FileNotFoundError):
            actions[int(path.name)] = path.read_text(encoding="utf-8", errors="replace")
    return actions


def withdraw(run: Run, slot: int) -> None:
    (run.folder / "again" / str(slot)).unlink(missing_ok=True)


def _run_is_over(run: Run) -> NotFound:
    return NotFound(f'experiment "{run.experiment}" has ended', next=f"see its logs: symph logs {run.experiment}")
