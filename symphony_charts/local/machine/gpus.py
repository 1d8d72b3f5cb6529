"""`gpus_seen` lists the GPUs of this machine, and `take_gpus` holds free ones for a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from symphony_charts.errors import Conflict, PlacementError, SymphError, ToolFailed, ToolMissing
from symphony_charts.local.machine.gpu_locks import claim_gpu, exclusive, holders_of, note_holder
from symphony_charts.local.plan.records import Gpus
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
from symphony_charts.system import subprocess_runner

_DRIVER = Path("/dev/nvidiactl")


@contextlib.contextmanager
def take_gpus(experiment: Experiment, run: Path, *, share: bool) -> Iterator[Gpus]:
    """Hold the GPUs of each process for the run in the folder `run`, by the programs that are started meanwhile.

    With `share` they are given in turn, and processes and runs that share may have the same. Raises PlacementError
    when the machine has too few, and Conflict naming the holders when too few are free.
    """
    requests = gpu_requests(experiment)
    if not requests:
        unused = "this machine has GPUs and no process asks for one, so none sees any; `gpus: 1` gives it one"
        yield Gpus(notes=(unused,) if _DRIVER.exists() else ())
        return
    with exclusive():
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
    """Return the GPUs that each process would get now; nothing is taken.

    Unless `strict`, which raises as `take_gpus` does, too few are only noted.
    """
    requests = gpu_requests(experiment)
    if not requests:
        return Gpus()
    try:
        seen = gpus_seen()
        with exclusive():
            chosen, held = _choose(experiment.name, requests, seen, share=share)
            _close(held)
    except SymphError as error:
        if strict:
            raise
        return Gpus(notes=(f"no GPUs for it now: {error.what}",))
    return chosen


def gpus_of_run(run: Run, experiment: Experiment) -> Gpus:
    """Return the GPUs of a run, for `experiment` to keep. Raises Conflict if that asks for other numbers."""
    plan = run.plan()
    ids = {f"{process.pod}/{process.process}": process.gpus for process in plan.processes}
    asked = {request.process: request.count for request in gpu_requests(experiment)}
    other = [name for name, has in ids.items() if len(has) != asked.get(name, 0)]
    if other:
        what = f'experiment "{run.experiment}" runs already, and {", ".join(other)} now asks for another number of GPUs'
        raise Conflict(what, next=f"symph up --force, or symph down {run.experiment} first")
    return Gpus(ids={name: has for name, has in ids.items() if has}, is_shared=plan.is_sharing_gpus)


def gpus_seen() -> tuple[Gpu, ...]:
    """Return the GPUs visible to the caller, by nvidia-smi and CUDA_VISIBLE_DEVICES; none without nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader"]
    try:
        texts = [subprocess_runner.run(argv, timeout_s=30).text for argv in (query, ["nvidia-smi", "-L"])]
    except ToolMissing:
        return ()
    try:
        return visible(parse_gpus(*texts), os.environ.get(CUDA_VISIBLE))
    except ValueError as error:
        raise ToolFailed(
            f"nvidia-smi lists GPUs in a way that is not known here: {error}", argv=tuple(query)
        ) from error


def _choose(
    name: str, requests: Sequence[GpuRequest], seen: Sequence[Gpu], *, share: bool
) -> tuple[Gpus, dict[str, int]]:
    """Return the GPUs of each process and the descriptors that hold them; call it inside of `exclusive`."""
    claimed = {gpu.id: claim_gpu(gpu.id, shared=share) for gpu in seen}
    held = {gpu: descriptor for gpu, descriptor in claimed.items() if descriptor is not None}
    free = [gpu for gpu in seen if gpu.id in held]
    ids = assign_gpus(requests, free, share=share)
    notes: tuple[str, ...] = ()
    if ids is None and share:
        ids = assign_gpus(requests, [*free, *(gpu for gpu in seen if gpu not in free)], share=True)
        notes = (f"GPUs are shared with runs that did not ask for that: {_held_by(seen, free)}",)
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
    what = f'experiment "{name}" asks for {_count(asked)} ({who})'
    if asked > len(seen):
        chosen = os.environ.get(CUDA_VISIBLE)
        why = f"{CUDA_VISIBLE} leaves {_count(len(seen))}" if chosen is not None else f"this machine has {len(seen)}"
        step = "ask for fewer with `local: {gpus: N}`" + (", or symph up --share-gpus" if seen and not share else "")
        return PlacementError(f"{what}; {why}", next=step)
    left = f"{len(free)} {'is' if len(free) == 1 else 'are'} free"
    return Conflict(
        f"{what}; of {_count(len(seen))} here {left}: {_held_by(seen, free)}",
        next="symph down one of them, or share with symph up --share-gpus",
    )


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def _held_by(seen: Sequence[Gpu], free: Sequence[Gpu]) -> str:
    held = [gpu for gpu in seen if gpu not in free]
    return "; ".join(f"GPU {gpu.index} is held by {' and '.join(holders_of(gpu.id)) or 'another run'}" for gpu in held)


def _close(held: Mapping[str, int]) -> None:
    for descriptor in held.values():
        os.close(descriptor)
