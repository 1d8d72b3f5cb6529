"""GPUs of this machine: their numbers, load, and the locks by which runs of one user share them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from symphony_charts.errors import Conflict, PlacementError, SymphError, ToolFailed, ToolMissing
from symphony_charts.formats.quantity import MIB
from symphony_charts.local.plan.records import Gpus, LocalPlan
from symphony_charts.local.plan.resources import (
    CUDA_VISIBLE,
    Gpu,
    GpuRequest,
    assign_gpus,
    gpu_requests,
    parse_gpus,
    visible,
)
from symphony_charts.local.runs import Run
from symphony_charts.spec.model import Experiment
from symphony_charts.system import file_locks, subprocess_runner

# The supervisor of a run holds a lock per GPU. The kernel releases it with the last process that has it open, so that
# nothing is left after a kill -9. Imported by the supervisor: keep it light.

# A folder in the runtime folder.
_FOLDER = "gpus"


def note_holder(gpu: str, run: Path, processes: Sequence[str]) -> None:
    file_locks.note(_FOLDER, _file_of(gpu), json.dumps({"run": str(run), "processes": list(processes)}))


def holders_of(gpu: str) -> list[str]:
    """Return the holders of a GPU as text: ``experiment "rl" (learner)``."""
    # A run that is being started has no state yet.
    holders = [
        f'experiment "{run.experiment}" ({", ".join(processes)})'
        for run, processes in _holders(gpu)
        if run.is_live or not (run.folder / "state.json").exists()
    ]
    return list(dict.fromkeys(holders))


def restore_gpu_locks(run: Run, plan: LocalPlan, needed: Collection[str]) -> None:
    """Lock the GPUs of a run that it still needs, until this program ends, unless it has inherited the locks.

    After its predecessor was killed the GPUs are free, unless another run has taken them; that is printed to stderr.
    """
    wanted: dict[str, list[str]] = {}
    for process in plan.processes:
        for gpu in [gpu for gpu in process.gpus if gpu in needed]:
            wanted.setdefault(gpu, []).append(f"{process.pod}/{process.process}")
    if not wanted:
        return
    with file_locks.exclusive(_FOLDER):
        for gpu, processes in wanted.items():
            descriptor = file_locks.claim(_FOLDER, _file_of(gpu), shared=plan.is_sharing_gpus)
            if descriptor is not None:
                note_holder(gpu, run.folder, processes)
            elif all(holder.folder != run.folder for holder, _ in _holders(gpu)):
                sys.stderr.write(f"another run has taken {gpu}: {'; '.join(holders_of(gpu))}\n")


def release_gpus(plan: LocalPlan, needed: Collection[str]) -> None:
    """Unlock the GPUs of a run that it does not need any more; its supervisor may have inherited the locks."""
    freed = {_file_of(gpu) for process in plan.processes for gpu in process.gpus if gpu not in needed}
    if not freed:
        return
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only names are needed
        with contextlib.suppress(OSError):
            path = Path(os.readlink(f"/proc/self/fd/{entry}"))  # noqa: PTH115 - the target, as it is
            if path.name in freed and path.parent.name == _FOLDER:
                os.close(int(entry))


def _holders(gpu: str) -> Iterator[tuple[Run, list[str]]]:
    for line in file_locks.claimants(_FOLDER, _file_of(gpu)):
        with contextlib.suppress(ValueError, KeyError):
            data = json.loads(line)
            yield Run(Path(data["run"])), [str(name) for name in data["processes"]]


def _file_of(gpu: str) -> str:
    return f"{gpu.replace(os.sep, '_')}.held"


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
        self._seen: Mapping[str, GpuUse] = {}

    def use_of(self, gpus: Iterable[str]) -> GpuUse:
        """Return the mean load and the total memory of these GPUs. MIG instances are not measured separately."""
        if time.monotonic() - self._asked >= _EVERY_S:
            self._seen, self._asked = {}, time.monotonic()
            with contextlib.suppress(SymphError):
                self._seen = parse_use(subprocess_runner.run(_QUERY, timeout_s=10).text)
        uses = [self._seen.get(gpu, GpuUse(busy=None, memory=None)) for gpu in gpus]
        busy = [use.busy for use in uses if use.busy is not None]
        memory = [use.memory for use in uses if use.memory is not None]
        return GpuUse(
            busy=sum(busy) / len(busy) if busy and len(busy) == len(uses) else None,
            memory=sum(memory) if memory and len(memory) == len(uses) else None,
        )


def parse_use(text: str) -> dict[str, GpuUse]:
    """Return the uses by UUID, from lines like ``GPU-1a9f..., 74, 12288``; non-numbers are unknown values."""
    rows = ([field.strip() for field in line.split(", ")] for line in text.splitlines())
    return {
        row[0]: GpuUse(
            busy=int(row[1]) / 100 if row[1].isdigit() else None,
            memory=int(row[2]) * MIB if row[2].isdigit() else None,
        )
        for row in rows
        if len(row) == 3
    }


_DRIVER = Path("/dev/nvidiactl")


@contextlib.contextmanager
def take_gpus(experiment: Experiment, run: Path, *, share: bool) -> Iterator[Gpus]:
    """Hold the GPUs of each process for the run in the folder `run`, through the programs started meanwhile.

    With `share` they are assigned round-robin, and processes and runs that share may have the same. Raises
    PlacementError if the machine has too few, and Conflict naming the holders if too few are free.
    """
    requests = gpu_requests(experiment)
    if not requests:
        unused = "this machine has GPUs, but no process requests one, so no process sees them; request one: `gpus: 1`"
        yield Gpus(notes=(unused,) if _DRIVER.exists() else ())
        return
    with file_locks.exclusive(_FOLDER):
        chosen, held = _choose(experiment.name, requests, gpus_seen(), share=share)
        for gpu in held:
            note_holder(gpu, run, [process for process, ids in chosen.ids.items() if gpu in ids])
    try:
        for descriptor in held.values():
            os.set_inheritable(descriptor, True)
        yield chosen
    finally:
        _close(held)


def look_at_gpus(experiment: Experiment, *, share: bool = False, strict: bool = False) -> Gpus:
    """Return the GPUs that each process would get now, without taking them.

    Too few GPUs are only noted, unless `strict`, which raises as `take_gpus` does.
    """
    requests = gpu_requests(experiment)
    if not requests:
        return Gpus()
    try:
        seen = gpus_seen()
        with file_locks.exclusive(_FOLDER):
            chosen, held = _choose(experiment.name, requests, seen, share=share)
            _close(held)
    except SymphError as error:
        if strict:
            raise
        return Gpus(notes=(f"no GPUs are available now: {error.what}",))
    return chosen


def gpus_of_run(run: Run, experiment: Experiment) -> Gpus:
    """Return the GPUs of a run for a changed `experiment`. Raises Conflict if it requests other numbers."""
    plan = run.plan()
    ids = {f"{process.pod}/{process.process}": process.gpus for process in plan.processes}
    asked = {request.process: request.count for request in gpu_requests(experiment)}
    other = [name for name in {**ids, **asked} if len(ids.get(name, ())) != asked.get(name, 0)]
    if other:
        what = (
            f'experiment "{run.experiment}" runs with another number of GPUs for {", ".join(other)} than its spec now'
        )
        raise Conflict(what, next=f"symph up --force, or symph down {run.experiment} first")
    return Gpus(ids={name: has for name, has in ids.items() if has}, is_shared=plan.is_sharing_gpus)


def gpus_seen() -> tuple[Gpu, ...]:
    """Return the GPUs visible to the caller, from nvidia-smi and CUDA_VISIBLE_DEVICES; none without nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader"]
    try:
        texts = [subprocess_runner.run(argv, timeout_s=30).text for argv in (query, ["nvidia-smi", "-L"])]
    except ToolMissing:
        return ()
    try:
        return visible(parse_gpus(*texts), os.environ.get(CUDA_VISIBLE))
    except ValueError as error:
        raise ToolFailed(f"cannot read the GPU list of nvidia-smi: {error}", argv=tuple(query)) from error


