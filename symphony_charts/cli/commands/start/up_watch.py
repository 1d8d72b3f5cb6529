"""`symph up --watch`: stays beside a run and starts processes again when their files have changed."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.error_report import tell
from symphony_charts.cli.failures import INTERRUPTED
from symphony_charts.cli.local_specs import spec_here
from symphony_charts.errors import NotFound, SymphError
from symphony_charts.local import up as local_run
from symphony_charts.local.reload import FileWatch, parse_watched, touched_slots
from symphony_charts.local.runs import Run, find_slots
from symphony_charts.local.supervisor.policy import describe_status
from symphony_charts.spec.services import allocate

__all__ = ["follow"]

# As many restarts in a row, each caused so soon (in seconds) after the one before, are the processes' own doing.
_ROW, _SOON_S = 3, 2.0


def follow(args: argparse.Namespace, run: Run, spec: Path) -> int:
    """Watch until interrupted; the run goes on. What changes after its end starts it anew, from the file `spec`."""
    watched = [parse_watched(text) for text in args.watch]
    for name in dict.fromkeys(name for one in watched for name in one.processes):
        find_slots(run, name)
    try:
        with FileWatch(watched, spec, args.ignore) as files:
            output.note(f"watching {', '.join(args.watch)}; Ctrl-C ends that, and {run.experiment} goes on")
            told, storm = None, _Storm()
            while True:
                if not run.is_live and told != run:
                    told = run
                    output.note(f"{_end_of(run)}; a change starts it again")
                changed = files.wait(run)
                if changed:
                    storm.note(changed)
                    run = _start_again(args, run, changed, files)
                    storm.settle()
                else:
                    local_run.ensure_supervised(run)
    except KeyboardInterrupt:
        left = f"{run.experiment} goes on: symph attach {run.experiment} | symph down {run.experiment}"
        output.note(f"\nno longer watching; {left if run.is_live else f'{run.experiment} has ended'}")
        return INTERRUPTED


class _Storm:
    """Notices processes that write at each start what is watched, and says once how to leave that out."""

    def __init__(self) -> None:
        self._last: set[Path] = set()
        self._row, self._settled, self._is_told = 0, 0.0, False

    def note(self, changed: set[Path]) -> None:
        """These files have changed."""
        same = self._last & changed
        self._row = self._row + 1 if same and time.monotonic() - self._settled < _SOON_S else 0
        self._last = changed
        if self._row >= _ROW and not self._is_told:
            self._is_told = True
            name = min(same).name
            output.warn(f"{name} changes after each restart", next=f"--ignore '{name}', if the processes write it")

    def settle(self) -> None:
        """The restart is done."""
        self._settled = time.monotonic()


def _start_again(args: argparse.Namespace, run: Run, changed: set[Path], files: FileWatch) -> Run:
    """The run after the change, which is told; an experiment that is wrong now changes nothing."""
    began = time.monotonic()
    try:
        spec = spec_here(args)
        services = allocate(spec.experiment, spec.pins)
        for is_last in (False, True):
            touched = touched_slots(run, changed, files.watched) if run.is_live else {}
            try:
                started = local_run.up(
                    spec.experiment, services, folder=spec.path.parent, share_gpus=args.share_gpus, touched=touched
                )
                break
            except NotFound:
                # It ended in between: then it is started anew.
                if is_last or run.is_live:
                    raise
    except SymphError as error:
        tell(error)
        return run
    assert started is not None  # noqa: S101 - only a dry run gives none
    output.note(f"{'again' if started == run else 'started'} in {time.monotonic() - began:.2f} s")
    return started


def _end_of(run: Run) -> str:
    failed = run.state().failed
    if not failed:
        return f"{run.experiment} has ended"
    return f"{run.experiment} has ended: {failed.name} failed ({describe_status(failed.status)})"
