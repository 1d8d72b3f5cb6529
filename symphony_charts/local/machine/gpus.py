"""GPUs of this machine: their numbers, load, and the runs that hold them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from symphony_charts.errors import Conflict, NotFound, PlacementError, SymphError, ToolFailed, ToolMissing
from symphony_charts.formats.quantity import MIB
from symphony_charts.local.plan.records import Gpus
from symphony_charts.local.plan.resources import (
    CUDA_VISIBLE,
    Gpu,
    assign_gpus,
    gpu_requests,
    gpus_needed,
    parse_gpus,
    visible,
)
from symphony_charts.local.runs import Run, live_runs
from symphony_charts.spec.model import Experiment
from symphony_charts.system import file_locks, processes, subprocess_runner


def gpu_holders() -> dict[str, dict[str, bool]]:
    """Return the holders of each GPU: the runs that have not ended, and True for those that share it.

    Once a run has its result, processes that have ended with it hold none.
    """
    holders: dict[str, dict[str, bool]] = {}
    for run in live_runs():
        try:
            plan, ended = run.plan(), _ended_slots(run)
        except (NotFound, ToolFailed):
            for gpu in _gpus_seen_by(run):
                holders.setdefault(gpu, {})[f'experiment "{run.experiment}"'] = False
            continue
        active = [process for process in plan.processes if run.is_active and process.slot not in ended]
        for gpu in {gpu for process in active for gpu in process.gpus}:
            names = ", ".join(f"{process.pod}/{process.process}" for process in active if gpu in process.gpus)
            holders.setdefault(gpu, {})[f'experiment "{run.experiment}" ({names})'] = plan.is_sharing_gpus
    return holders


def _gpus_seen_by(run: Run) -> set[str]:
    """Return the GPUs in the variables of the processes of a run whose plan is damaged."""
    seen: set[str] = set()
    for record in run.members():
        with contextlib.suppress(OSError):
            seen.update(processes.environment(record.pid).get(CUDA_VISIBLE, "").split(","))
    return seen


def _ended_slots(run: Run) -> set[int]:
    """Return the processes of a live run that need no GPU any more; none if its state is damaged."""
    with contextlib.suppress(NotFound, ToolFailed):
        state = run.state()
        if state.ended is not None:
            return {process.slot for process in state.processes if process.phase in ("done", "failed", "stopped")}
    return set()


_QUERY = ("nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits")
# nvidia-smi measures over up to a second, and takes almost as long to answer.
_EVERY_S = 2.0


class GpuUse(NamedTuple):
    """The load of GPUs (1.0: all the time) and their used bytes; None if nvidia-smi does not report it."""

    busy: float | None
    memory: int | None


class GpuMeter:
    """Queries nvidia-smi at most every two seconds; if it is missing or fails, all values are unknown."""

    def __init__(self) -> None:
        self._asked = -_EVERY_S
        self._seen: dict[str, GpuUse] = {}

    def use_of(self, gpus: Iterable[str]) -> GpuUse:
        """Return the mean load and the total memory of these GPUs. MIG instances are not measured separately."""
        if time.monotonic() - self._asked >= _EVERY_S:
            self._seen, self._asked = {}, time.monotonic()
            with contextlib.suppress(SymphError):
                lines = subprocess_runner.run(_QUERY, timeout_s=10).text.splitlines()
                for row in ([field.strip() for field in line.split(", ")] for line in lines):
                    # A value that is not a number is unknown.
                    if len(row) == 3:
                        load = int(row[1]) / 100 if row[1].isdigit() else None
                        self._seen[row[0]] = GpuUse(load, int(row[2]) * MIB if row[2].isdigit() else None)
        uses = [self._seen.get(gpu, GpuUse(busy=None, memory=None)) for gpu in gpus]
        busy = [use.busy for use in uses if use.busy is not None]
        memory = [use.memory for use in uses if use.memory is not None]
        return GpuUse(
            busy=sum(busy) / len(busy) if busy and len(busy) == len(uses) else None,
            memory=sum(memory) if memory and len(memory) == len(uses) else None,
        )


@contextlib.contextmanager
def take_gpus(experiment: Experiment, *, share: bool) -> Iterator[Gpus]:
    """Yield the GPUs of each process of a new run, which must be live at the end of the block: then it holds them.

    With `share` they are assigned round-robin, and processes and runs that share may have the same. Raises
    PlacementError if the machine has too few, and Conflict naming the holders if too few are free.
    """
    requests = gpu_requests(experiment)
    if not requests:
        unused = "this machine has GPUs, but no process requests one, so no process sees them; request one: `gpus: 1`"
        yield Gpus(notes=(unused,) if Path("/dev/nvidiactl").exists() else ())
        return
    with file_locks.exclusive("gpus"):
        yield _choose(experiment.name, requests, share=share)


def look_at_gpus(experiment: Experiment, *, share: bool = False, strict: bool = False) -> Gpus:
    """Return the GPUs that each process would get now; too few are noted, or with `strict` raised as by `take_gpus`."""
    requests = gpu_requests(experiment)
    try:
        return _choose(experiment.name, requests, share=share) if requests else Gpus()
    except SymphError as error:
        if strict:
            raise
        return Gpus(notes=(f"no GPUs are available now: {error.what}",))


def gpus_of_run(run: Run, experiment: Experiment) -> Gpus:
    """Return the GPUs of a run for a changed `experiment`. Raises Conflict if it requests other numbers."""
    plan = run.plan()
    ids = {f"{process.pod}/{process.process}": process.gpus for process in plan.processes}
    asked = gpu_requests(experiment)
    other = [name for name in {**ids, **asked} if len(ids.get(name, ())) != asked.get(name, 0)]
    if other:
        names = ", ".join(other)
        what = f'experiment "{run.experiment}" runs with another number of GPUs for {names} than its spec now'
        raise Conflict(what, next=f"symph up --force, or symph down {run.experiment} first")
    return Gpus(ids={name: has for name, has in ids.items() if has}, is_shared=plan.is_sharing_gpus)


def gpus_seen() -> tuple[Gpu, ...]:
    """Return the GPUs visible to the caller, from nvidia-smi and CUDA_VISIBLE_DEVICES; none without nvidia-smi."""
    argv = ("nvidia-smi", "-L")
    try:
        return visible(parse_gpus(subprocess_runner.run(argv, timeout_s=30).text), os.environ.get(CUDA_VISIBLE))
    except ToolMissing:
        return ()
    except ValueError as error:
        raise ToolFailed(f"cannot read the GPU list of nvidia-smi: {error}", argv=argv) from error


def _choose(name: str, requests: Mapping[str, int], *, share: bool) -> Gpus:
    seen, holders = gpus_seen(), gpu_holders()
    free = [gpu for gpu in seen if all(share and is_sharing for is_sharing in holders.get(gpu.id, {}).values())]
    taken = [gpu for gpu in seen if gpu not in free]
    held = "; ".join(f"GPU {gpu.index} is in use by {' and '.join(holders[gpu.id])}" for gpu in taken)
    if ids := assign_gpus(requests, free, share=share):
        return Gpus(ids=ids, is_shared=share)
    if share and (ids := assign_gpus(requests, [*free, *taken], share=True)):
        note = f"this run shares GPUs with runs that did not agree to share: {held}"
        return Gpus(ids=ids, is_shared=True, notes=(note,))
    asked = gpus_needed(requests, share=share)
    who = ", ".join(f"{process.rpartition('/')[2]} {count}" for process, count in list(requests.items())[:5])
    who += f" and {len(requests) - 5} more" if len(requests) > 5 else ""
    what = f'experiment "{name}" requests {_count(asked)} ({who})'
    if asked > len(seen):
        is_chosen = os.environ.get(CUDA_VISIBLE) is not None
        why = f"{CUDA_VISIBLE} allows {_count(len(seen))}" if is_chosen else f"this machine has {len(seen)}"
        step = "request fewer: `local: {gpus: N}`"
        step += ", or share them: symph up --share-gpus" if seen and not share else ""
        raise PlacementError(f"{what}; {why}", next=step)
    left = f"{len(free)} {'is' if len(free) == 1 else 'are'} free"
    step = "end one of them (symph down NAME), or share GPUs: symph up --share-gpus"
    raise Conflict(f"{what}; {left} of {_count(len(seen))} here: {held}", next=step)


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"