def _choose(
    name: str, requests: Sequence[GpuRequest], seen: Sequence[Gpu], *, share: bool
) -> tuple[Gpus, dict[str, int]]:
    """Return the GPUs of each process and the descriptors that hold them; call it while `_FOLDER` is locked."""
    claimed = {gpu.id: file_locks.claim(_FOLDER, _file_of(gpu.id), shared=share) for gpu in seen}
    held = {gpu: descriptor for gpu, descriptor in claimed.items() if descriptor is not None}
    free = [gpu for gpu in seen if gpu.id in held]
    ids = assign_gpus(requests, free, share=share)
    notes: tuple[str, ...] = ()
    if ids is None and share:
        ids = assign_gpus(requests, [*free, *(gpu for gpu in seen if gpu not in free)], share=True)
        notes = (f"this run shares GPUs with runs that did not agree to share: {_held_by(seen, free)}",)
    if ids is None:
        _close(held)
        raise _too_few(name, requests, seen, free, share=share)
    used = {gpu for has in ids.values() for gpu in has}
    _close({gpu: descriptor for gpu, descriptor in held.items() if gpu not in used})
    return Gpus(ids=ids, is_shared=share, notes=notes), {gpu: held[gpu] for gpu in held if gpu in used}


def _too_few(
    name: str, requests: Sequence[GpuRequest], seen: Sequence[Gpu], free: Sequence[Gpu], *, share: bool
) -> SymphError:
    asked = max(request.count for request in requests) if share else sum(request.count for request in requests)
    who = ", ".join(f"{request.process.rpartition('/')[2]} {request.count}" for request in requests[:5])
    who += f" and {len(requests) - 5} more" if len(requests) > 5 else ""
    what = f'experiment "{name}" requests {_count(asked)} ({who})'
    if asked > len(seen):
        chosen = os.environ.get(CUDA_VISIBLE)
        why = f"{CUDA_VISIBLE} allows {_count(len(seen))}" if chosen is not None else f"this machine has {len(seen)}"
        step = "request fewer: `local: {gpus: N}`" + (
            ", or share them: symph up --share-gpus" if seen and not share else ""
        )
        return PlacementError(f"{what}; {why}", next=step)
    left = f"{len(free)} {'is' if len(free) == 1 else 'are'} free"
    return Conflict(
        f"{what}; {left} of {_count(len(seen))} here: {_held_by(seen, free)}",
        next="end one of them (symph down NAME), or share GPUs: symph up --share-gpus",
    )


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def _held_by(seen: Sequence[Gpu], free: Sequence[Gpu]) -> str:
    held = [gpu for gpu in seen if gpu not in free]
    return "; ".join(
        f"GPU {gpu.index} is in use by {' and '.join(holders_of(gpu.id)) or 'another run'}" for gpu in held
    )


def _close(held: Mapping[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)
