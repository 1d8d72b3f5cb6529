"""`LogPipes` opens the ways from terminals to logs again that a full disk has closed.

The program that writes a log ends when it cannot, and tmux then tells nobody what is printed, for ever.
"""

from __future__ import annotations

from symphony_charts.errors import SymphError
from symphony_charts.local import tmux_client
from symphony_charts.local.plan.log_pipe import log_pipe
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.event_loop import Loop
from symphony_charts.local.supervisor.logs import LogClock
from symphony_charts.local.supervisor.startup import log_line
from symphony_charts.system.full_disks import full_disk

__all__ = ["LogPipes"]

# While a disk is full it is looked at so often, in seconds.
_PAUSE_S = 1.0
# The loop waits this long for tmux, and tries again after a pause, in seconds.
_ANSWER_S, _RETRY_S = 2.0, 5.0


class LogPipes:
    """The pipes from panes to logs of `run`; `clock` records their growth."""

    def __init__(self, run: Run, loop: Loop, clock: LogClock) -> None:
        self._run, self._loop, self._clock = run, loop, clock
        self._is_full = False

    def note(self) -> None:
        """Record growth, and wait for room if that filled the disk."""
        self._clock.note()
        if not self._is_full and full_disk(self._run.folder):
            self._is_full = True
            self._loop.later(_PAUSE_S, self._look)

    def _look(self) -> None:
        if full_disk(self._run.folder):
            self._loop.later(_PAUSE_S, self._look)
            return
        self._is_full = False
        with_terminal = {process.slot for process in self._run.plan().processes if process.tty}
        try:
            for slot, pane in tmux_client.panes_without_pipe(self._run.socket, timeout_s=_ANSWER_S):
                if slot in with_terminal:
                    tmux_client.pipe(self._run.socket, pane, log_pipe(str(self._run.process_dir(slot))), _ANSWER_S)
        except SymphError as error:
            log_line(f"logs are not written yet: {error}")
            self._is_full = True
            self._loop.later(_RETRY_S, self._look)
